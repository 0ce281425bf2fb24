"""The command behind ``fix``: the last diagnosis in; workarounds that were tried, as patches, out."""

from __future__ import annotations

import getpass
import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from migrate_lens.classify.decide import after_trial
from migrate_lens.config import DEFAULT_STATE
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.model.reading import Json
from migrate_lens.model.report import Gap, Remedy
from migrate_lens.programs.synthesis import ProbeRecord
from migrate_lens.remedies import kept
from migrate_lens.remedies.bench_lab import BenchLab, laboratory
from migrate_lens.remedies.fix.attempts import Attempts, Refused, why_refused
from migrate_lens.remedies.fix.entries import BUILD, SCOPE
from migrate_lens.remedies.fix.fixing import NoReplacement
from migrate_lens.remedies.fix.patches import diff
from migrate_lens.remedies.fix.stage import Stage
from migrate_lens.remedies.fix.strategies import Kind
from migrate_lens.remedies.fix.workarounds import Workarounds, is_scope, proof
from migrate_lens.remedies.fix.writing import write_all

_PATCHES, _APPLIED = "patches", "applied.patch"
_FORCE = "let git answer there, or use --force"


class FixOutcome(StrEnum):
    """What became of a gap; ``partial``: the call is right, and the stage still fails."""

    OFFERED = "offered"
    PARTIAL = "partial"
    REFUSED = "refused"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class FixRequest:
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
        outcome: what became of it.
        said: why, or what was verified.
        kind: of the workaround; None where there is none.
        patch: a unified diff; empty where there is none.
        file: where the patch was kept.
        applied: whether it was written to the tree.
        in_vain: whether all that there is was tried, and nothing gave torch's result on both sides.
    """

    gap: str
    outcome: FixOutcome
    said: str
    kind: Kind | None = None
    patch: str = ""
    file: str = ""
    applied: bool = False
    in_vain: bool = False


def fix(request: FixRequest, progress: Progress) -> tuple[Fixed, ...]:
    """Find, try, verify and perhaps apply workarounds.

    Raises:
        LensError: there is no diagnosis, no such gap, or a tree that must not be written to.
    """
    diagnosis = kept.load(request.state)
    gaps = kept.chosen(diagnosis, request.names, everything=True)
    progress("starting torch and paddle")
    if request.entry:
        gaps = [*gaps, SCOPE, *([BUILD] if diagnosis.native else [])]
    with laboratory(diagnosis) as (lab, records):
        return _Fixer(request, diagnosis, lab, records, progress).run(gaps)


class _Fixer:
    def __init__(
        self,
        request: FixRequest,
        diagnosis: kept.Diagnosis,
        lab: BenchLab,
        records: Sequence[ProbeRecord],
        progress: Progress,
    ) -> None:
        self._request = request
        self._diagnosis = diagnosis
        self._progress = progress
        self._root = diagnosis.library.root
        self._workarounds = Workarounds(self._root, request.issue or request.owner or _someone(self._root))
        self._stage = Stage(diagnosis, lab, records, progress)
        self._attempts = Attempts(diagnosis, lab, records, self._stage, self._workarounds)
        self._scope_line: Fixed | None = None
        self._series: dict[str, str] = {}  # what was applied, each upon the one before it

    def run(self, gaps: Sequence[Gap]) -> tuple[Fixed, ...]:
        # The lines that switch compat on are tried in a library that has the other workarounds.
        by_id = {gap.id: self._tried(gap, gaps) for gap in sorted(gaps, key=is_scope)}
        fixes = [by_id[gap.id] for gap in gaps]
        if self._workarounds.made:
            failure = self._stage.passes(self._workarounds.changed(gaps).new)
            fixes = [self._judged(one, gap, failure) for one, gap in zip(fixes, gaps, strict=True)]
        if self._request.apply:
            fixes = self._applied(fixes, gaps)
        fixes = [self._kept(one) for one in fixes]
        kept.store(self._diagnosis, self._noted(fixes, gaps))
        return tuple(fixes)

    # -- one gap ---------------------------------------------------------------------------------------------------

    def _tried(self, gap: Gap, gaps: Sequence[Gap]) -> Fixed:
        """What can be done about a gap by itself; one line settles all gaps of the scope."""
        refusal = why_refused(gap)
        if refusal:
            return Fixed(gap.id, FixOutcome.REFUSED, refusal)
        if not is_scope(gap) or gap is BUILD:
            return self._attempted(gap, gaps)
        first = self._scope_line
        if first is None:
            self._scope_line = self._attempted(gap, gaps)
            return self._scope_line
        if first.outcome is FixOutcome.NONE:
            return replace(first, gap=gap.id)
        return Fixed(gap.id, FixOutcome.OFFERED, f"the scope line of {first.gap} covers it", first.kind)

    def _attempted(self, gap: Gap, gaps: Sequence[Gap]) -> Fixed:
        self._progress(f"{gap.id}: trying replacements")
        attempt = self._attempts.make(gap, gaps)
        match attempt:
            case Refused(reason):
                return Fixed(gap.id, FixOutcome.REFUSED, reason)
            case NoReplacement(reason, in_vain):
                return Fixed(gap.id, FixOutcome.NONE, reason, in_vain=in_vain)
            case _:
                return Fixed(gap.id, FixOutcome.PARTIAL, "", attempt[0].candidate.kind)

    def _judged(self, one: Fixed, gap: Gap, failure: str) -> Fixed:
        """A workaround once the stage has run with all of them."""
        if one.outcome is not FixOutcome.PARTIAL or one.kind is None:
            return one
        if failure and one.kind is Kind.CPP_BRIDGE:
            return replace(one, outcome=FixOutcome.NONE, said=f"the bridge was tried: {failure}", kind=None)
        patch = self._workarounds.changed([gap]).patch
        alone = proof(self._workarounds.made[gap.id][0])
        if failure:
            return replace(one, said=f"verified by itself ({alone}); {failure}", patch=patch)
        what = "values and gradients" if self._stage.is_trained else "values"
        said = f"verified: run stage passes, {what} equal torch ({alone})"
        return replace(one, outcome=FixOutcome.OFFERED, said=said, patch=patch)

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _applied(self, fixes: Sequence[Fixed], gaps: Sequence[Gap]) -> list[Fixed]:
        """Write what is offered; a partial one only where it was named."""
        wanted = [gap for gap in gaps if any(one.gap == gap.id and self._is_wanted(one) for one in fixes)]
        old, new = self._workarounds.changed(wanted)
        if old and not self._request.force:
            _check_clean(self._root, sorted(old))
        self._series = self._workarounds.series(wanted)
        whole = diff(old, new)
        write_all(self._root, old, new)
        if whole:
            _keep_patch(self._diagnosis.folder / _APPLIED, whole)
        return [replace(one, applied=one.gap in self._series) for one in fixes]

    def _is_wanted(self, one: Fixed) -> bool:
        match one.outcome:
            case FixOutcome.OFFERED:
                return True
            case FixOutcome.PARTIAL:
                return one.gap in self._request.names
            case FixOutcome.REFUSED | FixOutcome.NONE:
                return False
            case _:
                assert_never(one.outcome)

    def _kept(self, one: Fixed) -> Fixed:
        """Keep a patch beside the diagnosis."""
        if not one.patch:
            return one
        file = self._diagnosis.folder / _PATCHES / f"{kept.slug(one.gap)}.patch"
        _keep_patch(file, self._series.get(one.gap, one.patch))
        return replace(one, file=str(file))

    def _noted(self, fixes: Sequence[Fixed], gaps: Sequence[Gap]) -> Iterator[Gap]:
        """The gaps with what was found out about them."""
        for one, gap in zip(fixes, gaps, strict=True):
            offered = one.outcome is FixOutcome.OFFERED
            if one.patch:
                gap = replace(gap, workaround=Remedy(one.kind or "", one.patch, offered))
            if (offered or one.in_vain) and gap.ruling is not None:
                gap = gap.ruled(after_trial(gap.ruling, works=offered))
            yield gap


def _keep_patch(file: Path, patch: str) -> None:
    """Keep a patch in the state folder.

    Raises:
        StateError: it cannot be written.
    """
    try:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(patch.encode("utf-8", errors="surrogateescape"))
    except OSError as error:
        raise StateError(f"cannot write {file}: {error.strerror}", "see that it can be written") from error


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
        git = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return git.stdout if git.returncode == 0 else ""


def _check_clean(root: Path, files: Sequence[str]) -> None:
    """See that a git working tree has no changes where it would be written to.

    Raises:
        UsageError: it has, or git does not say.
    """
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return
    command = ["git", "-C", str(root), "status", "--porcelain", "--", *files]
    try:
        git = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"whether {root} has changes cannot be seen: git: {error.strerror}", _FORCE) from error
    if git.returncode:
        said = next(iter(git.stderr.splitlines()), f"exit status {git.returncode}")
        raise UsageError(f"whether {root} has changes cannot be seen: {said}", _FORCE)
    if git.stdout.strip():
        raise UsageError(f"{root} has changes in {git.stdout.split()[-1]}", "commit or stash them, or use --force")


# -- documents ---------------------------------------------------------------------------------------------------------


def as_json(fixes: Sequence[Fixed]) -> str:
    """What became of each gap, for scripts."""
    document = {"schema": 1, "fixes": [_document(one) for one in fixes]}
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _document(one: Fixed) -> Json:
    return {
        "gap": one.gap,
        "outcome": one.outcome,
        "said": one.said,
        "kind": one.kind or "",
        "patch": one.patch,
        "file": one.file,
        "applied": one.applied,
    }


def lines(fixes: Sequence[Fixed], request: FixRequest) -> Iterator[str]:
    """What became of each gap, for a person; with ``--apply`` also why nothing was written."""
    for one in fixes:
        applied = ", applied" if one.applied else ""
        where = f" -> {one.file}" if one.file else ""
        yield f"{one.gap}: {one.outcome}{applied}{where}\n"
        yield f"  {one.said}\n"
        if one.patch and not one.applied:
            yield "\n" + one.patch.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace") + "\n"
    if request.apply and not any(one.applied for one in fixes):
        yield _nothing_written(fixes, request)


def _nothing_written(fixes: Sequence[Fixed], request: FixRequest) -> str:
    partial = [one for one in fixes if one.outcome is FixOutcome.PARTIAL]
    if not partial:
        return "Nothing was written: there is no workaround to write.\n"
    state = "" if request.state == DEFAULT_STATE else f" --state {shlex.quote(str(request.state))}"
    return (
        f"Nothing was written: with {len(partial)} workaround{'s' if len(partial) > 1 else ''} the stage still fails, "
        "as said above. One that is named is written all the same:\n"
        f"  migrate-lens fix {shlex.quote(partial[0].gap)} --apply{state}\n"
    )
