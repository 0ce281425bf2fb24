"""The ladder: a library and both runtimes in; what each rung, cheapest first, showed, out.

Each rung is tried under torch first: what does not run there says nothing about the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.diagnosis.build_rung import Built, Workshop, build
from migrate_lens.diagnosis.exercised import made_calls, under_torch, unreached
from migrate_lens.diagnosis.investigate import Investigation, baseline, investigate
from migrate_lens.diagnosis.kernels.construct_at_fault import KernelSearch
from migrate_lens.diagnosis.lower_operators import with_lower_operators
from migrate_lens.diagnosis.met import Met
from migrate_lens.diagnosis.plain import changed_by_observation, marked
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.diagnosis.suite_rung import SuiteRung
from migrate_lens.model.errors import UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Finding, Outcome, Probe, ProbeKind, Runtime, Shortfall, Skipped, Stage, Verdict
from migrate_lens.model.trace import PASSED, Parts
from migrate_lens.runs.bench import Bench, Run, Setting


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a diagnosis goes.

    Attributes:
        scope: the compat scope that was asked for; empty until it is found.
        timeout: seconds that any one stage may take.
        tests: run the library's test files too.
        stop_at_first: do not go on past the first gap.
        backward: differentiate each probe's result.
        keep_torch: whether real torch is visible on the target's side.
        test_select: pytest's ``-k`` expression, which chooses among the tests; empty for all.
    """

    scope: tuple[str, ...]
    timeout: float
    tests: bool
    stop_at_first: bool
    backward: bool
    keep_torch: bool = False
    test_select: str = ""


