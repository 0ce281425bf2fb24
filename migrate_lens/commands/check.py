"""The command behind ``check``: a port and what was kept of it in; what keeps it from being finished out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from migrate_lens import state
from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Layer, Site
from migrate_lens.model.ruling import Decision
from migrate_lens.remedies import kept
from migrate_lens.remedies.port.checking import Complaint, Fault, check_tree, workarounds
from migrate_lens.remedies.port.churn import Hunk, changed_lines, hunks

_FILES = 4  # most files of a layer that are named


@dataclass(frozen=True, slots=True)
class Checked:
    """A finished check.

    Attributes:
        complaints: what is wrong.
        workarounds: how many there are.
        edits: those since upstream.
        missing: what keeps the last diagnosis from speaking for the tree; empty where it does.
    """

    complaints: tuple[Complaint, ...]
    workarounds: int
    edits: tuple[Hunk, ...]
    missing: str = ""


def check(path: Path, base: str, folder: Path, issues: Path) -> Checked:
    """Check a port.

    Args:
        path: its tree, or one file.
        base: the upstream revision; empty where edits are not asked for.
        folder: the state folder of its last diagnosis, if there is one.
        issues: where its reproductions are.

    Raises:
        LensError: there is no such path or revision.
    """
    if not path.exists():
        raise UsageError(f"no such path: {path}", "name the folder of a port")
    edits = hunks(path if path.is_dir() else path.parent, base) if base else ()
    changed = changed_lines(edits) if base else None
    complaints = (*check_tree(path, changed), *_without_reproduction(folder, issues), *_unrelated(edits))
    missing = kept.what_is_missing(folder, path)
    return Checked(complaints, sum(1 for _ in workarounds(path)), edits, missing)


def _without_reproduction(folder: Path, issues: Path) -> Iterator[Complaint]:
    """Gaps of the last diagnosis that have neither a reproduction nor a note, nor were tried in vain."""
    known = kept.emitted(issues)
    for gap in kept.gaps_of(folder):
        if gap.decision is Decision.NOTE or gap.mre is not None or gap.no_mre or gap.key in known:
            continue
        site = next(iter(gap.sites), Site(state.REPORT, 1))
        message = f"{gap.id} has no reproduction and no note: migrate-lens issue --emit '{gap.id}' --state {folder}"
        yield Complaint(site.path, site.line, Fault.GAP, message)


def _unrelated(edits: tuple[Hunk, ...]) -> Iterator[Complaint]:
    """Edits that have nothing to do with the port."""
    for hunk in edits:
        if hunk.churn:
            yield Complaint(hunk.path, hunk.line, Fault.CHURN, f"unrelated edit: {hunk.churn}")


# -- documents ---------------------------------------------------------------------------------------------------------


def lines(checked: Checked) -> Iterator[str]:
    """A check for a person: a line for each complaint, as compilers write them."""
    for one in checked.complaints:
        yield f"{one.path}:{one.line}: {one.rule}: {one.message}\n"
    layers: dict[Layer, list[Hunk]] = {}
    for hunk in checked.edits:
        layers.setdefault(hunk.layer, []).append(hunk)
    for layer, edits in sorted(layers.items()):
        files = sorted({hunk.path for hunk in edits})
        more = ", ..." if len(files) > _FILES else ""
        yield f"edits in {layer}: {len(edits)} in {', '.join(files[:_FILES])}{more}\n"
    if checked.complaints:
        yield f"{len(checked.complaints)} to settle, {checked.workarounds} workarounds\n"
    if checked.missing:
        yield f"Whether the port is finished cannot be said: {checked.missing}. Try: migrate-lens diagnose PATH\n"
    elif not checked.complaints:
        yield f"The port is finished: {checked.workarounds} workarounds, each with owner, purpose, reason and end.\n"


def as_json(checked: Checked) -> str:
    """A check for scripts."""
    document = {
        "schema": 1,
        "complaints": [asdict(complaint) for complaint in checked.complaints],
        "workarounds": checked.workarounds,
        "missing": checked.missing,
        "edits": [
            {"path": hunk.path, "line": hunk.line, "layer": hunk.layer, "churn": hunk.churn} for hunk in checked.edits
        ],
    }
    return json.dumps(document, indent=2) + "\n"
