"""Runs of a probe, in; what of it was exercised, where it failed, and what would reach more, out."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import replace

from migrate_lens.compare.outcome import raises
from migrate_lens.diagnosis.investigate import Investigation
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.model.report import (
    Finding,
    Library,
    Outcome,
    Shortfall,
    StageResult,
    TraceSummary,
)
from migrate_lens.model.trace import Frame, PartFailure, Raised
from migrate_lens.runs.bench import Run

# Whom a program asks whether torch is there; where torch is hidden, they say that it is not.
_HIDDEN = frozenset({"importlib", "importlib_metadata", "pkg_resources", "pkgutil"})


def under_torch(subject: Subject, base: Baseline) -> Baseline:
    """The baseline with the line at which it failed."""
    return replace(base, result=replace(base.result, detail=_with_place(base.result.detail, subject, base.run)))


# -- where a baseline failed -------------------------------------------------------------------------------------------


def failed(part: PartFailure, library: Library) -> str:
    """How a test failed, and where."""
    at = _said(part.frames[-1], library) if part.frames else ""
    return f"{raises(part.failure)}{at}"


def _with_place(detail: str, subject: Subject, run: Run) -> str:
    """A failure, and the line of the probe that led to it."""
    ending = run.trace.ending
    if isinstance(ending, Raised):
        frame = _frame_of(ending.frames, subject)
        return detail + _said(frame, subject.library) if frame is not None else detail
    place = run.trace.in_flight
    if place is not None and run.cut_off:
        return detail + _at(place.path, place.line, subject.library)
    return detail


def _frame_of(frames: Iterable[Frame], subject: Subject) -> Frame | None:
    """The innermost frame of the probe itself; else of the library; else of all."""
    known = list(frames)
    probe = [frame for frame in known if subject.probe.path is not None and frame.path == str(subject.probe.path)]
    own = [frame for frame in known if frame.path.startswith(f"{subject.library.root}/")]
    return next((some[-1] for some in (probe, own, known) if some), None)


def _said(frame: Frame, library: Library) -> str:
    return _at(frame.path, frame.line, library)


def _at(path: str, line: int, library: Library) -> str:
    """A place and its line of source, as the end of a sentence."""
    shown = path.removeprefix(f"{library.root}/")
    source = linecache.getline(path, line).strip()
    return f" (at {shown}:{line}: {source})" if source else f" (at {shown}:{line})"


# -- what a comparison reached -----------------------------------------------------------------------------------------


def made_calls(investigation: Investigation, result: StageResult) -> bool:
    """Whether a torch call was made on both sides, imports apart, by a probe that did something under torch."""
    summary = investigation.summary
    if summary is None or (result.tests is not None and not result.tests.passed):
        return False
    imports = sum(event.place.kind.imports for event in investigation.base.trace.events)
    return summary.aligned > imports


def unreached(investigation: Investigation, findings: Iterable[Finding], *, keep_torch: bool) -> Shortfall | None:
    """What the target's run did not reach, why, and the flag that helps; None where it came to torch's end."""
    summary = investigation.summary
    if summary is None or summary.reached >= summary.torch_calls:
        return None
    return Shortfall(summary.probe, _reached(summary), _flag(investigation, findings, keep_torch=keep_torch))


def _reached(summary: TraceSummary) -> str:
    reached = f"reached {summary.reached} of {summary.torch_calls - summary.within} calls"
    if summary.within:
        reached += f"; {summary.within} more lie in code that only torch runs from within a call"
    return f"{reached}, {summary.note}" if summary.note else reached


def _flag(investigation: Investigation, findings: Iterable[Finding], *, keep_torch: bool) -> str:
    """What to type so that more is reached."""
    if any(stage.outcome is Outcome.TIMED_OUT for stage in investigation.stages):
        return "--timeout SECONDS"
    if not keep_torch and any(finding.key.api.partition(".")[0] in _HIDDEN for finding in findings):
        return "--keep-torch"
    return "--probe PROGRAM"
