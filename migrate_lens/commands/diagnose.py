"""One function per command; no printing. Options in, a report out."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_lens import native as ladder
from migrate_lens.classify import classify, load_rules
from migrate_lens.config import Options
from migrate_lens.diagnosis.investigate import Investigation, baseline, investigate
from migrate_lens.diagnosis.kernels.construct_at_fault import KernelSearch
from migrate_lens.diagnosis.kernels.marked_build import Builds
from migrate_lens.diagnosis.lower_operators import with_lower_operators
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.discovery.discover import discover
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import (
    Environment,
    Finding,
    FirstDivergence,
    Key,
    Library,
    Outcome,
    Probe,
    ProbeKind,
    Report,
    Runtime,
    Skipped,
    Stage,
    StageResult,
    Symptom,
    TraceSummary,
)  # fmt: skip
from migrate_lens.model.trace import PASSED, Parts
from migrate_lens.runs.bench import Bench, Run, Setting
from migrate_lens.runs.worker import Worker
from migrate_lens.state import TRACES, cache_folder, waiting, write

INDEX = "index.json"


def diagnose(options: Options, progress: Progress) -> Report:
    """Climb the ladder under torch, then under Paddle, and name every gap.

    Raises:
        LensError: the path, the configuration, an interpreter or a rule is wrong.
    """
    library = discover(options.path, options.probes, options.configured)
    load_rules()
    with _bench(options) as (bench, torch, paddle, folder):
        progress("starting torch and paddle")
        environments = (torch.environment(), paddle.environment())
        climb = _Climb(options, library, bench, folder, progress)
        verdict = climb.run()
        _keep_traces(climb, options)
    return climb.report(environments, verdict)


@contextmanager
def _bench(options: Options) -> Iterator[tuple[Bench, Worker, Worker, Path]]:
    """A pair of workers, and a private folder that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="migrate-lens-", ignore_cleanup_errors=True) as name,
        Worker(options.torch_python, "torch") as torch,
        Worker(options.paddle_python, "paddle", keep_torch=options.keep_torch) as paddle,
    ):
        folder = Path(name)
        yield Bench(torch, paddle, folder), torch, paddle, folder


def _keep_traces(climb: _Climb, options: Options) -> None:
    """Torch's traces stay in the state folder: reproductions are made from what they recorded.

    They wait beside their place until the report is stored with them.
    """
    kept = waiting(options.state / TRACES)
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for number, (_, run) in enumerate(climb.bases):
        shutil.copyfile(run.file, kept / f"{number}.trace")
    write(kept / INDEX, json.dumps(_index(climb, options), indent=1))


def _index(climb: _Climb, options: Options) -> dict[str, object]:
    """What the traces are of, and how the diagnosis was asked for."""
    probes = [
        {"trace": f"{number}.trace", "kind": str(probe.kind), "spec": probe.spec, "path": str(probe.path or "")}
        for number, (probe, _) in enumerate(climb.bases)
    ]
    pythons = {"torch_python": str(options.torch_python), "paddle_python": str(options.paddle_python)}
    return {
        "path": str(options.path.resolve()), **pythons, "keep_torch": options.keep_torch, "timeout": options.timeout,
        "probes": probes, "asked": [*options.probes],
    }  # fmt: skip


