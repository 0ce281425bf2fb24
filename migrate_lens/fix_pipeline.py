"""The command behind ``fix``: the last diagnosis in; workarounds that were tried, as patches, out."""

from __future__ import annotations

import getpass
import json
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from migrate_lens import state
from migrate_lens.compare.outcome import disagreement, ending_said
from migrate_lens.errors import LensError, StateError, UsageError
from migrate_lens.events import Ending
from migrate_lens.ladder.build import build_library
from migrate_lens.library import discover
from migrate_lens.model import Library, Probe, ProbeKind, Runtime
from migrate_lens.remedies import bridges, kept
from migrate_lens.remedies.fixing import NoReplacement, Replacement, find
from migrate_lens.remedies.native_reproduce import NATIVE_LAYERS
from migrate_lens.remedies.patches import Comment, diff, patched, relative
from migrate_lens.remedies.synthesis import Recording
from migrate_lens.remedy_lab import BenchLab
from migrate_lens.remedy_pipeline import Progress, laboratory
from migrate_lens.trace.bench import Setting

OFFERED, PARTIAL, REFUSED, NONE = "offered", "partial", "refused", "none"
_PATCHES = "patches"
_LARGEST = 200 << 20
_LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", ".venv", "venv", "node_modules", ".migrate-lens", "build", "issues"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What ``fix`` was asked to do.

    Attributes:
        state: where the last diagnosis is.
        names: gaps; empty means all that may have a workaround.
        apply: write the patches to the library's tree.
        force: also where that tree has changes.
        owner: whom the comment names; an issue wins.
        issue: the issue that the comment names.
    """

    state: Path
    names: tuple[str, ...] = ()
    apply: bool = False
    force: bool = False
    owner: str = ""
    issue: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of one gap.

    Attributes:
        gap: its id.
        outcome: ``offered``, ``partial``, ``refused`` or ``none``.
        said: why, or what was verified.
        kind: of the workaround.
        patch: a unified diff; empty where there is none.
        file: where the patch was kept.
        applied: whether it was written to the tree.
    """

    gap: str
    outcome: str
    said: str
    kind: str = ""
    patch: str = ""
    file: str = ""
    applied: bool = False


def fix(asked: Asked, progress: Progress) -> tuple[Fixed, ...]:
    """Find, try, verify and perhaps apply workarounds.

    Raises:
        LensError: there is no diagnosis, no such gap, or a tree that must not be written to.
    """
    diagnosis = kept.load(asked.state)
    gaps = kept.chosen(diagnosis, asked.names, everything=True)
    progress("starting torch and paddle")
    with laboratory(diagnosis) as (lab, heard):
        maker = _Fixer(asked, diagnosis, lab, heard, progress)
        return maker.run(gaps)


