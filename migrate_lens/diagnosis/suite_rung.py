"""The rung of tests: a library's pytest files in; the table of its tests, and what they showed, out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_lens.diagnosis.causes import Kind
from migrate_lens.diagnosis.investigate import Investigation, investigate_tests
from migrate_lens.diagnosis.met import Met
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.diagnosis.suite import Session, Table, apart, batches, observed, run_plainly, stage_of
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Library, Probe, ProbeKind, Runtime, Stage, TraceSummary
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import PASSED, SKIPPED, Parts, RanTest
from migrate_lens.protocol.parts import number_of
from migrate_lens.runs.bench import Bench, Run, RunRequest, Setting

_SHOWN = 3


class SuiteRung:
    """Runs a suite, batch by batch.

    Args:
        bench: runs probes.
        setting: what all runs share; the compat scope is found here where it is not known.
        met: keeps what is met.
        progress: hears what is done.
        investigated: keeps what a batch showed.
        scope_of: the compat scope for modules that were seen to import torch.
    """

    def __init__(
        self,
        bench: Bench,
        setting: Setting,
        met: Met,
        progress: Progress,
        investigated: Callable[[Subject, Investigation], None],
        scope_of: Callable[[Iterable[str]], tuple[str, ...]],
    ) -> None:
        self.setting = setting
        self._bench = bench
        self._met = met
        self._progress = progress
        self._investigated = investigated
        self._scope_of = scope_of
        self._summaries: list[TraceSummary] = []
        self._settled: dict[Kind, bool] = {}
        self._done = 0

    def run(self, named: Sequence[Probe], files: Sequence[Path], select: str) -> bool:
        """Run them all; whether any test passes under torch."""
        sessions = self._under_torch(self._sessions(named, files, select))
        self._met.table = table = Table(sessions, self.setting.library)
        spec = self._spec(sessions)
        self._put_aside(sessions)
        self._met.stages.append(stage_of(Runtime.TORCH, sessions, spec, self.setting.library))
        if not any(session.passing for session in sessions):
            return False
        users = frozenset[str]().union(*(session.users for session in sessions))
        self.setting = replace(self.setting, scope=self._scope_of(users))
        all_tests = sum(len(session.passing) for session in sessions)
        for session in sessions:
            if session.passing:
                self._progress(f"test: {len(session.passing)} tests under {TARGET.name}, as they are")
                with self._bench.forgetting():
                    natural = run_plainly(self._bench, self.setting, Runtime.TARGET, session)
                for batch in batches(session):
                    self._batch(session, natural, batch, table, all_tests)
        self._met.stages.append(stage_of(Runtime.TARGET, sessions, spec, self.setting.library))
        self._met.traces.append(_together(spec, self._summaries))
        self._keep_reproducible(table)
        return True

    # -- under torch ---------------------------------------------------------------------------------------------

    def _sessions(self, named: Sequence[Probe], files: Sequence[Path], select: str) -> list[Session]:
        """One session for all in the library; one each for files that lie elsewhere."""
        root = self.setting.library.root
        inside: dict[str, None] = {}
        elsewhere: list[Session] = []
        for probe in named:
            assert probe.path is not None
            if probe.path.is_relative_to(root):
                _, colons, node = probe.spec.partition("::")
                inside[probe.path.relative_to(root).as_posix() + colons + node] = None
            else:
                elsewhere.append(Session(replace(probe, select=select)))
        inside.update((path.relative_to(root).as_posix(), None) for path in files)
        names = tuple(inside)
        if not names:
            return elsewhere
        spec = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        return [Session(Probe(ProbeKind.PYTEST, spec, None, (), names, select)), *elsewhere]

    def _under_torch(self, sessions: list[Session]) -> list[Session]:
        run: list[Session] = []
        for session in sessions:
            self._progress(f"test: {session.probe.spec} under {Runtime.TORCH}")
            with self._bench.forgetting():
                run_plainly(self._bench, self.setting, Runtime.TORCH, session)
                run.append(session)
                for alone in apart(session):
                    run_plainly(self._bench, self.setting, Runtime.TORCH, alone)
                    if alone.runs[Runtime.TORCH]:
                        run.append(alone)
                        session.failures[Runtime.TORCH].pop(alone.probe.spec, None)
        return run

    def _spec(self, sessions: Sequence[Session]) -> str:
        if len(sessions) == 1:
            return sessions[0].probe.spec
        return f"{sessions[0].probe.spec} and others"

    def _put_aside(self, sessions: Sequence[Session]) -> None:
        """Say which tests say nothing about the target, and why."""
        for session in sessions:
            for name, reason in _aside(session, self.setting.library):
                self._met.put_aside(name, reason)

    # -- batches -------------------------------------------------------------------------------------------------

    def _batch(self, session: Session, natural: Run, batch: tuple[str, ...], table: Table, of: int) -> None:
        """Observe a batch on both sides, and keep what it shows."""
        known = len(self._met.findings)
        self._progress(f"test: {self._done} of {of} tests compared, {known} gaps so far")
        with self._bench.forgetting():
            for base in observed(self._bench, self.setting, replace(session.probe, tests=batch, select="")):
                self._compare(session, natural, base, table)
        self._done += len(batch)

    def _compare(self, session: Session, natural: Run, base: Run, table: Table) -> None:
        fates = {test.node: test.outcome for test in base.trace.tests}
        nodes = tuple(node for node, fate in fates.items() if fate == PASSED)
        base = replace(base, trace=replace(base.trace, ending=Parts(fates)))
        for node in set(fates) - set(nodes):
            table.reasons[node] = "does not pass under torch while it is observed"
        subject = Subject(self._bench, self.setting, Stage.TEST, replace(session.probe, tests=nodes, select=""))
        if not nodes:
            return
        investigation = investigate_tests(subject, base, session.natural(natural, nodes), self._settled)
        if investigation.summary is not None:
            self._summaries.append(investigation.summary)
            self._met.exercised = self._met.exercised or investigation.summary.aligned > 0
        assert investigation.healed is not None
        table.goes_on(investigation.healed.trace, nodes)
        self._investigated(subject, investigation)

    # -- what reproductions are made from ------------------------------------------------------------------------

    def _keep_reproducible(self, table: Table) -> None:
        """Run a few tests alone, in which all gaps are met, so that their calls are at hand in whole."""
        tests = {number_of(run.node): (session, run) for session in table.sessions for run in session.passing}
        for number in covering([f.parts for f in self._met.findings if f.stage is Stage.TEST], tests):
            session, run = tests[number]
            self._progress(f"test: {run.node} alone, for its calls in whole")
            path = session.file(run.node, self.setting.library)
            probe = replace(session.probe, spec=run.node, tests=(run.node,), select="", path=path)
            kept = self._bench.run(RunRequest(self.setting, Runtime.TORCH, probe, values=True))
            self._met.bases.append((probe, kept.file))


def _aside(session: Session, library: Library) -> Iterator[tuple[str, str]]:
    """What is put aside of a session: files that are not collected, tests that fail or are skipped under torch."""
    runs = session.runs[Runtime.TORCH]
    for name in session.failures[Runtime.TORCH]:
        if name not in runs:
            yield name, f"is not collected under torch: {session.reason(Runtime.TORCH, name, library)}"
    failing = [node for node, run in runs.items() if run.outcome not in (PASSED, SKIPPED)]
    for node in failing[:_SHOWN]:
        yield node, f"fails under torch: {session.reason(Runtime.TORCH, node, library)}"
    if len(failing) > _SHOWN:
        yield session.probe.spec, f"{len(failing) - _SHOWN} more of {len(runs)} tests fail under torch"
    of_file = Counter(node.partition("::")[0] for node in runs)
    skipped = Counter(node.partition("::")[0] for node, run in runs.items() if run.outcome == SKIPPED)
    for file, number in skipped.items():
        yield file, f"{number} of {of_file[file]} tests skipped under torch"
    if not runs and not session.failures[Runtime.TORCH]:
        yield session.probe.spec, session.ended.get(Runtime.TORCH, "no test was found")


def covering(wanted: Sequence[frozenset[int]], tests: Mapping[int, tuple[Session, RanTest]]) -> list[int]:
    """Few tests, quick ones first among equals, so that each set has one of them; what is in no test any one has."""
    left = [parts & tests.keys() for parts in wanted]
    anywhere = any(not parts for parts in left)
    left = [parts for parts in left if parts]
    chosen: list[int] = []
    while left:
        counts = Counter(number for parts in left for number in parts)
        best = min(counts, key=lambda number: (-counts[number], tests[number][1].seconds))
        chosen.append(best)
        left = [parts for parts in left if best not in parts]
    if anywhere and not chosen and tests:
        chosen.append(min(tests, key=lambda number: tests[number][1].seconds))
    return chosen


def _together(spec: str, summaries: Sequence[TraceSummary]) -> TraceSummary:
    """How far all batches went, as one."""
    notes = [summary.note for summary in summaries if summary.note]
    return TraceSummary(
        spec,
        sum(summary.torch_calls for summary in summaries),
        sum(summary.target_calls for summary in summaries),
        sum(summary.aligned for summary in summaries),
        sum(summary.reached for summary in summaries),
        notes[0] if notes else "",
        sum(summary.within for summary in summaries),
    )
