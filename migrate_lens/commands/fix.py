"""The command behind ``fix``: the last diagnosis in; workarounds that were tried, as patches, out."""

from __future__ import annotations

import getpass
import json
import subprocess
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from migrate_lens import state
from migrate_lens.classify.decide import after_trial
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.programs.synthesis import Recording
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab, laboratory
from migrate_lens.remedies.fix import bridges
from migrate_lens.remedies.fix.branches import KIND as FEATURE_GATE
from migrate_lens.remedies.fix.branches import gates
from migrate_lens.remedies.fix.entries import BUILD, SCOPE, Entry
from migrate_lens.remedies.fix.entry import BUILD_SWITCH, SCOPE_LINE
from migrate_lens.remedies.fix.fixing import (
    TRIED_IN_VAIN,
    NoReplacement,
    Replacement,
    find,
    missing_part,
    proposals,
)
from migrate_lens.remedies.fix.patches import Comment, diff, patched, relative
from migrate_lens.remedies.fix.shim_module import KIND as SHIM_MODULE
from migrate_lens.remedies.fix.shim_module import shim_module
from migrate_lens.remedies.fix.stage import Stage
from migrate_lens.remedies.reproduce.native_reproduce import NATIVE_LAYERS
from migrate_lens.rulebook.private import private_name

