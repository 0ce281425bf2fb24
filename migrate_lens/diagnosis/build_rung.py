"""The lowest rung of the ladder: a library in; its build on both sides, and where each side finds it, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrate_lens.diagnosis.kernels.marked_build import Builds
from migrate_lens.diagnosis.met import Met
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Finding, Key, Library, Outcome, Runtime, Stage, StageResult, Symptom
from migrate_lens.native import BuildRun, JustInTime, Shelf, build_library, compare_builds, without_libraries


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a library is built with.

    Attributes:
        library: what is built; its tree is only read.
        pythons: the interpreter of each side.
        folder: a private one.
        timeout: seconds that a build may take.
        shelf: where builds are kept.
    """

    library: Library
    pythons: Mapping[Runtime, Path]
    folder: Path
    timeout: float
    shelf: Shelf

    def built(self, runtime: Runtime) -> BuildRun:
        """The library, built by its own setup in one runtime."""
        return build_library(
            self.library, runtime, self.pythons[runtime], self.folder, timeout=self.timeout, shelf=self.shelf
        )


@dataclass(frozen=True, slots=True)
class Built:
    """What the build rung gave.

    Attributes:
        runs_under_torch: False where torch's build failed, which ends a diagnosis.
        builds: both builds; None where nothing was built or torch's failed.
        paths: folders to put on ``sys.path``, by runtime.
        unbuilt: extensions that torch's build gave and the target's did not.
        extensions: dotted names of torch's extension modules.
        jit: the compilers of a library that is built while it runs.
    """

    runs_under_torch: bool = True
    builds: Builds | None = None
    paths: Mapping[Runtime, tuple[Path, ...]] = field(default_factory=lambda: dict.fromkeys(Runtime, ()))
    unbuilt: tuple[str, ...] = ()
    extensions: frozenset[str] = frozenset()
    jit: JustInTime | None = None


def build(workshop: Workshop, met: Met, progress: Progress) -> Built:
    """Build under torch, then under the target, and find what stands between the two."""
    entry = workshop.library.build
    if entry is None or not entry.native:
        return Built()
    if entry.kind == "jit":
        jit = JustInTime(workshop.library, workshop.pythons, workshop.folder, workshop.timeout, workshop.shelf)
        return Built(jit=jit)
    progress(f"build: under {Runtime.TORCH}")
    ours = workshop.built(Runtime.TORCH)
    met.stages.append(ours.result)
    met.notes.extend(ours.notes)
    if not ours.passed:
        return Built(runs_under_torch=ours.result.outcome is Outcome.SKIPPED)
    progress(f"build: under {Runtime.TARGET}")
    theirs = workshop.built(Runtime.TARGET)
    met.stages.append(theirs.result)
    met.exercised = met.exercised or (ours.passed and theirs.passed)
    progress("build: looking at every unit")
    _compare(workshop, ours, theirs, met)
    return _installed(ours, theirs, workshop.folder)


def _compare(workshop: Workshop, ours: BuildRun, theirs: BuildRun, met: Met) -> None:
    """What the target's build shows, unit by unit; a failure that nothing explains is never silent."""
    report = compare_builds(
        ours,
        theirs,
        workshop.pythons[Runtime.TARGET],
        workshop.folder,
        workshop.timeout,
        workshop.shelf,
    )
    met.findings.extend(report.findings)
    met.notes.extend([*theirs.notes, *report.notes])
    if not theirs.passed and not report.findings:
        met.findings.append(_unexplained(theirs.result))


def _installed(ours: BuildRun, theirs: BuildRun, folder: Path) -> Built:
    """Where each side finds the library; one that the target did not build is torch's without what is native."""
    target = theirs.target
    if ours.target is not None and target is None:
        target = without_libraries(ours.target, folder / "unbuilt")
    paths = {
        Runtime.TORCH: _folders(ours.target),
        Runtime.TARGET: _folders(target),
        Runtime.TARGET_GLOBAL: _folders(target),
    }
    extensions = _extensions(ours.target)
    unbuilt = tuple(sorted(extensions - _extensions(theirs.target)))
    return Built(builds=Builds(ours, theirs), paths=paths, unbuilt=unbuilt, extensions=extensions)


def _folders(target: Path | None) -> tuple[Path, ...]:
    return (target,) if target else ()


def _extensions(target: Path | None) -> frozenset[str]:
    """Dotted names of the extension modules below a folder: ``pkg/_C.cpython-311-x86_64.so`` is ``pkg._C``."""
    if target is None:
        return frozenset()
    return frozenset(_module_name(path.relative_to(target)) for path in target.rglob("*.so"))


def _module_name(relative: Path) -> str:
    stem = relative.name.partition(".")[0].removesuffix("_pd_")
    return ".".join((*relative.parts[:-1], stem))


def _unexplained(result: StageResult) -> Finding:
    """A build that fails under the target and that no diagnostic explains."""
    key = Key(Symptom.COMPILE_ERROR, f"the build under {Runtime.TARGET}", str(result.outcome))
    return Finding(key, Stage.BUILD, (), "builds", result.detail, {"build_step": "setup_py"}, (result.detail,))