class Ladder:
    """One diagnosis on its way up; ``met`` has all that it meets.

    Args:
        workshop: what is diagnosed, and what it is built with.
        bench: runs probes.
        limits: how far to go.
        progress: hears what is done.
    """

    def __init__(self, workshop: Workshop, bench: Bench, limits: Limits, progress: Progress) -> None:
        library = workshop.library
        nowhere: dict[Runtime, tuple[Path, ...]] = dict.fromkeys(Runtime, ())
        self.met = Met(library)
        self._workshop = workshop
        self._library = library
        self._bench = bench
        self._limits = limits
        self._progress = progress
        self._setting = Setting(library, nowhere, limits.scope, limits.timeout, backward=limits.backward)
        self._built = Built()
        self._kernels: KernelSearch | None = None
        self._met_torch = False
        self._lacks_pytest = ""

    @property
    def scope(self) -> tuple[str, ...]:
        """Where the target answers: what was asked for or found."""
        if self._setting.scope:
            return self._setting.scope
        return (self._library.script.stem,) if self._library.script else ()

    def climb(self) -> Verdict:
        """Climb as far as torch goes.

        Raises:
            UsageError: tests are asked for, and an interpreter has no pytest.
        """
        self._look_for_pytest()
        if not self._build():
            return self._ended(runs_under_torch=False)
        self._imports()
        named_run = self._probes()
        named_run = self._tests() and named_run
        if self._met_torch:
            self._compiled_while_running()
        return self._ended(runs_under_torch=self._met_torch and named_run)

    def _ended(self, *, runs_under_torch: bool) -> Verdict:
        if self._kernels is not None:
            self.met.notes.extend(self._kernels.notes)
        if not runs_under_torch:
            return Verdict.BASELINE_FAILED
        if self.met.findings:
            return Verdict.GAPS
        return Verdict.NO_GAPS if self.met.exercised else Verdict.NOT_EXERCISED

    # -- rungs ---------------------------------------------------------------------------------------------------

    def _build(self) -> bool:
        """Build the library on both sides; whether torch's build lets the diagnosis go on."""
        built = build(self._workshop, self.met, self._progress)
        self._built = built
        self._setting = replace(self._setting, paths=built.paths, unbuilt=built.unbuilt)
        if built.jit is not None:
            self._setting = replace(self._setting, environ=built.jit.environ)
        if built.builds is not None:
            folder, timeout = self._workshop.folder, self._limits.timeout
            self._kernels = KernelSearch(built.builds, self._bench, folder, timeout, self._progress, built.extensions)
        return built.runs_under_torch

    def _look_for_pytest(self) -> None:
        """See that both sides have pytest, if it is wanted; where it only was found, what needs it is put aside.

        Raises:
            UsageError: it is asked for, and a side has none.
        """
        library = self._library
        probes = any(probe.kind is ProbeKind.PYTEST for probe in library.probes)
        tests = self._limits.tests and bool(library.tests)
        if self._limits.tests and not library.tests:
            self.met.shortfalls.append(Shortfall("--tests", "no pytest file was found"))
        if not (probes or tests):
            return
        for runtime in (Runtime.TORCH, Runtime.TARGET):
            if self._bench.ask(self._setting, runtime, ("pytest",)).get("pytest"):
                continue
            python = self._workshop.pythons[runtime]
            if tests or self._given:
                raise UsageError(f"{runtime} has no pytest: {python}", f"{python} -m pip install pytest")
            self._lacks_pytest = f"needs pytest, which {python} does not have"

    @property
    def _given(self) -> bool:
        """Whether somebody named the probes."""
        return self._library.probes_from != "found" or self._library.script is not None

    def _imports(self) -> None:
        """Import the library's packages."""
        library = self._library
        importable = {module.partition(".")[0] for module in library.modules}
        names = tuple(package for package in library.packages if package in importable)
        if library.script is not None or not names:
            return
        probe = Probe(ProbeKind.IMPORTS, "import " + ", ".join(names), None, names)
        self._try(Stage.IMPORT, probe, given=True)

    def _probes(self) -> bool:
        """Run the programs; whether those that the user named run under torch. What was found is put aside instead."""
        programs = [probe for probe in self._library.probes if probe.kind is not ProbeKind.PYTEST]
        run_under_torch = [self._try(Stage.RUN, probe, given=self._given) for probe in programs]
        return all(run_under_torch) or self._library.probes_from in ("found", "imports")

    def _tests(self) -> bool:
        """Run pytest files, as one suite; whether tests that the user named pass under torch."""
        library = self._library
        named = [probe for probe in library.probes if probe.kind is ProbeKind.PYTEST]
        files = library.tests if self._limits.tests else ()
        if not (named or files):
            return True
        if self._lacks_pytest:
            for probe in named:
                self.met.put_aside(probe.spec, self._lacks_pytest)
            return True
        rung = SuiteRung(self._bench, self._setting, self.met, self._progress, self._investigated, self._scope_of)
        passed = rung.run(named, files, self._limits.test_select)
        self._setting = rung.setting
        self._met_torch = self._met_torch or passed
        return passed or not (named and self._given)

    def _compiled_while_running(self) -> None:
        """Look at what was compiled on the way, once all programs have run."""
        if self._built.jit is not None:
            self._progress("run: looking at every unit that was compiled")
            self.met.add_compiled(self._built.jit.report())

    # -- one probe -----------------------------------------------------------------------------------------------

    def _try(self, stage: Stage, probe: Probe, *, given: bool) -> bool:
        """One probe on both sides; whether it runs under torch."""
        self._progress(f"{stage}: {probe.spec} under {Runtime.TORCH}")
        subject, base = self._without_failed_parts(Subject(self._bench, self._setting, stage, probe))
        base = under_torch(subject, base)
        skipped = base.result.outcome is Outcome.SKIPPED
        passed = base.result.outcome is Outcome.PASSED or skipped
        if not passed and not given:
            self.met.put_aside(probe.spec, f"does not run under {Runtime.TORCH}: {base.result.detail}")
            return False
        self.met.stages.append(base.result)
        if skipped:
            self.met.put_aside(probe.spec, base.result.detail)
        if passed:
            self._met_torch = True
            self._compare(subject, base)
        return passed

    def _without_failed_parts(self, subject: Subject) -> tuple[Subject, Baseline]:
        """How a probe does under torch, without modules that do not import there, which are said.

        A probe of no module that imports has failed.
        """
        base = baseline(subject)
        failed = _failed_parts(base.run)
        passed = base.result.outcome is Outcome.PASSED
        if not passed or subject.probe.kind is not ProbeKind.IMPORTS or not failed:
            return subject, base
        unimportable = [Skipped(name, f"does not import under torch: {fate}") for name, fate in failed.items()]
        for module in unimportable:
            self.met.put_aside(module.path, module.reason)
        modules = tuple(name for name in subject.probe.modules if name not in failed)
        subject = replace(subject, probe=replace(subject.probe, modules=modules))
        if modules:
            return subject, baseline(subject)
        result = replace(base.result, outcome=Outcome.FAILED, detail=unimportable[-1].reason)
        return subject, replace(base, result=result)

    def _compare(self, subject: Subject, base: Baseline) -> None:
        """Run the probe under the target, look below what differs, and keep what that shows."""
        self._setting = replace(self._setting, scope=self._scope_of(base.run.trace.users))
        subject = replace(subject, setting=self._setting)
        investigation = investigate(subject, base, self._progress, stop_at_first=self._limits.stop_at_first)
        findings = self._looked_below(subject, investigation)
        self.met.investigated(subject.probe, investigation)
        for refused in base.run.trace.refused:
            self.met.put_aside(refused.module, f"not observed: {refused.reason}")
        self._count(subject.probe, base, investigation, findings)
        changed = changed_by_observation(subject, base)
        if changed:
            self.met.shortfalls.insert(0, Shortfall(subject.probe.spec, f"observation changes it: {changed}"))
        for finding in findings:
            self.met.add_observed(
                marked(finding, changed) if changed else finding, self._setting.unbuilt, self._target_extensions()
            )

    def _looked_below(self, subject: Subject, investigation: Investigation) -> tuple[Finding, ...]:
        """What a probe showed, by what is at fault below the calls in which it shows."""
        setting = subject.setting
        trace = investigation.base.trace
        findings = with_lower_operators(self._bench, setting, trace, investigation.findings)
        if self._kernels is not None and not self._limits.stop_at_first:
            findings = self._kernels.with_constructs(setting, subject.probe, findings)
        return tuple(findings)

    def _investigated(self, subject: Subject, investigation: Investigation) -> None:
        """Keep what a batch of tests showed."""
        self.met.notes.extend(investigation.notes)
        for finding in self._looked_below(subject, investigation):
            self.met.add_observed(finding, subject.setting.unbuilt, self._target_extensions())

    def _count(self, probe: Probe, base: Baseline, investigation: Investigation, findings: Sequence[Finding]) -> None:
        """Keep what of a probe was exercised, and what was not."""
        self.met.exercised = self.met.exercised or made_calls(investigation, base.result)
        if not base.observed:
            self.met.shortfalls.append(
                Shortfall(probe.spec, "fails while it is observed: its outcome alone is compared")
            )
        short = unreached(investigation, findings, keep_torch=self._limits.keep_torch)
        if short is not None:
            self.met.shortfalls.append(short)

    def _scope_of(self, users: Iterable[str]) -> tuple[str, ...]:
        """The library's own packages, and the packages that were seen to import torch."""
        if self._limits.scope:
            return self._limits.scope
        seen = {module.partition(".")[0] for module in users} - {"__main__", "__probe__"}
        return tuple(sorted(seen | set(self._library.packages) | set(self._setting.scope)))

    def _target_extensions(self) -> Path | None:
        """Where the target's extensions are: the library's build, or what was compiled while it ran."""
        built = self._setting.paths[Runtime.TARGET]
        if built:
            return built[0]
        return self._built.jit.made(Runtime.TARGET) if self._built.jit else None


def _failed_parts(run: Run) -> dict[str, str]:
    """Parts of a probe that did not pass, and what became of them."""
    ending = run.trace.ending
    if not isinstance(ending, Parts):
        return {}
    return {name: fate for name, fate in ending.fates.items() if fate != PASSED}