@dataclass
class _Climb:
    """One diagnosis on its way up the ladder; ``run`` gives the verdict, ``report`` all that was met."""

    options: Options
    library: Library
    bench: Bench
    folder: Path
    progress: Progress
    stages: list[StageResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    traces: list[TraceSummary] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bases: list[tuple[Probe, Run]] = field(default_factory=list)
    first: FirstDivergence | None = None
    kernels: KernelSearch | None = None
    setting: Setting = field(init=False)
    jit: ladder.JustInTime | None = None

    def __post_init__(self) -> None:
        paths: dict[Runtime, tuple[Path, ...]] = dict.fromkeys(Runtime, ())
        options = self.options
        self.setting = Setting(self.library, paths, options.scope, options.timeout, backward=options.backward)

    # -- rungs ---------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Climb; ``baseline_failed``, ``gaps`` or ``no_gaps``."""
        if not self._build() or not self._imports() or not self._probes():
            return "baseline_failed"
        self._tests()
        self._compiled_while_running()
        return "gaps" if self.findings else "no_gaps"

    def _build(self) -> bool:
        library, options = self.library, self.options
        shelf = ladder.Shelf(cache_folder() / "builds", fresh=not options.cache)
        if library.build is None or not library.build.native:
            return True
        if library.build.kind == "jit":
            self.jit = ladder.JustInTime(library, self._pythons(), self.folder, options.timeout, shelf)
            self.setting = replace(self.setting, environ=self.jit.environ)
            return True
        self.progress("build: under torch")
        ours = ladder.build_library(
            library, Runtime.TORCH, options.torch_python, self.folder, timeout=options.timeout, shelf=shelf
        )
        self.stages.append(ours.result)
        self.notes.extend(ours.notes)
        if not ours.passed:
            return ours.result.outcome is Outcome.SKIPPED
        self.progress("build: under paddle")
        theirs = ladder.build_library(
            library, Runtime.TARGET, options.paddle_python, self.folder, timeout=options.timeout, shelf=shelf
        )
        self.stages.append(theirs.result)
        self.progress("build: looking at every unit")
        report = ladder.compare_builds(
            library, ours, theirs, options.paddle_python, self.folder, options.timeout, shelf
        )
        self.findings.extend(report.findings)
        self.notes.extend([*theirs.notes, *report.notes])
        self._installed(ours.target, theirs.target)
        names = frozenset(_extensions(ours.target))
        builds = Builds(ours, theirs)
        self.kernels = KernelSearch(builds, self.bench, self.folder, options.timeout, self.progress, names)
        if not theirs.passed and not report.findings:
            self.findings.append(_unexplained(theirs.result))
        return True

    def _pythons(self) -> dict[Runtime, Path]:
        return {Runtime.TORCH: self.options.torch_python, Runtime.TARGET: self.options.paddle_python}

    def _compiled_while_running(self) -> None:
        """What compilers met while the program ran says more than the exception that a loader ended in."""
        if self.jit is None:
            return
        self.progress("run: looking at every unit that was compiled")
        report = self.jit.report()
        self.notes.extend(report.notes)
        loads = [f for f in self.findings if f.key.api in ladder.LOADERS]
        if report.findings:
            self.findings = [f for f in self.findings if f not in loads or f.key.symptom is not Symptom.EXCEPTION]
        for finding in report.findings:
            sites = finding.sites or tuple(site for load in loads for site in load.sites)
            self._add_once(replace(finding, sites=sites, stage=loads[0].stage if loads else Stage.RUN))

    def _installed(self, ours: Path | None, theirs: Path | None) -> None:
        """Where each side finds the library; one that Paddle's build did not give is torch's without what is native."""
        shown = theirs
        if ours is not None and theirs is None:
            shown = ladder.without_libraries(ours, self.folder / "unbuilt")
        paths = {
            Runtime.TORCH: _folders(ours),
            Runtime.TARGET: _folders(shown),
            Runtime.TARGET_GLOBAL: _folders(shown),
        }
        built, other = _extensions(ours), _extensions(theirs)
        self.setting = replace(self.setting, paths=paths, unbuilt=tuple(sorted(built - other)))

    def _imports(self) -> bool:
        if self.library.script is not None or not self.library.packages:
            return True
        names = tuple(p for p in self.library.packages if p in {m.partition(".")[0] for m in self.library.modules})
        probe = Probe(ProbeKind.IMPORTS, "import " + ", ".join(names or self.library.packages), None, names)
        return not names or self._climb_to(Stage.IMPORT, probe, given=True)

    def _probes(self) -> bool:
        """Probes that the user named must run under torch; of the programs that were found, one must.

        A test file that cannot be collected lacks what tests need, which says nothing about the library.
        """
        given = self.library.probes_from != "found" or self.library.script is not None
        done = [self._climb_to(Stage.RUN, probe, given=given) for probe in self.library.probes]
        programs = [probe for probe in self.library.probes if probe.kind is not ProbeKind.PYTEST]
        return all(done) if given else any(done) or not programs

    def _tests(self) -> None:
        if self.options.tests:
            for path in self.library.tests:
                spec = path.relative_to(self.library.root).as_posix()
                self._climb_to(Stage.TEST, Probe(ProbeKind.PYTEST, spec, path), given=False)

    def _climb_to(self, stage: Stage, probe: Probe, *, given: bool) -> bool:
        """One probe on both sides; whether it runs under torch."""
        self.progress(f"{stage}: {probe.spec} under torch")
        base = baseline(Subject(self.bench, self.setting, stage, probe))
        result = base.result
        failed = _parts_failed(base.run)
        if result.outcome is Outcome.PASSED and probe.kind is ProbeKind.IMPORTS and failed:
            self.skipped.extend(Skipped(name, f"does not import under torch: {fate}") for name, fate in failed.items())
            probe = replace(probe, modules=tuple(m for m in probe.modules if m not in failed))
            if not probe.modules:
                result = replace(result, outcome=Outcome.FAILED, detail=self.skipped[-1].reason)
            else:
                base = baseline(Subject(self.bench, self.setting, stage, probe))
                result = base.result
        if result.outcome is not Outcome.PASSED and not given:
            self.skipped.append(Skipped(probe.spec, f"does not run under torch: {result.detail}"))
            return False
        self.stages.append(result)
        if result.outcome is not Outcome.PASSED:
            return False
        self._compare(stage, probe, base)
        return True

    def _compare(self, stage: Stage, probe: Probe, base: Baseline) -> None:
        self.setting = replace(self.setting, scope=self.options.scope or self._scope(base.run))
        subject = Subject(self.bench, self.setting, stage, probe)
        done = investigate(subject, base, self.progress, stop_at_first=self.options.stop_at_first)
        findings = with_lower_operators(self.bench, self.setting, done.base.trace, done.findings)
        done = replace(done, findings=findings)
        self.bases.append((probe, done.base))
        if self.kernels is not None and not self.options.stop_at_first:
            done = replace(done, findings=self.kernels.with_constructs(self.setting, probe, done.findings))
        self._take(done, base.run)

    def _scope(self, run: Run) -> tuple[str, ...]:
        """The library's own packages, and the packages that were seen to import torch."""
        seen = {module.partition(".")[0] for module in run.trace.users} - {"__main__", "__probe__"}
        return tuple(sorted(seen | set(self.library.packages) | set(self.setting.scope)))

    def _take(self, done: Investigation, run: Run) -> None:
        self.stages.extend(done.stages)
        self.notes.extend(done.notes)
        self.skipped.extend(Skipped(r.module, f"not observed: {r.reason}") for r in run.trace.refused)
        self.first = self.first or done.first
        if done.summary is not None:
            self.traces.append(done.summary)
        target = self.setting.paths[Runtime.TARGET] or ((self.jit.made(Runtime.TARGET),) if self.jit else ())
        for finding in done.findings:
            self._add(finding, target[0] if target else None)

    def _add(self, finding: Finding, target: Path | None) -> None:
        """A finding; one about loading an extension is named by what it misses, follow-on ones are folded."""
        if self.setting.unbuilt and _of_unbuilt(finding, self.setting.unbuilt):
            return
        linked = ladder.link_findings(finding.actual, self.library, target)
        if linked and finding.key.symptom.value in ("exception", "missing_api", "import_error"):
            for each in linked:
                self._add_once(each)
            return
        self._add_once(finding)

    def _add_once(self, finding: Finding) -> None:
        for index, known in enumerate(self.findings):
            if known.key == finding.key:
                sites = tuple(dict.fromkeys((*known.sites, *finding.sites)))
                self.findings[index] = replace(known, sites=sites)
                return
        self.findings.append(finding)

    # -- the end -------------------------------------------------------------------------------------------------

    def report(self, environments: tuple[Environment, Environment], verdict: str) -> Report:
        """All that was met."""
        gaps = classify(self.findings) if verdict == "gaps" else ()
        skipped = tuple(dict.fromkeys((*self.library.skipped, *self.skipped)))
        self.notes.extend(self.kernels.notes if self.kernels is not None else ())
        return Report(
            self.library, *environments, platform.platform(), self._shown_scope(), tuple(self.stages),
            tuple(self.traces), self.first, gaps, skipped, verdict, tuple(dict.fromkeys(self.notes)),
        )  # fmt: skip

    def _shown_scope(self) -> tuple[str, ...]:
        if self.setting.scope:
            return self.setting.scope
        return (self.library.script.stem,) if self.library.script else ()


def _folders(target: Path | None) -> tuple[Path, ...]:
    return (target,) if target else ()


def _extensions(target: Path | None) -> set[str]:
    """Dotted names of the extension modules below a folder: ``pkg/_C.cpython-311-x86_64.so`` is ``pkg._C``."""
    if target is None:
        return set()
    found = set()
    for path in target.rglob("*.so"):
        relative = path.relative_to(target)
        found.add(".".join((*relative.parts[:-1], relative.name.partition(".")[0].removesuffix("_pd_"))))
    return found


def _parts_failed(run: Run) -> dict[str, str]:
    ending = run.trace.ending
    return {n: fate for n, fate in ending.fates.items() if fate != PASSED} if isinstance(ending, Parts) else {}


def _of_unbuilt(finding: Finding, unbuilt: tuple[str, ...]) -> bool:
    """Whether a finding only says again that an extension was not built."""
    api = finding.key.api
    if api.startswith("torch.ops.") or any(api == n or api.startswith(f"{n}.") for n in unbuilt):
        return True
    loading = "ImportError" in finding.actual or "OSError" in finding.actual
    return loading and any(n.rpartition(".")[2] in finding.actual for n in unbuilt)


def _unexplained(result: StageResult) -> Finding:
    """A build that fails under Paddle and that no diagnostic explains: never silent."""
    key = Key(Symptom.COMPILE_ERROR, "the build under paddle", str(result.outcome))
    return Finding(key, Stage.BUILD, (), "builds", result.detail, {"build_step": "setup_py"}, (result.detail,))
