"""The ladder: a library and both runtimes in; what each rung, cheapest first, showed, out.

Each rung is tried under torch first: what does not run there says nothing about the target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from migrate_lens.diagnosis.build_rung import Builds, Workshop, build
from migrate_lens.diagnosis.investigate import Investigation, baseline, investigate
from migrate_lens.diagnosis.kernels.pin import Kernels
from migrate_lens.diagnosis.lower_operators import beneath
from migrate_lens.diagnosis.met import Met
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Outcome, Probe, ProbeKind, Runtime, Skipped, Stage, StageResult, Verdict
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
    """

    scope: tuple[str, ...]
    timeout: float
    tests: bool
    stop_at_first: bool
    backward: bool


@dataclass(frozen=True, slots=True)
class Baseline:
    """A probe under torch: the run, how it ended, and whether what it did could be observed."""

    probe: Probe
    run: Run
    result: StageResult
    observed: bool

    @property
    def passed(self) -> bool:
        """Whether the probe runs under torch."""
        return self.result.outcome is Outcome.PASSED


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
        self._builds = Builds()
        self._kernels: Kernels | None = None

    @property
    def scope(self) -> tuple[str, ...]:
        """Where the target answers: what was asked for or found."""
        if self._setting.scope:
            return self._setting.scope
        return (self._library.script.stem,) if self._library.script else ()

    def climb(self) -> Verdict:
        """Climb as far as torch goes."""
        runs_under_torch = self._build() and self._imports() and self._probes()
        if runs_under_torch and self._limits.tests:
            self._tests()
        if runs_under_torch:
            self._compiled_while_running()
        if self._kernels is not None:
            self.met.notes.extend(self._kernels.notes)
        if not runs_under_torch:
            return Verdict.BASELINE_FAILED
        return Verdict.GAPS if self.met.findings else Verdict.NO_GAPS

    # -- rungs ---------------------------------------------------------------------------------------------------

    def _build(self) -> bool:
        """Build the library on both sides; whether torch's build lets the diagnosis go on."""
        builds = build(self._workshop, self.met, self._progress)
        self._builds = builds
        self._setting = replace(self._setting, paths=builds.paths, unbuilt=builds.unbuilt)
        if builds.jit is not None:
            self._setting = replace(self._setting, environ=builds.jit.environ)
        if builds.pair is not None:
            ours, theirs = builds.pair
            folder, timeout = self._workshop.folder, self._limits.timeout
            self._kernels = Kernels(ours, theirs, self._bench, folder, timeout, self._progress, builds.extensions)
        return builds.runs_under_torch

    def _imports(self) -> bool:
        """Import the library's packages."""
        library = self._library
        if library.script is not None or not library.packages:
            return True
        importable = {module.partition(".")[0] for module in library.modules}
        names = tuple(package for package in library.packages if package in importable)
        if not names:
            return True
        probe = Probe(ProbeKind.IMPORTS, "import " + ", ".join(names), None, names)
        return self._try(Stage.IMPORT, probe, given=True)

    def _probes(self) -> bool:
        """Run the probes. Those that the user named must run under torch; of the programs that were found, one must.

        A test file that cannot be collected lacks what tests need, which says nothing about the library.
        """
        library = self._library
        given = library.probes_from != "found" or library.script is not None
        run_under_torch = [self._try(Stage.RUN, probe, given=given) for probe in library.probes]
        if given:
            return all(run_under_torch)
        programs = [probe for probe in library.probes if probe.kind is not ProbeKind.PYTEST]
        return any(run_under_torch) or not programs

    def _tests(self) -> None:
        """Run the library's test files."""
        for path in self._library.tests:
            spec = path.relative_to(self._library.root).as_posix()
            self._try(Stage.TEST, Probe(ProbeKind.PYTEST, spec, path), given=False)

    def _compiled_while_running(self) -> None:
        """Look at what was compiled on the way, once all programs have run."""
        if self._builds.jit is not None:
            self._progress("run: looking at every unit that was compiled")
            self.met.add_compiled(self._builds.jit.report())

    # -- one probe -----------------------------------------------------------------------------------------------

    def _try(self, stage: Stage, probe: Probe, *, given: bool) -> bool:
        """One probe on both sides; whether it runs under torch."""
        self._progress(f"{stage}: {probe.spec} under {Runtime.TORCH}")
        base = self._without_failed_parts(stage, self._baseline(stage, probe))
        if not base.passed and not given:
            self.met.skipped.append(Skipped(probe.spec, f"does not run under torch: {base.result.detail}"))
            return False
        self.met.stages.append(base.result)
        if base.passed:
            self._compare(stage, base)
        return base.passed

    def _baseline(self, stage: Stage, probe: Probe) -> Baseline:
        run, result, observed = baseline(self._bench, self._setting, stage, probe)
        return Baseline(probe, run, result, observed)

    def _without_failed_parts(self, stage: Stage, base: Baseline) -> Baseline:
        """Modules that do not import under torch are left out, and said; a probe of none that does has failed."""
        failed = _failed_parts(base.run)
        if not base.passed or base.probe.kind is not ProbeKind.IMPORTS or not failed:
            return base
        unimportable = [Skipped(name, f"does not import under torch: {fate}") for name, fate in failed.items()]
        self.met.skipped.extend(unimportable)
        probe = replace(base.probe, modules=tuple(name for name in base.probe.modules if name not in failed))
        if probe.modules:
            return self._baseline(stage, probe)
        result = replace(base.result, outcome=Outcome.FAILED, detail=unimportable[-1].reason)
        return replace(base, probe=probe, result=result)

    def _compare(self, stage: Stage, base: Baseline) -> None:
        """Run the probe under the target, look below what differs, and keep what that shows."""
        self._setting = replace(self._setting, scope=self._limits.scope or self._scope_of(base.run))
        investigation = investigate(
            self._bench,
            self._setting,
            stage,
            base.probe,
            base.run,
            base.observed,
            self._progress,
            stop_at_first=self._limits.stop_at_first,
        )
        findings = beneath(self._bench, self._setting, investigation.base.trace, investigation.findings)
        if self._kernels is not None and not self._limits.stop_at_first:
            findings = self._kernels.pinned(self._setting, base.probe, findings)
        self._keep(base, replace(investigation, findings=findings))

    def _scope_of(self, run: Run) -> tuple[str, ...]:
        """The library's own packages, and the packages that were seen to import torch."""
        seen = {module.partition(".")[0] for module in run.trace.users} - {"__main__", "__probe__"}
        return tuple(sorted(seen | set(self._library.packages) | set(self._setting.scope)))

    def _keep(self, base: Baseline, investigation: Investigation) -> None:
        self.met.investigated(base.probe, investigation)
        self.met.skipped.extend(Skipped(name, f"not observed: {why}") for name, why in base.run.trace.refused)
        for finding in investigation.findings:
            self.met.add_observed(finding, self._setting.unbuilt, self._target_extensions())

    def _target_extensions(self) -> Path | None:
        """Where the target's extensions are: the library's build, or what was compiled while it ran."""
        built = self._setting.paths[Runtime.TARGET]
        if built:
            return built[0]
        return self._builds.jit.made(Runtime.TARGET) if self._builds.jit else None


def _failed_parts(run: Run) -> dict[str, str]:
    """Parts of a probe that did not pass, and what became of them."""
    ending = run.trace.ending
    if ending.how != "parts":
        return {}
    return {name: fate for name, fate in ending.value.items() if fate != "passed"}
