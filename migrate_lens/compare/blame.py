"""Blame of last resort: an outcome that no call explains in, the finding that names the nearest observed place out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from migrate_lens.compare.divergences import Divergence, divergences
from migrate_lens.compare.findings import collect, private, site_at, site_of
from migrate_lens.compare.outcome import SMALL_TYPES, own_frame, recorded, suspect
from migrate_lens.compare.unentered import put_in_place, unentered
from migrate_lens.model.report import Fact, Finding, Key, Library, Site, Stage, Symptom
from migrate_lens.model.trace import Event, Failure, Frame, Parts, Raised, Trace
from migrate_lens.model.value import NAMED_TUPLE, Difference, tag

UNEXPLAINED = Difference("value", True, "the same outcome", "another outcome")
_MESSAGE = 200
_SYMPTOMS = {
    "shape": Symptom.SHAPE,
    "dtype": Symptom.DTYPE,
    "exception": Symptom.EXCEPTION,
    "crash": Symptom.CRASH,
    "timeout": Symptom.TIMEOUT,
}
_DUNDER = re.compile(r"(?P<file>\S+):\d+ (?P<name>__\w+__)$")


def blame(want: Trace, got: Trace, differs: Difference, stage: Stage, library: Library) -> tuple[Finding, ...]:
    """Name the nearest observed place for an outcome that differs although no call that differs explains it."""
    raised = list(_failures(want, got))
    if raised:
        return tuple(_Blamed.of(want, got, one).finding(stage, library) for one in raised)
    unrun = _unrun(want, got, stage, library)
    if unrun is not None:
        return (unrun,)
    soft = [divergence for divergence in divergences(want, got) if not divergence.hard]
    if soft:
        return collect(soft[-1:], stage, library)
    calls = (event for event in reversed(got.events) if event.returned and not event.place.kind.imports)
    last = next(calls, None)
    symptom = _SYMPTOMS.get(differs.aspect, Symptom.VALUE)
    sites = (site_at(last.place, library),) if last else ()
    api = _name(want, last) if last else "the program's result"
    evidence = ("no observed call differs; the nearest one before the end is named",)
    key = Key(symptom, api, "outcome")
    of_tensors = differs.hard and symptom not in (Symptom.EXCEPTION, Symptom.CRASH, Symptom.TIMEOUT)
    facts: dict[str, Fact] = {"private": private(api), "of_tensors": of_tensors}
    return (Finding(key, stage, sites, differs.expected, differs.actual, facts, evidence),)


def _unrun(want: Trace, got: Trace, stage: Stage, library: Library) -> Finding | None:
    """A function of the program's in the framework's place, which torch runs and the target never does."""
    for code in unentered(want, got):
        place = code.calls[0].place
        own = put_in_place(code.outer, place)
        if own is not None:
            key = Key(Symptom.VALUE, own.api, "not run")
            expected = f"{code.outer.api} runs the program's {own.name}"
            sites = (site_of(place.path, place.module, own.line, library),)
            facts: dict[str, Fact] = {"private": private(own.api)}
            return Finding(
                key, stage, sites, expected, "never runs it", facts, (f"called from within {code.outer.api}",)
            )
    return None


def _failures(want: Trace, got: Trace) -> Iterator[Raised]:
    """Exceptions that ended the program, or a part of it that passes under torch."""
    if isinstance(got.ending, Raised):
        yield got.ending
    passed = want.ending.passed if isinstance(want.ending, Parts) else ()
    for part in got.failures:
        if part.part in passed:
            yield Raised(part.failure, part.frames)


@dataclass(frozen=True, slots=True)
class _Blamed:
    """An exception outside any observed call, and what the failing statement was handling.

    Attributes:
        failure: the exception.
        frame: the statement that failed.
        event: the observed event that raised it, or whose result was being handled.
        api: the torch name that is blamed.
        missing: whether torch has the name, and the target's object lacks it.
    """

    failure: Failure
    frame: Frame | None
    event: Event | None
    api: str
    missing: bool = False

    @classmethod
    def of(cls, want: Trace, got: Trace, raised: Raised) -> _Blamed:
        """Find what is to be blamed."""
        failure, frame = raised.failure, own_frame(raised.frames, got)
        event = recorded(got, failure)
        if event is not None:
            return cls(failure, frame, event, _name(want, event))
        read = _read_under_torch(want, failure, frame)
        if read is not None:
            return cls(failure, frame, None, read.api, missing=True)
        special = _special_method(failure, frame)
        if special:
            return cls(failure, frame, None, special)
        if frame is not None:
            event = _soft_near(want, got, frame) or suspect(got, frame)
        return cls(failure, frame, event, _name(want, event) if event else failure.type)

    def finding(self, stage: Stage, library: Library) -> Finding:
        """The finding that names it."""
        failure = self.failure
        facts: dict[str, Fact] = {
            "exception": failure.type,
            "raised_in": failure.where,
            "private": private(self.api),
            "proxied": bool(self.event and self.event.flags.other_object),
            "missing_module": False,
            "callee": failure.callee,
        }
        evidence = (
            "the exception is raised outside any observed call; the call whose result was being handled is named",
            *self._where(),
        )
        actual = f"raises {failure.type}: {failure.first_line[:_MESSAGE]}"
        key = Key(Symptom.MISSING_API, self.api) if self.missing else Key(Symptom.EXCEPTION, self.api, failure.type)
        return Finding(key, stage, self._sites(library), "goes on", actual, facts, evidence)

    def _where(self) -> Iterator[str]:
        if self.failure.where:
            yield f"raised in {self.failure.where}"
        if self.frame is not None:
            yield f"reached from line {self.frame.line} of module {self.frame.module}"

    def _sites(self, library: Library) -> tuple[Site, ...]:
        if self.frame is not None:
            return (site_of(self.frame.path, self.frame.module, self.frame.line, library),)
        if self.event is not None:
            return (site_at(self.event.place, library),)
        return ()


def _special_method(failure: Failure, frame: Frame | None) -> str:
    """The special method of a tensor or a layer that raised, by torch's name; empty where none did."""
    dunder = _DUNDER.search(failure.where)
    if dunder is None or (frame is not None and "/site-packages/" in frame.path):
        return ""
    owner = "torch.nn.Module" if "/nn/" in f"/{dunder['file']}" else "torch.Tensor"
    return f"{owner}.{dunder['name']}"