class _Fixer:
    def __init__(self, asked: Asked, diagnosis: kept.Diagnosis, lab: BenchLab, heard: Sequence[Recording],
                 progress: Progress) -> None:  # fmt: skip
        self._asked = asked
        self._diagnosis = diagnosis
        self._lab = lab
        self._heard = heard
        self._progress = progress
        self._root = Path(diagnosis.report["library"]["root"])
        self._made: dict[str, tuple[Replacement, ...]] = {}
        self._targets: dict[Runtime, tuple[Path, ...]] = {}

    def run(self, gaps: Sequence[Mapping[str, Any]]) -> tuple[Fixed, ...]:
        done = [self._found(gap) for gap in gaps]
        stage = self._stage_passes(self._combined(gaps)) if self._made else ""
        done = [self._judged(d, gap, stage) for d, gap in zip(done, gaps, strict=True)]
        if self._asked.apply:
            done = self._applied(done, gaps)
        self._noted(done)
        return tuple(done)

    # -- one gap ---------------------------------------------------------------------------------------------------

    def _found(self, gap: Mapping[str, Any]) -> Fixed:
        refusal = why_refused(gap)
        if refusal:
            return Fixed(gap["id"], REFUSED, refusal)
        self._progress(f"{gap['id']}: trying replacements")
        if gap["layer"] in NATIVE_LAYERS and self._diagnosis.native:
            found = bridges.find(gap, self._root)
        else:
            before = [one for made in self._made.values() for one in made]
            found = find(kept.case_of(gap), self._heard, self._lab, before)
        if isinstance(found, NoReplacement):
            return Fixed(gap["id"], NONE, found.reason)
        if any(not one.path.resolve().is_relative_to(self._root.resolve()) for one in found):
            return Fixed(gap["id"], NONE, "the call stands outside the library")
        self._made[gap["id"]] = found
        return Fixed(gap["id"], PARTIAL, "", found[0].candidate.kind)

    def _judged(self, done: Fixed, gap: Mapping[str, Any], stage: str) -> Fixed:
        if done.outcome != PARTIAL:
            return done
        old, new = self._files([gap])
        patch = diff(old, new)
        call = "the call gives torch's result on both sides"
        if done.kind == "cpp_bridge":
            call = "it builds on both sides"
            if stage:
                return replace(done, outcome=NONE, said=f"the bridge was tried: {stage}", kind="")
        if stage == "":
            said = f"verified: run stage passes, values equal torch ({call})"
            return replace(done, outcome=OFFERED, said=said, patch=patch)
        return replace(done, said=f"verified for the call alone ({call}); {stage}", patch=patch)

    def _files(self, gaps: Sequence[Mapping[str, Any]]) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """The files that the replacements of some gaps change: as they are, and changed."""
        old: dict[str, bytes] = {}
        new: dict[str, bytes] = {}
        for path in dict.fromkeys(one.path for gap in gaps for one in self._made.get(gap["id"], ())):
            name = relative(path, self._root)
            old[name] = path.read_bytes()
            new[name] = self._changed(path, old[name], gaps)
        return old, new

    def _changed(self, path: Path, data: bytes, gaps: Sequence[Mapping[str, Any]]) -> bytes:
        groups = [(gap, [o for o in self._made.get(gap["id"], ()) if o.path == path]) for gap in gaps]
        groups = [(gap, made) for gap, made in groups if made]
        return patched(data, [(made, self._comment(gap, made[0])) for gap, made in groups])

    def _comment(self, gap: Mapping[str, Any], made: Replacement) -> Comment:
        actual = textwrap.shorten(gap["actual"], 120, placeholder=" ...")
        return Comment(
            owner=self._asked.issue or self._asked.owner or _someone(self._root), api=_subject(gap),
            solves=f"under Paddle {gap['api']} {actual}", why=f"{made.candidate.why}; torch's result on both sides",
            delete="put the upstream expression back, run migrate-lens recheck, and delete this comment",
        )  # fmt: skip

    # -- the stage ---------------------------------------------------------------------------------------------------

    def _combined(self, gaps: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
        return self._files(gaps)[1]

    def _stage_passes(self, files: Mapping[str, bytes]) -> str:
        """Run the probes in a copy that has the patches; empty, or what still fails."""
        self._progress("running the stage again in a copy with the patches")
        said = self._builds(files) if self._diagnosis.native else ""
        for probe, recorded in zip(self._diagnosis.index["probes"], self._heard, strict=True):
            said = said or self._lab_runs(files, probe, recorded.trace.ending)
        return said

    def _builds(self, files: Mapping[str, bytes]) -> str:
        """Build the library with the patches on both sides; empty, or what fails."""
        folder = self._lab.fresh()
        _copy(self._root, folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        library = discover(folder)
        for runtime, family in ((Runtime.PADDLE, "paddle"), (Runtime.TORCH, "torch")):
            python, limit = self._diagnosis.python(family), self._diagnosis.index["timeout"]
            built = build_library(library, runtime, python, folder.parent / f"{folder.name}-built", timeout=limit)
            if built.target is None:
                return f"the build under {runtime} still fails: {built.result.detail}"[:300]
            self._targets[runtime] = (built.target,)
        return ""

    def _lab_runs(self, files: Mapping[str, bytes], probe: Mapping[str, Any], want: Ending) -> str:
        try:
            setting, again = self._copied(files, probe)
        except LensError as error:
            return f"the stage could not be run again: {error.message}"
        lone = self._diagnosis.report["library"]["script"] is not None
        for runtime in (Runtime.TORCH, Runtime.PADDLE_GLOBAL if lone else Runtime.PADDLE):
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

    def _copied(self, files: Mapping[str, bytes], probe: Mapping[str, Any]) -> tuple[Setting, Probe]:
        """A copy of the library with changed files, and the probe in it."""
        report = self._diagnosis.report
        folder = self._lab.fresh()
        script = report["library"]["script"]
        if script is None:
            _copy(self._root, folder)
        else:
            _linked(self._root, folder, script)
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        library = discover(folder / script) if script else discover(folder)
        paths: dict[Runtime, tuple[Path, ...]] = dict.fromkeys(Runtime, ()) | self._targets
        setting = Setting(library, paths, tuple(report["scope"]), self._diagnosis.index["timeout"])
        return setting, _relocated(probe, self._root, folder, library)

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _applied(self, done: Sequence[Fixed], gaps: Sequence[Mapping[str, Any]]) -> list[Fixed]:
        """Write what is offered; a partial one only where it was named."""
        wanted = {d.gap for d in done if d.outcome == OFFERED or (d.outcome == PARTIAL and d.gap in self._asked.names)}
        old, new = self._files([g for g in gaps if g["id"] in wanted])
        if old and not self._asked.force:
            _check_clean(self._root, sorted(old))
        for name, data in new.items():
            try:
                (self._root / name).write_bytes(data)
            except OSError as error:
                raise StateError(f"cannot write {name}: {error.strerror}", "see that it can be written") from error
        return [replace(d, applied=d.gap in wanted) for d in done]

    def _noted(self, done: list[Fixed]) -> None:
        """Keep the patches beside the diagnosis, and say in the report that they are there."""
        folder = self._diagnosis.folder / _PATCHES
        document = json.loads(json.dumps(self._diagnosis.report))
        by_id = {gap["id"]: gap for gap in document["gaps"]}
        for number, one in enumerate(done):
            if one.patch:
                folder.mkdir(exist_ok=True)
                file = folder / f"{kept.slug(one.gap)}.patch"
                file.write_bytes(one.patch.encode("utf-8", errors="surrogateescape"))
                done[number] = replace(one, file=str(file))
                by_id[one.gap]["workaround"] = {
                    "kind": one.kind,
                    "patch": one.patch,
                    "verified": one.outcome == OFFERED,
                }
        text = json.dumps(document, indent=2)
        state.write(self._diagnosis.folder / kept.REPORT, text + "\n")


def why_refused(gap: Mapping[str, Any]) -> str:
    """Why the policy forbids a workaround: the signal or condition that settled it; empty where it does not."""
    if gap["decision"] == "narrow_scope":
        return "scoped and global compat differ: shrink or extend the scope first"
    if gap["decision"] != "issue":
        return ""
    failed = [line for line in gap["evidence"] if line.startswith("workaround if all - no: ")]
    signals = [line for line in gap["evidence"] if line.startswith("issue if any - yes: ")]
    facts = [line.partition(": ")[2] for line in (*failed, *signals)]
    return "an issue instead: " + ("; ".join(facts) or "the policy asks for one")


def _subject(gap: Mapping[str, Any]) -> str:
    return f"{gap['api']} as torch does ({gap['symptom']})" if gap["symptom"] != "missing_api" else str(gap["api"])


def _someone(root: Path) -> str:
    """The person whose tree it is, as git knows them."""
    name = _git(root, "config", "user.name").strip()
    if name:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "owner"


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _check_clean(root: Path, files: Sequence[str]) -> None:
    """See that a git working tree has no changes where it would be written to.

    Raises:
        UsageError: it has.
    """
    changed = _git(root, "status", "--porcelain", "--", *files).strip()
    if changed:
        raise UsageError(f"{root} has changes in {changed.split()[-1]}", "commit or stash them, or use --force")


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


def as_json(done: Sequence[Fixed]) -> str:
    """What became of each gap, for scripts."""
    return json.dumps({"schema": 1, "fixes": [asdict(d) for d in done]}, indent=2, ensure_ascii=True) + "\n"


def lines(done: Sequence[Fixed]) -> Iterator[str]:
    """What became of each gap, for a person."""
    for one in done:
        yield f"{one.gap}: {one.outcome}{', applied' if one.applied else ''}{f' -> {one.file}' if one.file else ''}\n"
        yield f"  {one.said}\n"
        if one.patch and not one.applied:
            yield "\n" + one.patch.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace") + "\n"
