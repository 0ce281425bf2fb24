"""A library's test suite: pytest files and nodes in; what became of each test, and batches to investigate, out.

Every test is first run as its own people run it, once a runtime and observed by nobody: that is what the table says.
Then those that pass under torch are observed, in batches that fit into memory, and put together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_lens.diagnosis.exercised import failed
from migrate_lens.model.report import Finding, Library, Outcome, Probe, Runtime, Stage, StageResult, SuiteRow, Tally
from migrate_lens.model.trace import PASSED, SKIPPED, Exited, PartFailure, Parts, RanTest, Trace
from migrate_lens.protocol.parts import number_of
from migrate_lens.runs.bench import Bench, Run, RunRequest, Setting
from migrate_lens.runs.worker import MOST_TRACE

# A batch takes no longer than this under torch, in seconds, and leaves no more than this of a trace, in bytes.
BATCH_SECONDS, BATCH_BYTES = 20.0, 1 << 27
_MOST_BYTES = 3 << 29
_HALF = 0.5
NOT_RUN = "not run"
NO_TESTS = 5  # pytest's exit status where it found none


@dataclass
class Session:
    """Tests that one pytest process can run together, and what became of them when nobody observed them.

    Attributes:
        probe: what is run.
        runs: by runtime, each test that was begun.
        failures: by runtime, why tests, and files of them, failed.
        users: modules that import torch.
        seconds: by runtime, how long it took.
        code: by runtime, pytest's exit status where it came to no test.
    """

    probe: Probe
    runs: dict[Runtime, dict[str, RanTest]] = field(default_factory=dict)
    failures: dict[Runtime, dict[str, PartFailure]] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    seconds: dict[Runtime, float] = field(default_factory=dict)
    ended: dict[Runtime, str] = field(default_factory=dict)

    def outcome(self, runtime: Runtime, node: str) -> str:
        """Pytest's word for a test."""
        run = self.runs.get(runtime, {}).get(node)
        return run.outcome if run is not None and run.outcome else NOT_RUN

    @property
    def passing(self) -> list[RanTest]:
        """The tests that pass under torch."""
        return [run for run in self.runs[Runtime.TORCH].values() if run.outcome == PASSED]

    def reason(self, runtime: Runtime, node: str, library: Library) -> str:
        """Why a test, or its file, failed, and where; empty where nobody knows."""
        failures = self.failures.get(runtime, {})
        part = failures.get(node) or failures.get(node.partition("::")[0])
        return failed(part, library) if part is not None else self.ended.get(runtime, "")

    def file(self, node: str, library: Library) -> Path:
        """The file that a test is in."""
        root = library.root if self.probe.path is None else self.probe.path.parent
        return root / node.partition("::")[0]

    def natural(self, run: Run, nodes: Sequence[str]) -> Run:
        """The target's run as it is, of some of its tests.

        Args:
            run: any of the target's, whose fate is kept.
            nodes: the tests.
        """
        fates = {name: self.outcome(Runtime.TARGET, name) for name in nodes}
        failures = tuple(part for name, part in self.failures[Runtime.TARGET].items() if name in fates)
        trace = replace(run.trace, ending=Parts(fates), failures=failures, in_flight=None)
        return replace(run, trace=trace, fate=replace(run.fate, code=0, timed_out=False))


def run_plainly(bench: Bench, setting: Setting, runtime: Runtime, session: Session) -> Run:
    """Run a session's tests with nobody looking; one that ends the process is a result, and the others go on."""
    runs = session.runs.setdefault(runtime, {})
    failures = session.failures.setdefault(runtime, {})
    known = list(session.runs.get(Runtime.TORCH, {}))
    probe = session.probe
    if known:
        probe = replace(probe, tests=tuple(known), select="")
    while True:
        run = bench.run(RunRequest(setting, runtime, probe, observe=False))
        session.seconds[runtime] = session.seconds.get(runtime, 0.0) + run.fate.seconds
        session.users |= frozenset(run.trace.users)
        known = known or list(run.trace.collected)
        runs.update({test.node: test for test in run.trace.tests if test.outcome})
        failures.update({part.part: part for part in run.trace.failures})
        if not run.cut_off:
            break
        stuck = next((test for test in run.trace.tests if not test.outcome), None)
        if stuck is None:
            session.ended[runtime] = _how(run)
            break
        if not run.fate.timed_out or _took(run) > _HALF * setting.timeout or len(run.trace.tests) == 1:
            runs[stuck.node] = replace(stuck, outcome=_how(run), seconds=_took(run))
        left = tuple(node for node in known if node not in runs)
        if not left:
            break
        probe = replace(probe, tests=left, select="")
    if isinstance(run.trace.ending, Exited):
        session.ended[runtime] = f"pytest exits with {run.trace.ending.code}"
    return run


def _how(run: Run) -> str:
    if run.fate.timed_out:
        return str(Outcome.TIMED_OUT)
    return f"{Outcome.CRASHED}: {run.fate.signal_name or f'exit status {run.fate.code}'}"


def _took(run: Run) -> float:
    """Seconds of the test in which a process ended."""
    return run.fate.seconds - sum(test.seconds for test in run.trace.tests)


def apart(session: Session) -> Iterator[Session]:
    """A session for each file that pytest could not collect beside the others, in which it may be collected alone."""
    files = dict.fromkeys(name.partition("::")[0] for name in session.probe.tests)
    if len(files) < 2:
        return
    for name in list(session.failures[Runtime.TORCH]):
        if name in files:
            yield Session(replace(session.probe, spec=name, tests=(name,)))


