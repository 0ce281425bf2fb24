"""The commands that go on from a diagnosis: flags in; what ``explain``, ``issue`` and their kin made, shown, out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from migrate_lens import config, state
from migrate_lens.cli import exits, terminal
from migrate_lens.cli.flags import Issues, PaddlePython, State, add, one_of

Gaps = Annotated[list[str] | None, typer.Argument(metavar="GAP", help="Gaps of the last diagnosis, by id.")]
Format = Annotated[str, one_of("text", "json")]
Port = Annotated[Path, typer.Argument(metavar="PATH", help="The tree of a port.")]
_HERE, _ISSUES = Path(), Path("issues")


@dataclass(frozen=True, slots=True)
class ExplainFlags:
    """What can be typed after ``explain``."""

    rule: Annotated[
        str | None,
        typer.Argument(metavar="RULE", help="A rule's id, or a gap's of the last diagnosis; none lists all."),
    ] = None
    state: State = config.DEFAULT_STATE


@dataclass(frozen=True, slots=True)
class IssueFlags:
    """What can be typed after ``issue``."""

    gaps: Gaps = None
    emit: Annotated[bool, typer.Option("--emit", help="Write issues/GAP/: issue, reproduction, logs.")] = False
    everything: Annotated[
        bool, typer.Option("--all", help="All gaps, also those that need a note or a workaround only.")
    ] = False
    lang: Annotated[str, typer.Option(metavar="en|zh", help="The language of the issue.")] = "en"
    templates: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Templates of your own, which win over the shipped ones.")
    ] = None
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where the folders go.")] = _ISSUES
    library: Annotated[
        str, typer.Option(metavar="NAME", help="Name and version of the library, where an issue may name it.")
    ] = ""
    format: Format = "text"
    state: State = config.DEFAULT_STATE


@dataclass(frozen=True, slots=True)
class FixFlags:
    """What can be typed after ``fix``."""

    gaps: Gaps = None
    apply: Annotated[bool, typer.Option("--apply", help="Write the workarounds to the library's tree.")] = False
    force: Annotated[bool, typer.Option("--force", help="Also where git has uncommitted changes.")] = False
    issue: Annotated[str, typer.Option("--issue", metavar="URL", help="The issue that the TODO names.")] = ""
    owner: Annotated[str, typer.Option(metavar="NAME", help="Whom the TODO names [default: git's user].")] = ""
    entry: Annotated[
        bool, typer.Option("--entry", help="Also the lines that switch compat on: build script, and entry in scope.")
    ] = False
    format: Format = "text"
    state: State = config.DEFAULT_STATE


@dataclass(frozen=True, slots=True)
class CheckFlags:
    """What can be typed after ``check``."""

    path: Port = _HERE
    base: Annotated[str, typer.Option(metavar="REV", help="Upstream's revision: sort every edit since by layer.")] = ""
    issues: Issues = _ISSUES
    format: Format = "text"
    state: State = config.DEFAULT_STATE


@dataclass(frozen=True, slots=True)
class RecheckFlags:
    """What can be typed after ``recheck``."""

    path: Port = _HERE
    issues: Issues = _ISSUES
    paddle_python: PaddlePython = None
    format: Format = "text"


def register_explain(app: typer.Typer) -> None:
    """Add the command that is listed by itself."""
    add(app, ExplainFlags, explain)


def register(app: typer.Typer) -> None:
    """Add the other commands to the application."""
    add(app, IssueFlags, issue)
    add(app, FixFlags, fix)
    add(app, CheckFlags, check)
    add(app, RecheckFlags, recheck)


def explain(flags: ExplainFlags) -> int:
    """Say what a gap or a rule means, why, and what to do."""
    from migrate_lens.commands import explain as explaining

    terminal.show(explaining.run(flags.rule, flags.state / state.REPORT, terminal.width()))
    return exits.NO_GAPS


def issue(flags: IssueFlags) -> int:
    """Make a minimal reproduction of each gap that needs an issue, verify it on both sides, and write the issue."""
    from migrate_lens.commands import issue as command

    request = command.IssueRequest(
        state=flags.state,
        names=tuple(flags.gaps or ()),
        emit=flags.emit,
        everything=flags.everything,
        language=flags.lang,
        templates=flags.templates,
        output=flags.output,
        library=flags.library,
    )
    issues = command.issue(request, terminal.progress())
    terminal.show(
        command.as_json(issues) if flags.format == "json" else "".join(command.lines(issues, emitted=flags.emit))
    )
    lacking = (command.IssueOutcome.NOT_REPRODUCED, command.IssueOutcome.REFUSED)
    return exits.of(all(one.outcome not in lacking for one in issues))


def fix(flags: FixFlags) -> int:
    """Find a single-point workaround for each gap, try it on both sides, and show it as a patch."""
    from migrate_lens.commands import fix as command

    request = command.FixRequest(
        state=flags.state,
        names=tuple(flags.gaps or ()),
        apply=flags.apply,
        force=flags.force,
        owner=flags.owner,
        issue=flags.issue,
        entry=flags.entry,
    )
    fixes = command.fix(request, terminal.progress())
    text = "".join(command.lines(fixes, request)) or "No gaps: nothing to fix.\n"
    terminal.show(command.as_json(fixes) if flags.format == "json" else text)
    return exits.of(all(one.outcome is command.FixOutcome.OFFERED for one in fixes))


def check(flags: CheckFlags) -> int:
    """Check that a port is finished: workaround comments, scope, private names, reproductions, unrelated edits."""
    from migrate_lens.commands import check as command

    checked = command.check(flags.path, flags.base, flags.state, flags.issues)
    terminal.show(command.as_json(checked) if flags.format == "json" else "".join(command.lines(checked)))
    return exits.ERROR if checked.missing else exits.of(not checked.complaints)


def recheck(flags: RecheckFlags) -> int:
    """Run the kept reproductions against the Paddle that is installed now; list workarounds that can be deleted."""
    from migrate_lens.commands import recheck as command

    options = config.load(flags.path, config.Given(paddle_python=flags.paddle_python))
    reproductions = command.recheck(flags.path, flags.issues, options.paddle_python)
    terminal.show(command.as_json(reproductions) if flags.format == "json" else "".join(command.lines(reproductions)))
    return exits.of(not any(one.delete for one in reproductions))
