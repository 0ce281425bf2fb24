"""What marked C++ calls said on both sides goes in; where the two first went apart within one kernel call comes out.

The records are what ``ladder/kernel_trace.h`` writes, with a line of the worker's in front of each observed call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrate_lens.model.value import LIGHT, Difference, Encoded, difference, tag

Call = tuple[int, int, str]  # node, visit, part

CONSTRUCT, NOT_ENTERED, ARGUMENTS, OWN, SAME = "construct", "not entered", "other arguments", "own code", "same"


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log: ``>`` a call begins, ``<`` it returned, ``=`` a function was entered."""

    sign: str
    mark: int
    receiver: str
    values: tuple[Encoded, ...]
    layouts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a mark before it is run.

    Attributes:
        closed: all that it is given is told too.
        loose: its values are not comparable: random or uninitialised.
        call: it is a call, not a ``return`` or the entry of a function.
    """

    closed: bool
    loose: bool
    call: bool


@dataclass(frozen=True, slots=True)
class Blame:
    """A call that gave something else although it was given the same.

    Attributes:
        mark: which.
        receiver: the type of the object that it was called on, as torch's side says it.
        differs: how; None where it did not return.
    """

    mark: int
    receiver: str
    differs: Difference | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where a kernel call went apart.

    Attributes:
        how: ``construct``, ``not entered``, ``other arguments``, ``own code`` or ``same``.
        blames: the calls at fault, in their order; empty unless ``how`` is ``construct``.
        at: the mark where it was seen, 0 where there is none.
    """

    how: str
    blames: tuple[Blame, ...] = ()
    at: int = 0


def read_log(path: Path) -> dict[Call, tuple[Record, ...]]:
    """The records of each observed call; what was said outside of any is left out."""
    found: dict[Call, list[Record]] = {}
    current: list[Record] = []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:  # the process died while it wrote
            continue
        if row[0] == "@":
            current = found.setdefault((row[1], row[2], row[3]), []) if row[1] else []
        else:
            current.append(_record(row))
    return {call: tuple(records) for call, records in found.items()}


def _record(row: list[Any]) -> Record:
    receiver = row[2] if row[0] == ">" else ""
    raw = [row[2]] if row[0] == "<" else row[-1]
    return Record(row[0], row[1], receiver, tuple(map(_decoded, raw)), tuple(_layouts(raw)))


def _decoded(raw: Any) -> Encoded:
    if not isinstance(raw, list):
        return raw
    if raw[0] == "T":
        _, dtype, shape, data, device, _ = raw
        return ("T", dtype, tuple(shape), _data(data, dtype), device, False)
    if raw[0] in ("L", "t"):
        return (raw[0], [_decoded(item) for item in raw[1]])
    return tuple(raw)


def _data(raw: Any, dtype: str) -> Any:
    if raw is None:
        return None
    sample, text = (raw[1], raw[2]) if isinstance(raw, list) else (0, raw)
    data = bytes.fromhex(text)
    if dtype == "bfloat16":
        data = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).tobytes()
    return ("S", sample, data) if sample else data


def _layouts(raw: Any) -> Iterator[Any]:
    """The strides that mean something, of each tensor."""
    if isinstance(raw, list) and raw and raw[0] == "T":
        yield tuple(stride for stride, extent in zip(raw[5], raw[2], strict=False) if extent > 1) if raw[2] else ()
    elif isinstance(raw, list):
        for item in raw:
            yield from _layouts(item)


def judge(want: Sequence[Record], got: Sequence[Record], told: Mapping[int, Told]) -> Verdict:
    """Walk through one call of a kernel on both sides."""
    if not got:
        return Verdict(NOT_ENTERED if want else SAME)
    return _Walk(want, got, told).judge()


@dataclass(slots=True)
class _Frame:
    mark: int
    receiver: str
    clean: bool


