"""Runs of a probe, in; what of it was exercised, where it failed, and what would reach more, out."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from dataclasses import replace

from migrate_lens.compare.outcome import raises
from migrate_lens.diagnosis.investigate import Investigation
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.model.report import (
    Finding,
    Library,
    Outcome,
    Probe,
    ProbeKind,
    Shortfall,
    StageResult,
    Tally,
    TraceSummary,
)
from migrate_lens.model.trace import PASSED, SKIPPED, Exited, Frame, Parts, Raised
from migrate_lens.runs.bench import Run

_SHOWN = 3  # failing tests of a file that are named one by one
_NO_TESTS = 5  # pytest's exit status where it found no test
# Whom a program asks whether torch is there; where torch is hidden, they say that it is not.
_HIDDEN = frozenset({"importlib", "importlib_metadata", "pkg_resources", "pkgutil"})


def tally(run: Run) -> Tally:
    """What became of the tests of a run."""
    ending = run.trace.ending
    fates = list(ending.fates.values()) if isinstance(ending, Parts) else []
    passed, skipped = fates.count(PASSED), fates.count(SKIPPED)
    return Tally(passed, len(fates) - passed - skipped, skipped)


def under_torch(subject: Subject, base: Baseline) -> Baseline:
    """The baseline with its tests counted, and with the line at which it failed.

    A test file of which no test passes has not passed: it failed, or all of it was skipped.
    """
    result = replace(base.result, detail=_with_place(base.result.detail, subject, base.run))
    if subject.probe.kind is not ProbeKind.PYTEST:
        return replace(base, result=result)
    if isinstance(base.run.trace.ending, Exited) and base.run.trace.ending.code == _NO_TESTS:
        said = result.detail if base.run.trace.failures else "pytest finds no test to run in it"
        return replace(base, result=replace(result, detail=said))
    if not isinstance(base.run.trace.ending, Parts):
        return replace(base, result=result)
    tests = tally(base.run)
    return replace(base, result=_counted(result, tests, base.run, subject.library))


def _counted(result: StageResult, tests: Tally, run: Run, library: Library) -> StageResult:
    result = replace(result, tests=tests)
    if tests.passed:
        return result
    if not tests.failed:
        return replace(result, outcome=Outcome.SKIPPED, detail=f"{_all(tests.skipped)} skipped under {run.runtime}")
    first = next(failing_tests(run, library), None)
    more = f": {first.probe} {first.reason}" if first is not None else ""
    return replace(result, outcome=Outcome.FAILED, detail=f"no test of {tests.all} passes under {run.runtime}{more}")


def _all(number: int) -> str:
    return "its one test is" if number == 1 else f"all {number} tests are"


def failing_tests(run: Run, library: Library) -> Iterator[Shortfall]:
    """Each test that does not pass under torch, and why."""
    for part in run.trace.failures:
        at = _said(part.frames[-1], library) if part.frames else ""
        yield Shortfall(part.part, f"fails under {run.runtime}: {raises(part.failure)}{at}")


def tests_put_aside(base: Baseline, probe: Probe, library: Library) -> Iterator[Shortfall]:
    """The tests of a file that say nothing about the target, though others of it do."""
    tests = base.result.tests
    if tests is None or not tests.passed:
        return
    if tests.skipped:
        yield Shortfall(probe.spec, f"{tests.skipped} of {tests.all} tests skipped under {base.run.runtime}")
    failing = list(failing_tests(base.run, library))
    yield from failing[:_SHOWN]
    left = tests.failed - len(failing[:_SHOWN])
    if left > 0:
        yield Shortfall(probe.spec, f"{left} more of {tests.all} tests fail under {base.run.runtime}")


# -- where a baseline failed -------------------------------------------------------------------------------------------


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
