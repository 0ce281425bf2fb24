"""The commands that go on from a diagnosis: a Typer application in; ``issue`` and its kin, out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_lens import config
from migrate_lens.cli import terminal

if TYPE_CHECKING:
    from migrate_lens.commands.issue import Done

State = Annotated[Path, typer.Option("--state", metavar="DIR", help="Where the last diagnosis is.")]
Gaps = Annotated[list[str] | None, typer.Argument(metavar="GAP", help="Gaps of the last diagnosis, by id.")]
OK, FOUND = 0, 1


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (issue, fix, check, recheck):
        app.command()(command)


def issue(
    gaps: Gaps = None,
    emit: Annotated[bool, typer.Option("--emit", help="Write issues/GAP/: issue, reproduction, logs.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All gaps, also those that need a note or a workaround only.")
    ] = False,
    lang: Annotated[str, typer.Option(metavar="en|zh", help="The language of the issue.")] = "en",
    templates: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Templates of your own, which win over the shipped ones.")
    ] = None,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where the folders go.")] = Path("issues"),
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
    state_folder: State = config.DEFAULT_STATE,
) -> int:
    """Make a minimal reproduction of each gap that needs an issue, verify it on both sides, and write the issue."""
    from migrate_lens.commands import issue as pipeline

    asked = pipeline.Asked(state_folder, tuple(gaps or ()), emit, everything, lang, templates, output)
    done = pipeline.issue(asked, terminal.progress())
    terminal.show(pipeline.as_json(done) if as_json else _issues(done, emit))
    return OK if all(d.outcome != pipeline.FAILED for d in done) else FOUND


def fix(
    gaps: Gaps = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the workarounds to the library's tree.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also where git has uncommitted changes.")] = False,
    issue_url: Annotated[str, typer.Option("--issue", metavar="URL", help="The issue that the TODO names.")] = "",
    owner: Annotated[str, typer.Option(metavar="NAME", help="Whom the TODO names [default: git's user].")] = "",
    entry: Annotated[
        bool, typer.Option("--entry", help="Also the lines that switch compat on: build script, and entry in scope.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
    state_folder: State = config.DEFAULT_STATE,
) -> int:
    """Find a single-point workaround for each gap, try it on both sides, and show it as a patch."""
    from migrate_lens.commands import fix as pipeline

    asked = pipeline.Asked(state_folder, tuple(gaps or ()), apply, force, owner, issue_url, entry)
    done = pipeline.fix(asked, terminal.progress())
    terminal.show(pipeline.as_json(done) if as_json else "".join(pipeline.lines(done)) or "No gaps: nothing to fix.\n")
    return OK if all(d.outcome == pipeline.OFFERED for d in done) else FOUND


def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The tree of a port.")] = Path(),
    base: Annotated[str, typer.Option(metavar="REV", help="Upstream's revision: sort every edit since by layer.")] = "",
    issues: Annotated[Path, typer.Option(metavar="DIR", help="Where the reproductions are.")] = Path("issues"),
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
    state_folder: State = config.DEFAULT_STATE,
) -> int:
    """Check that a port is finished: workaround comments, scope, private names, reproductions, unrelated edits."""
    from migrate_lens.commands import check as pipeline

    done = pipeline.check(path, base, state_folder, issues)
    terminal.show(pipeline.check_json(done) if as_json else "".join(pipeline.check_lines(done)))
    return FOUND if done.complaints else OK


def recheck(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The tree of a port.")] = Path(),
    issues: Annotated[Path, typer.Option(metavar="DIR", help="Where the reproductions are.")] = Path("issues"),
    paddle_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> int:
    """Run the kept reproductions against the Paddle that is installed now; list workarounds that can be deleted."""
    from migrate_lens.commands import check as pipeline

    done = pipeline.recheck(path, issues, config.load(path, paddle_python=paddle_python).paddle_python)
    terminal.show(pipeline.recheck_json(done) if as_json else "".join(pipeline.recheck_lines(done)))
    return FOUND if any(d.delete for d in done) else OK


def _issues(done: Sequence[Done], emit: bool) -> str:
    if not done:
        return "Nothing to report: no gap of the last diagnosis needs an issue (--all takes the others too).\n"
    parts = []
    for each in done:
        where = f" -> {each.folder}" if each.folder else ""
        parts.append(f"{each.gap}: {each.outcome}{where}\n  {each.said}\n")
        if not emit and each.body:
            parts.append("\n" + each.body.rstrip() + "\n\n")
    if not emit and any(each.body for each in done):
        parts.append("Nothing was written; --emit writes it.\n")
    return "".join(parts)
