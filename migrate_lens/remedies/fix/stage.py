"""Changed files of a library in; whether its probes end as torch's did on both sides, in a copy with them, out."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_lens.compare.divergences import GRADIENT, Divergence, divergences
from migrate_lens.compare.findings import node_name
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.discovery.discover import discover
from migrate_lens.model.errors import LensError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Key, Library, Probe, ProbeKind, Runtime
from migrate_lens.model.trace import Ending, Finished
from migrate_lens.model.value import DICT, TUPLE, Difference, Encoded, difference, tag
from migrate_lens.native.build import build_library
from migrate_lens.native.shelf import Shelf
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.programs.values import items_of
from migrate_lens.protocol.journal import BACKWARD_PASS
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.remedies.fix.examination import alike, of_script
from migrate_lens.runs.bench import Setting
from migrate_lens.state import cache_folder

_LARGEST = 200 << 20
_WITH_GRADIENTS = 2  # a result, and the gradients by name
_LINE = 300  # characters of a reason that are shown
_LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", ".venv", "venv", "node_modules", ".migrate-lens", "build", "issues"
)


class Stage:
    """The stage that failed, run again.

    Args:
        diagnosis: the last diagnosis.
        lab: where probes are run.
        records: what torch did, one for each probe.
        progress: tells a waiting person what is being done.

    Attributes:
        is_trained: whether a backward pass was made through a probe, so that gradients were held against torch's.
    """

    def __init__(
        self, diagnosis: kept.Diagnosis, lab: BenchLab, records: Sequence[ProbeRecord], progress: Progress
    ) -> None:
        self._diagnosis = diagnosis
        self._lab = lab
        self._records = records
        self._progress = progress
        self._root = diagnosis.library.root
        self._targets: dict[Runtime, tuple[Path, ...]] = {}
        self.is_trained = False
        self._endings: dict[str, tuple[Ending, bool]] = {}
        self._built_of: dict[str, bytes] | None = None
        self._build_said = ""

    def passes(self, files: Mapping[str, bytes]) -> str:
        """Run the probes in a copy that has the patches; empty, or what still fails."""
        self._progress("running the stage again in a copy with the patches")
        failure = self._builds(files) if self._diagnosis.native else ""
        if not failure and not self.is_alike_on_torch(files):
            failure = "under torch the library leaves something else behind with it"
        for probe, record in self._probes():
            failure = failure or self._lab_runs(files, probe, record)
        return failure

    def serves(self, files: Mapping[str, bytes], others: Mapping[str, bytes], api: str) -> bool:
        """Whether a workaround is what gets the library past a gap, and changes nothing else, training included.

        Past other gaps Paddle is handed torch's results, so that what lies behind them is reached; whether the name is
        there it answers itself. Without the workaround the API must diverge, with it nothing may that did not before.

        Args:
            files: the files with it and with those of other gaps.
            others: the files with those of other gaps alone.
            api: what the gap is about.
        """
        shown = False
        for probe, record in self._probes():
            before, after = self._healed(others, probe, record, api), self._healed(files, probe, record, api)
            if after is None or (before is not None and not after <= before) or _at(after, api):
                return False
            shown = shown or before is None or bool(_at(before, api))
        return shown

    def is_alike_on_torch(self, files: Mapping[str, bytes]) -> bool:
        """Whether the programs leave behind under torch, with changed files, all that they leave without them.

        Values, what the inputs hold, gradients, and which memory is shared.
        """
        return all(self._leaves_the_same(files, probe) for probe in self._diagnosis.probes)

    def _leaves_the_same(self, files: Mapping[str, bytes], probe: kept.KeptProbe) -> bool:
        """Whether one program does; one that is not alike when it runs again cannot tell."""
        want, got = (self._left_behind(changed, probe) for changed in ({}, files))
        if want is None or (got is not None and alike(want, got)):
            return True
        again = self._left_behind({}, probe)
        return again is None or not alike(want, again)

    def _left_behind(self, files: Mapping[str, bytes], probe: kept.KeptProbe) -> Encoded:
        """All that can be seen under torch at a program's end; None where it is no script, or does not get there."""
        setting, copy = self.copied(files, probe)
        if copy.path is None or copy.kind is not ProbeKind.SCRIPT:
            return None
        if not copy.path.is_relative_to(setting.library.root):
            copy = replace(copy, path=self._lab.fresh() / copy.path.name)
        assert copy.path is not None
        source = copy.path if copy.path.exists() else probe.path
        assert source is not None
        put(copy.path.parent, copy.path.name, of_script(source.read_bytes()))
        ending = self._lab.run(setting, Runtime.TORCH, copy).trace.ending
        return ending.value if isinstance(ending, Finished) and ending.has_value else None

    def _healed(
        self, files: Mapping[str, bytes], probe: kept.KeptProbe, record: ProbeRecord, api: str
    ) -> Counter[Key] | None:
        """What diverges in a healed run with changed files; None where the probe does not end as torch's did."""
        want, backward = self._wanted(probe, record)
        setting, copy = self.copied(files, probe, backward=backward)
        base = self._lab.watch(setting, Runtime.TORCH, copy)
        if _differs(want, base.trace.ending):
            return None
        there = [e.place for e in base.trace.events if e.api == api and e.place.text.startswith("hasattr(")]
        healed = self._lab.heal(setting, copy, base, [node_name(place) for place in there])
        if disagreement(base.trace.ending, healed.trace.ending) is not None:
            return None
        left = (one for one in divergences(base.trace, healed.trace) if _counts(one))
        return Counter(Key(one.symptom, one.want.api) for one in left)

    def _wanted(self, probe: kept.KeptProbe, record: ProbeRecord) -> tuple[Ending, bool]:
        """How a probe ends under torch in the library as it is, and whether that is with gradients."""
        known = self._endings.get(probe.trace)
        if known is None:
            setting, copy = self.copied({}, probe, backward=True)
            ending = self._lab.run(setting, Runtime.TORCH, copy).trace.ending
            known = (ending, True) if ending.how is record.trace.ending.how else (record.trace.ending, False)
            self.is_trained = self.is_trained or disagreement(record.trace.ending, known[0]) is not None
            self._endings[probe.trace] = known
        return known

    def _probes(self) -> Iterator[tuple[kept.KeptProbe, ProbeRecord]]:
        return zip(self._diagnosis.probes, self._records, strict=True)

    def _builds(self, files: Mapping[str, bytes]) -> str:
        """Build the library with the patches on both sides, where that was not done; empty, or what fails."""
        built_of = {name: data for name, data in files.items() if "/" in name or name == "setup.py"}
        if built_of != self._built_of:
            self._built_of = built_of
            self._build_said = self._build(files)
        return self._build_said

    def _build(self, files: Mapping[str, bytes]) -> str:
        folder = self.copy(files)
        library = discover(folder)
        target, shelf = folder.parent / f"{folder.name}-built", Shelf(cache_folder() / "builds")
        for runtime in (Runtime.TARGET, Runtime.TORCH):
            python, limit = self._diagnosis.python(runtime), self._diagnosis.index.timeout
            built = build_library(library, runtime, python, target, timeout=limit, shelf=shelf)
            if built.target is None:
                return f"the build under {runtime} still fails: {built.result.detail}"[:_LINE]
            self._targets[runtime] = (built.target,)
        return ""

    def _lab_runs(self, files: Mapping[str, bytes], probe: kept.KeptProbe, record: ProbeRecord) -> str:
        try:
            want, backward = self._wanted(probe, record)
            setting, copy = self.copied(files, probe, backward=backward)
        except LensError as error:
            return f"the stage could not be run again: {error.message}"
        lone = self._diagnosis.library.script is not None
        for runtime in (Runtime.TORCH, Runtime.TARGET_GLOBAL if lone else Runtime.TARGET):
            run = self._lab.run(setting, runtime, copy)
            differs = _differs(want, run.trace.ending, flags=runtime is Runtime.TORCH)
            if differs is None and not run.fate.timed_out:
                continue
            how = ending_said(run.trace.ending)
            if differs is not None and run.trace.ending.how == "finished":
                what = "gradients differ" if _in_gradients(want, run.trace.ending) else "result differs"
                how = f"has another outcome, its {what}: {differs.expected} | {differs.actual}"
            return f"{probe.spec} under {runtime} still {how}"[:_LINE]
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
        script = self._diagnosis.library.script
        if script is None:
            _copy(self._root, folder)
        else:
            _linked(self._root, folder, script.name)
            shutil.copyfile(script, folder / script.name)
        for name, data in files.items():
            put(folder, name, data)
        return folder

    def copied(
        self, files: Mapping[str, bytes], probe: kept.KeptProbe, *, backward: bool = False
    ) -> tuple[Setting, Probe]:
        """A copy of the library with changed files, and the probe in it."""
        folder = self.copy(files)
        script = self._diagnosis.library.script
        library = discover(folder if script is None else folder / script.name)
        paths: dict[Runtime, tuple[Path, ...]] = dict.fromkeys(Runtime, ()) | self._targets
        setting = Setting(
            library, paths, self._diagnosis.report.scope, self._diagnosis.index.timeout, backward=backward
        )
        return setting, _relocated(probe, self._root, folder, library)