OFFERED, PARTIAL, REFUSED, NONE = "offered", "partial", "refused", "none"
_PATCHES = "patches"
_PROPOSALS = 3


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
        entry: also the lines that switch compat on, so that the port stands by itself.
    """

    state: Path
    names: tuple[str, ...] = ()
    apply: bool = False
    force: bool = False
    owner: str = ""
    issue: str = ""
    entry: bool = False


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
    if asked.entry:
        gaps = [*gaps, SCOPE, *([BUILD] if diagnosis.native else [])]
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
        self._gaps: Sequence[Mapping[str, Any]] = ()
        self._made: dict[str, tuple[Replacement, ...]] = {}
        self._whole: set[str] = set()
        self._scoped: Fixed | None = None
        self._stage = Stage(diagnosis, lab, heard, progress)
        self._entry = Entry(diagnosis, lab, heard, self._stage)

    def run(self, gaps: Sequence[Mapping[str, Any]]) -> tuple[Fixed, ...]:
        # The lines that switch compat on are tried in a library that has the other workarounds.
        self._gaps = gaps
        found = {gap["id"]: self._found(gap) for gap in sorted(gaps, key=_is_scope)}
        done = [found[gap["id"]] for gap in gaps]
        stage = self._stage.passes(self._files(gaps)[1]) if self._made else ""
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
        if _is_scope(gap) and gap is not BUILD and self._scoped is not None:
            first = self._scoped
            if first.outcome == NONE:
                return replace(first, gap=gap["id"])
            return Fixed(gap["id"], OFFERED, f"the scope line of {first.gap} covers it", first.kind)
        self._progress(f"{gap['id']}: trying replacements")
        done = self._tried(gap)
        if _is_scope(gap) and gap is not BUILD:
            self._scoped = done
        return done

    def _tried(self, gap: Mapping[str, Any]) -> Fixed:
        found: tuple[Replacement, ...] | NoReplacement
        if _is_scope(gap):
            files = self._files([g for g in self._gaps if g["id"] in self._made])[1]
            one = self._entry.build_switch(files) if gap is BUILD else self._entry.scope_line(files)
            found = one if isinstance(one, NoReplacement) else (one,)
        elif gap["layer"] in NATIVE_LAYERS and self._diagnosis.native:
            found = bridges.find(gap, self._root)
        else:
            before = [one for made in self._made.values() for one in made]
            found = self._shim(gap)
            if isinstance(found, NoReplacement):
                found = find(kept.case_of(gap), self._heard, self._lab, before)
            if isinstance(found, NoReplacement):
                found = self._gate(gap) or self._proposed(gap) or found
        if isinstance(found, NoReplacement):
            return Fixed(gap["id"], NONE, found.reason)
        private = next((name for one in found if (name := private_name(one.edit.text))), "")
        if private:
            return Fixed(gap["id"], REFUSED, f"it would need {private}, which is private to Paddle")
        if any(not one.path.resolve().is_relative_to(self._root.resolve()) for one in found):
            return Fixed(gap["id"], NONE, "the call stands outside the library")
        self._made[gap["id"]] = found
        return Fixed(gap["id"], PARTIAL, "", found[0].candidate.kind)

    def _shim(self, gap: Mapping[str, Any]) -> tuple[Replacement, ...] | NoReplacement:
        """One module for a private helper that several files import."""
        if gap["category"] != "B":
            return NoReplacement("a public name")
        library = self._diagnosis.report["library"]
        found = shim_module(gap, Path(library["root"]) / (library["import_root"] or "."), library["packages"])
        if isinstance(found, NoReplacement) or not self._serves(gap, found):
            return found if isinstance(found, NoReplacement) else NoReplacement("the stage fails with the stand-in")
        return found

    def _gate(self, gap: Mapping[str, Any]) -> tuple[Replacement, ...] | None:
        """For each site, a branch that the library already has."""
        missing = missing_part(kept.case_of(gap), self._lab)
        places = [(self._root / s["path"], s["line"]) for s in gap["sites"]] if missing[0] else []
        if not places or not all(path.suffix == ".py" and path.is_file() for path, _ in places):
            return None
        choices = [list(gates(path, line, missing)) for path, line in places]
        if not all(choices):
            return None
        for depth in range(max(map(len, choices))):
            made = tuple(dict.fromkeys(each[min(depth, len(each) - 1)] for each in choices))
            if self._serves(gap, made):
                return made
        return None

    def _proposed(self, gap: Mapping[str, Any]) -> tuple[Replacement, ...] | None:
        """What a recipe suggests, where the call alone does not show the gap and the whole library does."""
        made = islice(proposals(kept.case_of(gap), self._heard), _PROPOSALS)
        found = next((one for one in made if self._serves(gap, one)), None)
        self._whole |= {gap["id"]} if found else set()
        return found

    def _serves(self, gap: Mapping[str, Any], found: Sequence[Replacement]) -> bool:
        """Whether a copy with some replacements, and with those of the gaps before, gets past a gap."""
        made = {**self._made, gap["id"]: tuple(found)}
        files = self._files([g for g in self._gaps if g["id"] in made], made)[1]
        return self._stage.serves(files, gap["api"])

    def _judged(self, done: Fixed, gap: Mapping[str, Any], stage: str) -> Fixed:
        if done.outcome != PARTIAL:
            return done
        old, new = self._files([gap])
        patch = diff(old, new)
        call = "the call gives torch's result on both sides"
        if done.kind in (FEATURE_GATE, SHIM_MODULE) or done.gap in self._whole:
            call = "past other gaps, the library gets torch's result with it on both sides"
        if done.kind in (SCOPE_LINE, BUILD_SWITCH):
            call = "with the line alone the program gets to torch on both sides, each in a clean process"
        if done.kind == "cpp_bridge":
            call = "it builds on both sides"
            if stage:
                return replace(done, outcome=NONE, said=f"the bridge was tried: {stage}", kind="")
        if stage == "":
            said = f"verified: run stage passes, values equal torch ({call})"
            return replace(done, outcome=OFFERED, said=said, patch=patch)
        return replace(done, said=f"verified for the call alone ({call}); {stage}", patch=patch)

    def _files(
        self, gaps: Sequence[Mapping[str, Any]], made: Mapping[str, tuple[Replacement, ...]] | None = None
    ) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """The files that the replacements of some gaps change: as they are, and changed."""
        made = self._made if made is None else made
        old: dict[str, bytes] = {}
        new: dict[str, bytes] = {}
        for path in dict.fromkeys(one.path for gap in gaps for one in made.get(gap["id"], ())):
            name = relative(path, self._root)
            old[name] = path.read_bytes() if path.is_file() else b""
            new[name] = self._changed(path, old[name], gaps, made)
        return old, new

    def _changed(self, path: Path, data: bytes, gaps: Sequence[Mapping[str, Any]],
                 made: Mapping[str, tuple[Replacement, ...]]) -> bytes:  # fmt: skip
        groups = [(gap, [o for o in made.get(gap["id"], ()) if o.path == path]) for gap in gaps]
        return patched(data, [(here, self._comment(gap, here[0])) for gap, here in groups if here])

    def _comment(self, gap: Mapping[str, Any], made: Replacement) -> Comment:
        actual = textwrap.shorten(gap["actual"], 120, placeholder=" ...")
        without = "without it import torch finds nothing where Paddle is installed and torch is not"
        put_in = made.edit.start == made.edit.end
        back = "delete these lines" if put_in else "put the upstream expression back"
        owner = self._asked.issue or self._asked.owner or _someone(self._root)
        return Comment(
            owner, _subject(gap), without if _is_scope(gap) else f"under Paddle {gap['api']} {actual}",
            f"{made.candidate.why}; torch's result on both sides",
            f"{back}, run migrate-lens recheck, and delete this comment",
        )  # fmt: skip

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
                workaround = {"kind": one.kind, "patch": one.patch, "verified": one.outcome == OFFERED}
                by_id.get(one.gap, {})["workaround"] = workaround
        for one in done:
            gap = by_id.get(one.gap)
            if gap and (one.outcome == OFFERED or TRIED_IN_VAIN in one.said):
                found = one.outcome == OFFERED
                gap["decision"], gap["evidence"] = after_trial(gap["decision"], gap["evidence"], found=found)
        text = json.dumps(document, indent=2)
        state.write(self._diagnosis.folder / kept.REPORT, text + "\n")


def why_refused(gap: Mapping[str, Any]) -> str:
    """Why the policy forbids a workaround: the signal or condition that settled it; empty where it does not."""
    if gap["decision"] != "issue":
        return ""
    failed = [line for line in gap["evidence"] if line.startswith("workaround if all - no: ")]
    signals = [line for line in gap["evidence"] if line.startswith("issue if any - yes: ")]
    facts = [line.partition(": ")[2] for line in (*failed, *signals)]
    return "an issue instead: " + ("; ".join(facts) or "the policy asks for one")


def _is_scope(gap: Mapping[str, Any]) -> bool:
    return bool(gap["symptom"] == "scope" or gap["decision"] == "narrow_scope")


def _subject(gap: Mapping[str, Any]) -> str:
    if _is_scope(gap):
        return str(gap["api"] if gap["id"].startswith("entry:") else SCOPE["api"])
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