def batches(session: Session, most: float = BATCH_SECONDS) -> Iterator[tuple[str, ...]]:
    """The tests that pass under torch, in their order, in parts that do not take long."""
    batch: list[str] = []
    seconds = 0.0
    for test in session.passing:
        if batch and seconds + test.seconds > most:
            yield tuple(batch)
            batch, seconds = [], 0.0
        batch.append(test.node)
        seconds += test.seconds
    if batch:
        yield tuple(batch)


def observed(bench: Bench, setting: Setting, probe: Probe) -> Iterator[Run]:
    """Torch's observed runs of a batch with all values: one, or several of parts of it where there is too much."""
    left = probe.tests
    while left:
        part = replace(probe, tests=left)
        request = RunRequest(setting, Runtime.TORCH, part, values=True, most_trace=_MOST_BYTES, enough=BATCH_BYTES)
        run = bench.run(request)
        if run.fate.excess:  # a single test has more than that: its large values are sampled
            run = bench.run(replace(request, values=False, most_trace=MOST_TRACE))
        yield run
        begun = {test.node for test in run.trace.tests}
        left = tuple(node for node in left if node not in begun) if begun else ()


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass
class Table:
    """What became of each test.

    Attributes:
        sessions: all tests, as nobody observed them.
        library: whose they are.
        healed: what became of each in the run that goes on past each gap.
        reasons: why a test was not investigated, or its outcome differs still.
    """

    sessions: list[Session]
    library: Library
    healed: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def goes_on(self, trace: Trace, nodes: Sequence[str]) -> None:
        """Keep what became of tests in a run that goes on."""
        fates = trace.ending.fates if isinstance(trace.ending, Parts) else {t.node: t.outcome for t in trace.tests}
        failures = {part.part: part for part in trace.failures}
        for node in nodes:
            self.healed[node] = fates.get(node) or NOT_RUN
            part = failures.get(node) or failures.get(node.partition("::")[0])
            if part is not None and self.healed[node] != PASSED:
                self.reasons[node] = failed(part, self.library)

    def rows(self, gaps: Mapping[str, Finding]) -> Iterator[SuiteRow]:
        """A row for each test.

        Args:
            gaps: what was found, by the ids of the gaps.
        """
        numbers = {number_of(node) for session in self.sessions for node in session.runs[Runtime.TORCH]}
        shared = [name for name, finding in gaps.items() if _of_no_test(finding, numbers)]
        for session in self.sessions:
            for node in session.runs[Runtime.TORCH]:
                yield self._row(session, node, gaps, shared)

    def _row(self, session: Session, node: str, findings: Mapping[str, Finding], shared: list[str]) -> SuiteRow:
        ours, theirs = (session.outcome(runtime, node) for runtime in (Runtime.TORCH, Runtime.TARGET))
        if ours != PASSED:
            reason = session.reason(Runtime.TORCH, node, self.library) if ours != SKIPPED else ""
            return SuiteRow(node, ours, theirs, "", (), reason)
        number = number_of(node)
        gaps = tuple(name for name, finding in findings.items() if number in finding.parts)
        if theirs == NOT_RUN:
            gaps = tuple(dict.fromkeys((*shared, *gaps)))
        healed = self.healed.get(node, NOT_RUN)
        reason = self.reasons.get(node, "") if healed != PASSED else ""
        return SuiteRow(node, ours, theirs, healed, gaps, reason or self._why(session, node, theirs))

    def _why(self, session: Session, node: str, theirs: str) -> str:
        return session.reason(Runtime.TARGET, node, self.library) if theirs != PASSED else ""


def _of_no_test(finding: Finding, numbers: set[int]) -> bool:
    """Whether a finding shows outside of tests too: where a module is imported, above all."""
    return not finding.parts or bool(finding.parts - numbers)


def stage_of(runtime: Runtime, sessions: Sequence[Session], spec: str, library: Library) -> StageResult:
    """How the suite did in a runtime; one of which no test passes has not passed: it failed, or all was skipped."""
    told = [(session, node) for session in sessions for node in session.runs[Runtime.TORCH]]
    fates = [session.outcome(runtime, node) for session, node in told]
    passed, skipped = fates.count(PASSED), fates.count(SKIPPED)
    tally = Tally(passed, len(fates) - passed - skipped, skipped)
    seconds = sum(session.seconds.get(runtime, 0.0) for session in sessions)
    outcome, detail = _outcome(runtime, tally, told, library)
    if not told:
        detail = next(_nothing(sessions, library), "pytest finds no test to run in it")
    return StageResult(runtime, Stage.TEST, spec, outcome, seconds, detail, tally)


def _outcome(
    runtime: Runtime, tally: Tally, told: Sequence[tuple[Session, str]], library: Library
) -> tuple[Outcome, str]:
    failing = ((s, node) for s, node in told if s.outcome(runtime, node) not in (PASSED, SKIPPED))
    first = next((f": {node} {s.reason(runtime, node, library)}" for s, node in failing), "")
    if not tally.passed and tally.failed:
        return Outcome.FAILED, f"no test of {tally.all} passes under {runtime}{first}"
    if tally.skipped and not tally.passed:
        said = "its one test is" if tally.all == 1 else f"all {tally.all} tests are"
        return Outcome.SKIPPED, f"{said} skipped under {runtime}"
    if tally.failed and runtime is not Runtime.TORCH:
        return Outcome.FAILED, f"{tally.failed} of {tally.all} tests do not pass{first}"
    return (Outcome.PASSED if tally.passed else Outcome.FAILED), ""


def _nothing(sessions: Sequence[Session], library: Library) -> Iterator[str]:
    """Why there is no test at all."""
    for session in sessions:
        for name in session.failures[Runtime.TORCH]:
            yield f"{name} {session.reason(Runtime.TORCH, name, library)}"
        if session.ended.get(Runtime.TORCH) not in (None, f"pytest exits with {NO_TESTS}"):
            yield session.ended[Runtime.TORCH]
