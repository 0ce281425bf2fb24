"""``migrate-lens audit``: paths and flags in; a report, shown or written, and an exit code out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from migrate_lens import state
from migrate_lens.cli import exits, terminal
from migrate_lens.cli.flags import PaddlePython, TorchPython, add, format_of
from migrate_lens.model.errors import StateError
from migrate_lens.reports import AUDIT


@dataclass(frozen=True, slots=True)
class AuditFlags:
    """What can be typed after ``audit``."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Folders, files, wheels, sdists, or installed names."),
    ] = None
    format: Annotated[str, format_of(AUDIT)] = "text"
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report there.")] = None
    torch_python: TorchPython = None
    paddle_python: PaddlePython = None
    surface: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A saved surface, instead of asking what is installed.")
    ] = None
    save_surface: Annotated[Path | None, typer.Option(metavar="FILE", help="Save what was asked.")] = None
    fail_on: Annotated[str, typer.Option(metavar="WHAT", help="Exit 1 on: any, import, asked or none.")] = "any"
    baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Gaps that are known.")] = None
    write_baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a baseline.")] = None
    changed_since: Annotated[
        str | None, typer.Option(metavar="REV", help="Only files that differ from a git revision.")
    ] = None
    explain: Annotated[str | None, typer.Option(metavar="RULE", help="What an audit rule means.")] = None
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep what was read between runs.")] = True


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    add(app, AuditFlags, audit)


def audit(flags: AuditFlags) -> int:
    """Read sources and say what a migration would meet; nothing of PATH is run."""
    from migrate_lens.commands import audit as auditing

    fail_on = auditing.fail_on(flags.fail_on)
    if flags.explain:
        terminal.show(auditing.explained(flags.explain))
        return exits.NO_GAPS
    if flags.output is not None:
        state.check_output(flags.output, list(map(Path, flags.paths or ())))
    options = auditing.AuditOptions(
        paths=tuple(flags.paths or ()),
        torch_python=flags.torch_python,
        paddle_python=flags.paddle_python,
        surface=flags.surface,
        save_surface=flags.save_surface,
        baseline=flags.baseline,
        write_baseline=flags.write_baseline,
        changed_since=flags.changed_since,
        cache=flags.cache,
    )
    if flags.output is not None:
        state.check_output(flags.output, [Path(path) for path in options.paths if os.path.exists(path)])
    report = auditing.audit(options, terminal.say)
    text = AUDIT.render(report, flags.format)
    if flags.output is None:
        terminal.show(text)
    else:
        _write(flags.output, text)
    return exits.of(not auditing.fails(report, fail_on))


def _write(path: Path, text: str) -> None:
    try:
        state.write(path, text)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}", "name another file") from error