@dataclass(slots=True)
class _Walk:
    want: Sequence[Record]
    got: Sequence[Record]
    told: Mapping[int, Told]
    frames: list[_Frame] = field(default_factory=list)
    blames: list[Blame] = field(default_factory=list)
    strides: list[Blame] = field(default_factory=list)
    apart: Verdict | None = None

    def judge(self) -> Verdict:
        """The verdict on all records."""
        steps = list(self._steps())
        for one, other in steps:
            if not self._step(one, other):
                break
        else:
            self._end(len(steps))
        if self.blames:
            return Verdict(CONSTRUCT, tuple(self.blames), self.blames[0].mark)
        if self.strides:
            return Verdict(CONSTRUCT, tuple(self.strides[:1]), self.strides[0].mark)
        return self.apart or Verdict(SAME)

    def _steps(self) -> Iterator[tuple[Record, Record | None]]:
        """Records side by side; what only one side's ``#if`` has is left out, a fork in the road ends it."""
        ours, theirs = {r.mark for r in self.want}, {r.mark for r in self.got}
        left = [r for r in self.got if r.mark in ours]
        at = 0
        for one in self.want:
            other = left[at] if at < len(left) else None
            if other is None:
                return
            if (one.sign, one.mark) == (other.sign, other.mark):
                at += 1
                yield one, other
            elif one.mark in theirs:
                yield one, None
                return

    def _step(self, one: Record, other: Record | None) -> bool:
        """One pair of records; False where nothing behind it can be compared."""
        if other is None:
            self._apart(Verdict(OWN, (), one.mark))
            return False
        told = self.told[one.mark]
        if one.sign == "=":
            if _first(one.values, other.values) is not None:
                self._apart(Verdict(OWN if self.frames or self._seen(one) else ARGUMENTS, (), one.mark))
        elif one.sign == ">":
            same = _first(one.values, other.values) is None
            if not same:
                self._apart(Verdict(OWN, (), one.mark))
            self.frames.append(_Frame(one.mark, one.receiver, same))
        else:
            self._returned(one, other, told)
        return True

    def _seen(self, one: Record) -> bool:
        return next(r for r in self.want if r.sign == "=") is not one

    def _returned(self, one: Record, other: Record, told: Told) -> None:
        frame = _Frame(one.mark, "", True)
        if told.call:
            while self.frames and self.frames[-1].mark != one.mark:
                self.frames.pop()
            frame = self.frames.pop() if self.frames else frame
        differs = _first(one.values, other.values, values=not told.loose)
        if differs is None:
            if told.call and frame.clean and one.layouts != other.layouts and not told.loose:
                said = [f"strides {list(map(list, r.layouts))}" for r in (one, other)]
                self.strides.append(Blame(one.mark, frame.receiver, Difference("layout", True, *said)))
            return
        first = not self.blames and self.apart is None
        if told.call and frame.clean and (first or (told.closed and differs.hard)):
            self.blames.append(Blame(one.mark, frame.receiver, differs))
        elif not told.call:
            self._apart(Verdict(OWN, (), one.mark))
        for outer in self.frames:
            outer.clean = False

    def _end(self, steps: int) -> None:
        """Where Paddle's side ended while a call was open, it did not return."""
        while self.frames and not self.told[self.frames[-1].mark].call:
            self.frames.pop()
        if self.frames:
            frame = self.frames[-1]
            if frame.clean:
                self.blames.append(Blame(frame.mark, frame.receiver, None))
        elif len(self.want) > steps and not self.blames and not self._branched():
            self._apart(Verdict(OWN, (), self.want[steps].mark))

    def _branched(self) -> bool:
        """Whether an ``#if`` has Paddle's side go another way."""
        ours = {r.mark for r in self.want}
        return any(r.mark not in ours for r in self.got)

    def _apart(self, verdict: Verdict) -> None:
        if self.apart is None and not self.blames:
            self.apart = verdict


def _first(want: Sequence[Encoded], got: Sequence[Encoded], *, values: bool = True) -> Difference | None:
    """The first difference that is one of what a kernel computed."""
    for one, other in zip(want, got, strict=False):
        found = difference(one, other, values=values)
        if found is not None and found.aspect not in LIGHT:
            return replace(found, aspect="dtype") if _dtype(one) != _dtype(other) else found
    return None


def _dtype(value: Encoded) -> Encoded:
    """The dtype that a value is, or that options begin with."""
    inner = value[1][0] if tag(value) == "t" and value[1] else value
    return inner if tag(inner) == "D" else None
