"""``migrate-lens diagnose``: flags in; the report, kept in the state folder and shown, and an exit code out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_lens import config, state
from migrate_lens.cli import exits, terminal
from migrate_lens.cli.flags import Output, PaddlePython, TorchPython, add, format_of
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.reports import DIAGNOSIS, View

if TYPE_CHECKING:
    from migrate_lens.model.report import Report


@dataclass(frozen=True, slots=True)
class DiagnoseFlags:
    """What can be typed after ``diagnose``."""

    path: Annotated[Path, typer.Argument(metavar="PATH", help="A library's folder, or a lone script.")]
    probe: Annotated[
        list[str] | None,
        typer.Option(metavar="PROBE", help="A script, package.module:callable or pytest node to run; may be repeated."),
    ] = None
    torch_python: TorchPython = None
    paddle_python: PaddlePython = None
    scope: Annotated[
        list[str] | None, typer.Option(metavar="PACKAGE", help="Where Paddle answers; may be repeated.")
    ] = None
    keep_torch: Annotated[
        bool | None, typer.Option("--keep-torch/--hide-torch", help="Leave real torch visible on the Paddle side.")
    ] = None
    tests: Annotated[bool | None, typer.Option("--tests/--no-tests", help="Run the library's pytest files too.")] = None
    test_select: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Run the tests that match, as pytest's -k has it.")
    ] = None
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The time that any one stage may take [default: 600].")
    ] = None
    stop_at_first: Annotated[bool, typer.Option("--stop-at-first", help="Do not go on past the first gap.")] = False
    backward: Annotated[
        bool, typer.Option("--backward", help="Differentiate each probe's result, and compare gradients too.")
    ] = False
    format: Annotated[str, format_of(DIAGNOSIS)] = "text"
    output: Output = None
    state: Annotated[
        Path | None, typer.Option("--state", metavar="DIR", help="Where results are kept [default: .migrate-lens].")
    ] = None
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Reuse builds of which nothing has changed.")] = True


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    add(app, DiagnoseFlags, diagnose)


def diagnose(flags: DiagnoseFlags) -> int:
    """Build, import and run a library under torch and under Paddle, and name every gap."""
    given = config.Given(
        probes=flags.probe or (),
        torch_python=flags.torch_python,
        paddle_python=flags.paddle_python,
        scope=flags.scope or (),
        keep_torch=flags.keep_torch,
        timeout=flags.timeout,
        tests=flags.tests,
        test_select=flags.test_select,
        stop_at_first=flags.stop_at_first,
        backward=flags.backward,
        state=flags.state,
        cache=flags.cache,
    )
    options = config.load(flags.path, given)
    # All that can be wrong with where results go is found before the long work starts.
    with state.opened(options.state) as folder:
        if flags.output is not None:
            path = options.path
            state.check_output(flags.output, [path if path.is_dir() else path.parent])
        report = _diagnosed(options)
        _keep(report, folder)
    if flags.output is None:
        _show(report, flags, folder)
    else:
        _deliver(report, flags, flags.output, folder)
    return exits.EXIT_CODES[report.verdict]


def _sources(options: config.Options) -> tuple[Path, ...]:
    """What a report is not put in the place of."""
    return (options.path, *(Path(probe) for probe in options.probes if Path(probe).is_file()))


def _diagnosed(options: config.Options) -> Report:
    from migrate_lens.commands import diagnose as diagnosis

    return diagnosis.diagnose(options, terminal.progress())


def _keep(report: Report, folder: Path) -> None:
    """The report and the traces that belong to it change together."""
    try:
        state.replace(folder, DIAGNOSIS.render(report, "json"))
    except OSError as error:
        path = folder / state.REPORT
        raise StateError(f"cannot write {path}: {error.strerror}", "name another folder: --state DIR") from error


def _show(report: Report, flags: DiagnoseFlags, folder: Path) -> None:
    named = str(flags.state or "")
    if flags.format != "text":
        terminal.show(DIAGNOSIS.render(report, flags.format, View(state=named)))
        return
    view = View(terminal.width(), os.path.relpath(folder / state.REPORT), named)
    terminal.show_in_colour(DIAGNOSIS.render(report, flags.format, view))


def _deliver(report: Report, flags: DiagnoseFlags, output: Path, folder: Path) -> None:
    try:
        state.write(output, DIAGNOSIS.render(report, flags.format, View(state=str(flags.state or ""))))
    except OSError as error:
        raise UsageError(
            f"cannot write {output}: {error.strerror}", f"the report is in {folder / state.REPORT}"
        ) from error
