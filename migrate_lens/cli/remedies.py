"""The commands that go on from a diagnosis: a Typer application in; ``issue`` and its kin, out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from migrate_lens import config
from migrate_lens.cli import terminal

State = Annotated[Path, typer.Option("--state", metavar="DIR", help="Where the last diagnosis is.")]
Gaps = Annotated[list[str] | None, typer.Argument(metavar="GAP", help="Gaps of the last diagnosis, by id.")]
OK, FOUND = 0, 1


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for function in (issue, fix, check, recheck):
        app.command()(function)


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
    from migrate_lens.commands import issue as command

    request = command.IssueRequest(
        state=state_folder,
        names=tuple(gaps or ()),
        emit=emit,
        everything=everything,
        language=lang,
        templates=templates,
        output=output,
    )
    issues = command.issue(request, terminal.progress())
    terminal.show(command.as_json(issues) if as_json else "".join(command.lines(issues, emitted=emit)))
    failed = any(one.outcome is command.IssueOutcome.NOT_REPRODUCED for one in issues)
    return FOUND if failed else OK


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
    from migrate_lens.commands import fix as command

    request = command.FixRequest(
        state=state_folder,
        names=tuple(gaps or ()),
        apply=apply,
        force=force,
        owner=owner,
        issue=issue_url,
        entry=entry,
    )
    fixes = command.fix(request, terminal.progress())
    terminal.show(
        command.as_json(fixes) if as_json else "".join(command.lines(fixes, request)) or "No gaps: nothing to fix.\n"
    )
    offered = all(one.outcome is command.FixOutcome.OFFERED for one in fixes)
    return OK if offered else FOUND


def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The tree of a port.")] = Path(),
    base: Annotated[str, typer.Option(metavar="REV", help="Upstream's revision: sort every edit since by layer.")] = "",
    issues: Annotated[Path, typer.Option(metavar="DIR", help="Where the reproductions are.")] = Path("issues"),
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
    state_folder: State = config.DEFAULT_STATE,
) -> int:
    """Check that a port is finished: workaround comments, scope, private names, reproductions, unrelated edits."""
    from migrate_lens.commands import check as command

    checked = command.check(path, base, state_folder, issues)
    terminal.show(command.as_json(checked) if as_json else "".join(command.lines(checked)))
    return FOUND if checked.complaints else OK


def recheck(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The tree of a port.")] = Path(),
    issues: Annotated[Path, typer.Option(metavar="DIR", help="Where the reproductions are.")] = Path("issues"),
    paddle_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> int:
    """Run the kept reproductions against the Paddle that is installed now; list workarounds that can be deleted."""
    from migrate_lens.commands import recheck as command

    reproductions = command.recheck(path, issues, config.load(path, paddle_python=paddle_python).paddle_python)
    terminal.show(command.as_json(reproductions) if as_json else "".join(command.lines(reproductions)))
    return FOUND if any(one.delete for one in reproductions) else OK
