"""Changed files of a library in; whether its probes end as torch's did on both sides, in a copy with them, out."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_lens.compare.divergences import divergences
from migrate_lens.compare.findings import node_name
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import LensError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Library, Probe, ProbeKind, Runtime
from migrate_lens.model.trace import Ending
from migrate_lens.native.build import build_library
from migrate_lens.native.shelf import Shelf
from migrate_lens.programs.synthesis import Recording
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.runs.bench import Setting
from migrate_lens.state import cache_folder

_LARGEST = 200 << 20
_LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", ".venv", "venv", "node_modules", ".migrate-lens", "build", "issues"
)


class Stage:
    """The stage that failed, run again.

    Args:
        diagnosis: the last diagnosis.
        lab: where probes are run.
        heard: torch's traces, one for each probe.
        progress: tells a waiting person what is being done.
    """

    def __init__(
        self, diagnosis: kept.Diagnosis, lab: BenchLab, heard: Sequence[Recording], progress: Progress
    ) -> None:
        self._diagnosis = diagnosis
        self._lab = lab
        self._heard = heard
        self._progress = progress
        self._root = Path(diagnosis.report["library"]["root"])
        self._targets: dict[Runtime, tuple[Path, ...]] = {}
        self._built_of: dict[str, bytes] | None = None
        self._build_said = ""

    def passes(self, files: Mapping[str, bytes]) -> str:
        """Run the probes in a copy that has the patches; empty, or what still fails."""
        self._progress("running the stage again in a copy with the patches")
        said = self._builds(files) if self._diagnosis.native else ""
        for probe, recorded in zip(self._diagnosis.index["probes"], self._heard, strict=True):
            said = said or self._lab_runs(files, probe, recorded.trace.ending)
        return said

    def serves(self, files: Mapping[str, bytes], api: str) -> bool:
        """Whether the probes, with changed files, end as torch's did, and Paddle fails no more at an API.

        Past other gaps Paddle is handed torch's results, so that what lies behind them is reached; whether the name is
        there it answers itself.
        """
        for probe, recorded in zip(self._diagnosis.index["probes"], self._heard, strict=True):
            setting, again = self.copied(files, probe)
            base = self._lab.watch(setting, Runtime.TORCH, again)
            if disagreement(recorded.trace.ending, base.trace.ending) is not None:
                return False
            asked = [e.place for e in base.trace.events if e.api == api and e.place.text.startswith("hasattr(")]
            healed = self._lab.heal(setting, again, base, [node_name(place) for place in asked])
            if disagreement(base.trace.ending, healed.trace.ending) is not None:
                return False
            if any(d.hard and api in (d.want.api, d.got.api) for d in divergences(base.trace, healed.trace)):
                return False
        return True

    def _builds(self, files: Mapping[str, bytes]) -> str:
        """Build the library with the patches on both sides, where that was not done; empty, or what fails."""
        built_of = {name: data for name, data in files.items() if "/" in name or name == "setup.py"}
        if built_of == self._built_of:
            return self._build_said
        self._built_of, self._build_said = built_of, self._build(files)
        return self._build_said

    def _build(self, files: Mapping[str, bytes]) -> str:
        folder = self.copy(files)
        library = discover(folder)
        for runtime, family in ((Runtime.TARGET, "paddle"), (Runtime.TORCH, "torch")):
            python, limit = self._diagnosis.python(family), self._diagnosis.index["timeout"]
            target, shelf = folder.parent / f"{folder.name}-built", Shelf(cache_folder() / "builds")
            built = build_library(library, runtime, python, target, timeout=limit, shelf=shelf)
            if built.target is None:
                return f"the build under {runtime} still fails: {built.result.detail}"[:300]
            self._targets[runtime] = (built.target,)
        return ""

    def _lab_runs(self, files: Mapping[str, bytes], probe: Mapping[str, Any], want: Ending) -> str:
        try:
            setting, again = self.copied(files, probe)
        except LensError as error:
            return f"the stage could not be run again: {error.message}"
        lone = self._diagnosis.report["library"]["script"] is not None
        for runtime in (Runtime.TORCH, Runtime.TARGET_GLOBAL if lone else Runtime.TARGET):
            run = self._lab.run(setting, runtime, again)
            differs = disagreement(want, run.trace.ending)
            if differs is not None or run.fate.timed_out:
                how = (
                    ending_said(run.trace.ending)
                    if run.trace.ending.how != "finished"
                    else f"its result differs: {differs}"
                )
                return f"{probe['spec']} under {runtime} still {how}"[:300]
        return ""

    def targets(self, runtime: Runtime, files: Mapping[str, bytes]) -> tuple[Path, ...]:
        """Where a build with changed files was installed for a runtime; nowhere where nothing is built."""
        if self._diagnosis.native:
            self._builds(files)
        return self._targets.get(runtime, ())

    def copy(self, files: Mapping[str, bytes]) -> Path:
        """A copy of the library with changed files; what stands beside a lone script is linked.

        Raises:
            UsageError: it is too large.
        """
        folder = self._lab.fresh()
        script = self._diagnosis.report["library"]["script"]
        if script is None:
            _copy(self._root, folder)
        else:
            _linked(self._root, folder, script)
            shutil.copyfile(self._root / script, folder / script)
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return folder

    def copied(self, files: Mapping[str, bytes], probe: Mapping[str, Any]) -> tuple[Setting, Probe]:
        """A copy of the library with changed files, and the probe in it."""
        report = self._diagnosis.report
        folder = self.copy(files)
        script = report["library"]["script"]
        library = discover(folder / script) if script else discover(folder)
        paths: dict[Runtime, tuple[Path, ...]] = dict.fromkeys(Runtime, ()) | self._targets
        setting = Setting(library, paths, tuple(report["scope"]), self._diagnosis.index["timeout"])
        return setting, _relocated(probe, self._root, folder, library)


def _copy(root: Path, folder: Path) -> None:
    """Copy a library.

    Raises:
        UsageError: it is too large.
    """
    size = sum(
        p.stat().st_size for p in root.rglob("*") if p.is_file() and not p.is_symlink() and ".git" not in p.parts
    )
    if size > _LARGEST:
        raise UsageError(f"{root} has {size >> 20} MB", "apply the patch in a copy of your own")
    shutil.copytree(root, folder, ignore=_LEFT_OUT, dirs_exist_ok=True, symlinks=True)


def _linked(root: Path, folder: Path, script: str) -> None:
    """What stands beside a lone script is linked beside its copy, so that its imports find the copy first."""
    for path in root.iterdir():
        if path.name != script and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)


def _relocated(probe: Mapping[str, Any], root: Path, folder: Path, library: Library) -> Probe:
    path = Path(probe["path"]) if probe["path"] else None
    if path is not None and path.is_relative_to(root):
        path = folder / path.relative_to(root)
    modules = library.modules if probe["kind"] == "imports" else ()
    return Probe(ProbeKind(probe["kind"]), probe["spec"], path, modules)