def _read_under_torch(want: Trace, failure: Failure, frame: Frame | None) -> Event | None:
    """What torch has under a name that is missing from an object which is not known to be the framework's."""
    name = failure.missing if failure.type == "AttributeError" else ""
    if not name or frame is None:
        return None
    there = (event for event in want.events if frame.runs(event.place))
    return next((event for event in there if event.api.endswith(f".{name}")), None)


def near(divergence: Divergence, frame: Frame) -> bool:
    """Whether a divergence stands in the statement that a frame was running."""
    return frame.runs(divergence.got.place)


def _soft_near(want: Trace, got: Trace, frame: Frame) -> Event | None:
    """The last event before the end whose result differs in type only: a named tuple that is a plain one."""
    soft = [d for d in divergences(want, got) if not d.hard and d.symptom is not Symptom.GRADIENT]
    chosen = [d for d in soft if near(d, frame)] or [d for d in soft if tag(d.want.value) == NAMED_TUPLE]
    return chosen[-1].got if chosen else None


def _name(want: Trace, event: Event) -> str:
    """Torch's name of an event; the type where its value is one of torch's small types."""
    if event.returned and tag(event.value) in SMALL_TYPES:
        return SMALL_TYPES[tag(event.value)]
    same = next((other for other in want.events if other.key == event.key), None)
    return (same.api if same else event.api) or event.place.text
