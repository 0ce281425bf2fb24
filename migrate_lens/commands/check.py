"""The commands behind ``check`` and ``recheck``: a port and what was kept of it in; what is left to do out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from migrate_lens import state
from migrate_lens.model.errors import UsageError
from migrate_lens.remedies import kept
from migrate_lens.remedies.port.checking import NATIVE, Complaint, check_tree, sources
from migrate_lens.remedies.port.churn import Hunk, changed_lines, hunks
from migrate_lens.remedies.port.todos import todos
from migrate_lens.remedies.publish.verify import UNDER_PADDLE, run_files_under_paddle
from migrate_lens.remedies.reproduce.native_reproduce import names


@dataclass(frozen=True, slots=True)
class Checked:
    """A finished check: what is wrong, how many workarounds there are, and the edits since upstream."""

    complaints: tuple[Complaint, ...]
    workarounds: int
    edits: tuple[Hunk, ...]


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
    found = hunks(path if path.is_dir() else path.parent, base) if base else ()
    changed = changed_lines(found) if base else None
    complaints = [*check_tree(path, changed), *_without_reproduction(folder, issues)]
    complaints += [Complaint(h.path, h.line, "churn", f"unrelated edit: {h.churn}") for h in found if h.churn]
    return Checked(tuple(complaints), sum(1 for _ in _workarounds(path)), found)


def _without_reproduction(folder: Path, issues: Path) -> Iterator[Complaint]:
    """Gaps of the last diagnosis that have neither a reproduction nor a note."""
    report = state.read(folder / kept.REPORT)
    gaps: Any = report.get("gaps", ()) if report else ()
    known = kept.emitted(issues)
    for gap in gaps:
        if gap["decision"] != "note" and not gap["mre"] and (gap["api"], gap["symptom"]) not in known:
            site: Any = gap["sites"][0] if gap["sites"] else {"path": kept.REPORT, "line": 1}
            message = f"{gap['id']} has no reproduction and no note: migrate-lens issue --emit '{gap['id']}'"
            yield Complaint(site["path"], site["line"], "gap", message)


def _workarounds(path: Path) -> Iterator[tuple[str, int, str]]:
    """Workaround comments of a tree: path, line, and the API that each waits for."""
    for file in sources(path):
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        text = file.read_text(encoding="utf-8", errors="replace")
        for todo in todos(text, native=file.suffix in NATIVE):
            if todo.api:
                yield name, todo.first, todo.api


def check_lines(done: Checked) -> Iterator[str]:
    """A check for a person: a line for each complaint, as compilers write them."""
    for one in done.complaints:
        yield f"{one.path}:{one.line}: {one.rule}: {one.message}\n"
    layers: dict[str, list[Hunk]] = {}
    for hunk in done.edits:
        layers.setdefault(str(hunk.layer), []).append(hunk)
    for layer, members in sorted(layers.items()):
        files = sorted({h.path for h in members})
        yield f"edits in {layer}: {len(members)} in {', '.join(files[:4])}{', ...' if len(files) > 4 else ''}\n"
    if done.complaints:
        yield f"{len(done.complaints)} to settle, {done.workarounds} workarounds\n"
    else:
        yield f"The port is finished: {done.workarounds} workarounds, each with owner, purpose, reason and end.\n"


def check_json(done: Checked) -> str:
    """A check for scripts."""
    edits = [{"path": h.path, "line": h.line, "layer": str(h.layer), "churn": h.churn} for h in done.edits]
    document = {
        "schema": 1,
        "complaints": [asdict(c) for c in done.complaints],
        "workarounds": done.workarounds,
        "edits": edits,
    }
    return json.dumps(document, indent=2) + "\n"


# -- recheck -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rechecked:
    """One kept reproduction against the Paddle that is installed now.

    Attributes:
        gap: its id.
        outcome: ``still fails``, ``fails otherwise`` or ``passes``.
        said: what happened.
        delete: workarounds that wait for it, as ``path:line``, where it passes.
    """

    gap: str
    outcome: str
    said: str
    delete: tuple[str, ...] = ()


def recheck(path: Path, issues: Path, paddle: Path) -> tuple[Rechecked, ...]:
    """Run the kept reproductions again.

    Raises:
        UsageError: there are none.
    """
    records = sorted(issues.glob(f"*/{kept.RECORD}"))
    if not records:
        raise UsageError(
            f"no reproductions in {issues}", "migrate-lens issue --emit makes them; --issues DIR names another folder"
        )
    waiting = list(_workarounds(path)) if path.exists() else []
    return tuple(_again(record, waiting, paddle) for record in records)


def _again(record: Path, waiting: Sequence[tuple[str, int, str]], paddle: Path) -> Rechecked:
    known = json.loads(record.read_text(encoding="utf-8"))
    parts = known.get("files", [known["file"]])
    files = {name: (record.parent / name).read_text(encoding="utf-8") for name in parts}
    run = run_files_under_paddle(files, known["file"], paddle, known.get("switch", UNDER_PADDLE))
    if run.passed:
        delete = tuple(f"{name}:{line}" for name, line, api in waiting if api == known["api"])
        return Rechecked(known["id"], "passes", "Paddle does as torch does now", delete)
    same = run.failure.rpartition(".")[2] == known["failure"].rpartition(".")[2]
    same = same and names(known.get("needle", ""), run.output)
    return Rechecked(known["id"], "still fails" if same else "fails otherwise", run.failure)


def recheck_lines(done: Sequence[Rechecked]) -> Iterator[str]:
    """What became of each reproduction, for a person."""
    for one in done:
        yield f"{one.gap}: {one.outcome} ({one.said})\n"
        for place in one.delete:
            yield f"  delete the workaround at {place}\n"
    open_ = sum(one.outcome != "passes" for one in done)
    yield f"{open_} of {len(done)} still open\n"


def recheck_json(done: Sequence[Rechecked]) -> str:
    """What became of each reproduction, for scripts."""
    return json.dumps({"schema": 1, "reproductions": [asdict(d) for d in done]}, indent=2) + "\n"