def _at(left: Counter[Key], api: str) -> int:
    """How often something diverges at an API."""
    return sum(number for key, number in left.items() if key.api == api)


def _counts(one: Divergence) -> bool:
    """Whether a divergence is held against a workaround: a hard one, and any in the gradients that a pass left."""
    return one.hard or (one.want.place.module == BACKWARD_PASS and one.detail != GRADIENT)


def _differs(want: Ending, got: Ending, *, flags: bool = True) -> Difference | None:
    """How an ending differs from torch's; ``flags``: also in whether its tensors require a gradient."""
    differs = disagreement(want, got)
    if differs is None and flags and isinstance(want, Finished) and isinstance(got, Finished):
        return difference(want.value, got.value)
    return differs


def _in_gradients(want: Ending, got: Ending) -> bool:
    """Whether two outcomes with gradients differ in those alone."""
    if not isinstance(want, Finished) or not isinstance(got, Finished):
        return False
    sides = (want.value, got.value)
    if any(tag(side) != TUPLE or len(items_of(side)) != _WITH_GRADIENTS for side in sides):
        return False
    (ours, reached), (theirs, _) = map(items_of, sides)
    return tag(reached) == DICT and difference(ours, theirs) is None


def _copy(root: Path, folder: Path) -> None:
    """Copy a library.

    Raises:
        UsageError: it is too large.
    """
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files if ".git" not in path.parts)
    if size > _LARGEST:
        raise UsageError(f"{root} has {size >> 20} MB", "apply the patch in a copy of your own")
    shutil.copytree(root, folder, ignore=_LEFT_OUT, dirs_exist_ok=True, symlinks=True)


def put(folder: Path, name: str, data: bytes) -> None:
    """Write a file into a copy, but never through a link, which leads to the user's own file.

    A folder on the way that is a link becomes a folder of links to what is in it.
    """
    path = folder
    for part in Path(name).parent.parts:
        path /= part
        if path.is_symlink():
            there = path.resolve()
            path.unlink()
            path.mkdir()
            _linked(there, path, "")
        path.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_bytes(data)


def _linked(root: Path, folder: Path, script: str) -> None:
    """What stands beside a lone script is linked beside its copy, so that its imports find the copy first."""
    for path in root.iterdir():
        if path.name != script and not path.name.startswith(".") and path.name != "__pycache__":
            (folder / path.name).symlink_to(path)


def _relocated(probe: kept.KeptProbe, root: Path, folder: Path, library: Library) -> Probe:
    path = probe.path
    if path is not None and path.is_relative_to(root):
        path = folder / path.relative_to(root)
    modules = library.modules if probe.kind is ProbeKind.IMPORTS else ()
    return Probe(probe.kind, probe.spec, path, modules)
