"""What marked C++ calls said on both sides goes in; where the two first went apart within one kernel call comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from migrate_lens.diagnosis.kernels.call_log import Record, Sign
from migrate_lens.model.value import DTYPE, LIGHT, TUPLE, Difference, Encoded, difference, tag


class WhereApart(StrEnum):
    """Where the two sides of a kernel call went apart; a fact that rules may ask about.

    ``CONSTRUCT``: in a marked call. ``NOT_ENTERED``: the target does not enter the kernel. ``ARGUMENTS``: it is entered
    with others. ``OWN``: in the library's own code. ``SAME``: nowhere.
    """

    CONSTRUCT = "construct"
    NOT_ENTERED = "not entered"
    ARGUMENTS = "other arguments"
    OWN = "own code"
    SAME = "same"


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
class Parting:
    """Where a kernel call went apart.

    Attributes:
        how: where.
        blames: the calls at fault, in their order; empty unless it is a construct.
        at: the mark where it was seen, 0 where there is none.
    """

    how: WhereApart
    blames: tuple[Blame, ...] = ()
    at: int = 0


def find_parting(want: Sequence[Record], got: Sequence[Record], told: Mapping[int, Told]) -> Parting:
    """Walk through one call of a kernel on both sides."""
    if not got:
        return Parting(WhereApart.NOT_ENTERED if want else WhereApart.SAME)
    return _Walk(want, got, told).parting()


@dataclass(slots=True)
class _OpenCall:
    """A call that has begun; ``clean`` while all that it was given is the same on both sides."""

    mark: int
    receiver: str
    clean: bool


@dataclass(slots=True)
class _Walk:
    want: Sequence[Record]
    got: Sequence[Record]
    told: Mapping[int, Told]
    open: list[_OpenCall] = field(default_factory=list)
    blames: list[Blame] = field(default_factory=list)
    strides: list[Blame] = field(default_factory=list)
    apart: Parting | None = None

    def parting(self) -> Parting:
        """Where the records went apart."""
        steps = list(self._steps())
        for ours, theirs in steps:
            if theirs is None:
                self._own_code(ours.mark)
                break
            self._step(ours, theirs)
        else:
            self._end(len(steps))
        if self.blames:
            return Parting(WhereApart.CONSTRUCT, tuple(self.blames), self.blames[0].mark)
        if self.strides:
            return Parting(WhereApart.CONSTRUCT, tuple(self.strides[:1]), self.strides[0].mark)
        return self.apart or Parting(WhereApart.SAME)

    def _steps(self) -> Iterator[tuple[Record, Record | None]]:
        """Records side by side; what only one side's ``#if`` has is left out, a fork in the road ends it."""
        our_marks = {record.mark for record in self.want}
        their_marks = {record.mark for record in self.got}
        left = [record for record in self.got if record.mark in our_marks]
        at = 0
        for ours in self.want:
            if at == len(left):
                return
            theirs = left[at]
            if (ours.sign, ours.mark) == (theirs.sign, theirs.mark):
                at += 1
                yield ours, theirs
            elif ours.mark in their_marks:
                yield ours, None
                return

    def _step(self, ours: Record, theirs: Record) -> None:
        """One pair of records."""
        match ours.sign:
            case Sign.ENTERED:
                self._entered(ours, theirs)
            case Sign.BEGINS:
                self._begins(ours, theirs)
            case Sign.RETURNED:
                self._returned(ours, theirs)
            case _:
                assert_never(ours.sign)

    def _entered(self, ours: Record, theirs: Record) -> None:
        if _first(ours.values, theirs.values) is None:
            return
        if self.open or self._is_inner(ours):
            self._own_code(ours.mark)
        else:
            self._went_apart(Parting(WhereApart.ARGUMENTS, (), ours.mark))

    def _is_inner(self, entered: Record) -> bool:
        """Whether another function was entered before."""
        first = next(record for record in self.want if record.sign is Sign.ENTERED)
        return first is not entered

    def _begins(self, ours: Record, theirs: Record) -> None:
        same = _first(ours.values, theirs.values) is None
        if not same:
            self._own_code(ours.mark)
        self.open.append(_OpenCall(ours.mark, ours.receiver, same))

    def _returned(self, ours: Record, theirs: Record) -> None:
        told = self.told[ours.mark]
        call = self._close(ours.mark) if told.call else None
        differs = _first(ours.values, theirs.values, values=not told.loose)
        if differs is None:
            if call is not None and call.clean and not told.loose:
                self._compare_strides(call, ours, theirs)
            return
        if call is None:
            self._own_code(ours.mark)
        elif call.clean and (self._nothing_yet() or (told.closed and differs.hard)):
            self.blames.append(Blame(call.mark, call.receiver, differs))
        for outer in self.open:
            outer.clean = False

    def _close(self, mark: int) -> _OpenCall:
        """The call that returns; what was opened in it and did not return is closed with it."""
        while self.open and self.open[-1].mark != mark:
            self.open.pop()
        return self.open.pop() if self.open else _OpenCall(mark, "", True)

    def _compare_strides(self, call: _OpenCall, ours: Record, theirs: Record) -> None:
        if ours.layouts == theirs.layouts:
            return
        said = [f"strides {[list(strides) for strides in side.layouts]}" for side in (ours, theirs)]
        self.strides.append(Blame(call.mark, call.receiver, Difference("layout", True, *said)))

    def _end(self, steps: int) -> None:
        """Where the target's side ended while a call was open, it did not return."""
        while self.open and not self.told[self.open[-1].mark].call:
            self.open.pop()
        if self.open:
            call = self.open[-1]
            if call.clean:
                self.blames.append(Blame(call.mark, call.receiver, None))
        elif len(self.want) > steps and not self.blames and not self._branched():
            self._own_code(self.want[steps].mark)

    def _branched(self) -> bool:
        """Whether an ``#if`` has the target's side go another way."""
        ours = {record.mark for record in self.want}
        return any(record.mark not in ours for record in self.got)

    def _nothing_yet(self) -> bool:
        """Whether the sides have not gone apart before."""
        return self.apart is None and not self.blames

    def _own_code(self, mark: int) -> None:
        self._went_apart(Parting(WhereApart.OWN, (), mark))

    def _went_apart(self, parting: Parting) -> None:
        if self._nothing_yet():
            self.apart = parting


def _first(want: Sequence[Encoded], got: Sequence[Encoded], *, values: bool = True) -> Difference | None:
    """The first difference that is one of what a kernel computed."""
    for ours, theirs in zip(want, got, strict=False):
        differs = difference(ours, theirs, values=values)
        if differs is None or differs.aspect in LIGHT:
            continue
        return replace(differs, aspect="dtype") if _dtype(ours) != _dtype(theirs) else differs
    return None


def _dtype(value: Encoded) -> Encoded:
    """The dtype that a value is, or that options begin with."""
    inner = value[1][0] if tag(value) == TUPLE and value[1] else value
    return inner if tag(inner) == DTYPE else None
