"""Command-line arguments, in; a report on stdout, progress on stderr and an exit code, out. Nothing else prints.

Exit codes: 0 no gaps, 1 gaps, 2 usage or tool error, 3 the torch baseline does not run, 130 interrupted.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_lens import __version__, config, state
from migrate_lens.cli import remedies as cli_remedies
from migrate_lens.cli import trace as cli_trace
from migrate_lens.cli.terminal import terminal
from migrate_lens.commands import audit as audit_command
from migrate_lens.model.errors import LensError, StateError, UsageError
from migrate_lens.reports import FORMATS, text

if TYPE_CHECKING:
    from migrate_lens.model.report import Report

NO_GAPS, GAPS, ERROR, BASELINE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES = {"no_gaps": NO_GAPS, "gaps": GAPS, "baseline_failed": BASELINE_FAILED}
REPORT = "report.json"
MAX_WIDTH = 120

app = typer.Typer(
    name="migrate-lens",
    help="Run a PyTorch library under torch and under Paddle's torch compat layer, and name every gap.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: importing rich would double the time it takes
    pretty_exceptions_enable=False,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; every error that has a remedy is shown here."""
    try:
        code: object = app(
            list(sys.argv[1:] if argv is None else argv), prog_name="migrate-lens", standalone_mode=False
        )
    except LensError as error:
        return _complain(error.message, error.remedy)
    except typer.TyperException as error:
        return _complain(_usage_message(error), "migrate-lens --help, or migrate-lens COMMAND --help")
    except OSError as error:
        return _complain(f"{error.filename or 'the system'}: {error.strerror or error}", "see that it can be used")
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception:  # noqa: BLE001 - the command line's edge: status 1 means gaps, so a fault of ours must not end in it
        traceback.print_exc()
        return _complain("this is a fault of migrate-lens, not of your library", "report it with the lines above")
    if code == INTERRUPTED:
        _say("interrupted")
    return code if isinstance(code, int) else NO_GAPS


def _complain(message: str, remedy: str) -> int:
    """One line that says what is wrong, and one that says what to do."""
    _say(f"error: {' '.join(message.split())}")
    if remedy:
        _say(f"  try: {' '.join(remedy.split())}")
    return ERROR


def _usage_message(error: typer.TyperException) -> str:
    formatted = getattr(error, "format_message", None)
    message = str(formatted() if callable(formatted) else error)
    return message[:1].lower() + message[1:].rstrip(".")


# --- commands ---------------------------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        _print(f"migrate-lens {__version__}\n")
        raise typer.Exit


def _known_format(value: str) -> str:
    if value in FORMATS:
        return value
    near = difflib.get_close_matches(value, FORMATS, n=1)
    raise UsageError(f"--format: no format {value!r}", f"one of {', '.join(near or FORMATS)}")


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command."""


@app.command()
def diagnose(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A library's folder, or a lone script.")],
    probe: Annotated[
        list[str] | None,
        typer.Option(metavar="PROBE", help="A script, package.module:callable or pytest node to run; may be repeated."),
    ] = None,
    torch_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has torch.")] = None,
    paddle_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")] = None,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="PACKAGE", help="Where Paddle answers; may be repeated.")
    ] = None,
    keep_torch: Annotated[
        bool | None, typer.Option("--keep-torch/--hide-torch", help="Leave real torch visible on the Paddle side.")
    ] = None,
    tests: Annotated[
        bool | None, typer.Option("--tests/--no-tests", help="Run the library's pytest files too.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The time that any one stage may take [default: 600].")
    ] = None,
    stop_at_first: Annotated[bool, typer.Option("--stop-at-first", help="Do not go on past the first gap.")] = False,
    backward: Annotated[
        bool, typer.Option("--backward", help="Differentiate each probe's result, and compare gradients too.")
    ] = False,
    format: Annotated[
        str, typer.Option(metavar="|".join(FORMATS), help="How the report is written.", callback=_known_format)
    ] = "text",
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report there, not on stdout.")] = None,
    state_folder: Annotated[
        Path | None, typer.Option("--state", metavar="DIR", help="Where results are kept [default: .migrate-lens].")
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Reuse builds of which nothing has changed.")
    ] = True,
) -> int:
    """Build, import and run a library under torch and under Paddle, and name every gap."""
    options = config.load(
        path,
        probes=probe or (),
        torch_python=torch_python,
        paddle_python=paddle_python,
        scope=scope or (),
        keep_torch=keep_torch,
        timeout=timeout,
        tests=tests,
        stop_at_first=stop_at_first,
        backward=backward,
        state=state_folder,
        cache=cache,
    )
    return _diagnose(options, format, output)


def _diagnose(options: config.Options, name: str, output: Path | None) -> int:
    """All that can be wrong with where results go is found before the long work starts."""
    from migrate_lens.commands import diagnose as pipeline

    with state.opened(options.state) as folder:
        if output is not None:
            state.check_output(output)
        report = pipeline.diagnose(options, _progress())
        with state.locked(folder):
            state.replace_folder(folder / state.TRACES)
            _store(folder / REPORT, FORMATS["json"](report))
    if output is None:
        _show(report, name, folder)
    else:
        _deliver(output, FORMATS[name](report), folder)
    return EXIT_CODES[report.verdict]


def _store(path: Path, document: str) -> None:
    try:
        state.write(path, document)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}", "name another folder: --state DIR") from error


def _deliver(output: Path, document: str, folder: Path) -> None:
    try:
        state.write(output, document)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}", f"the report is in {folder / REPORT}") from error


@app.command()
def explain(
    rule: Annotated[
        str | None,
        typer.Argument(metavar="RULE", help="A rule's id, or a gap's of the last diagnosis; none lists all."),
    ] = None,
    state_folder: Annotated[
        Path, typer.Option("--state", metavar="DIR", help="Where the last diagnosis is.")
    ] = config.DEFAULT_STATE,
) -> int:
    """Say what a rule means, why, and what to do."""
    from migrate_lens.commands import explain as explaining

    _print(explaining.run(rule, state_folder / REPORT, min(_columns(), MAX_WIDTH)))
    return NO_GAPS


# --- the terminal -----------------------------------------------------------------------------------------------------


def _is_terminal(stream: object) -> bool:
    """A closed stream is None, and no terminal."""
    return stream is not None and bool(getattr(stream, "isatty", bool)())


def _columns() -> int:
    return shutil.get_terminal_size((text.WIDTH, 24)).columns if _is_terminal(sys.stdout) else text.WIDTH


def _show(report: Report, name: str, folder: Path) -> None:
    if name != "text":
        _print(FORMATS[name](report))
        return
    shown = text.render(report, min(_columns(), MAX_WIDTH))
    shown += f"\nAll sites and evidence: {os.path.relpath(folder / REPORT)}\n"
    if _is_terminal(sys.stdout) and not os.environ.get("NO_COLOR"):
        _paint(shown)
    else:
        _print(shown)


_STYLES = {
    r"(?m)^No gaps: .*": "bold green",
    r"(?m)^\d+ gaps?: .*": "bold red",
    r"(?m)^The torch baseline does not run.*": "bold red",
    r"(?m)^(First divergence|What to do next|UNCLASSIFIED.*|\w+: .*)$": "bold",
    r"\bpassed\b": "green",
    r"\b(failed|crashed|timed_out)\b": "red",
    r"(?m)^    migrate-lens .*": "cyan",
}


def _paint(shown: str) -> None:
    """Colours come last and only here, so that the text itself is the same everywhere."""
    from rich.console import Console
    from rich.text import Text

    painted = Text(shown.rstrip("\n"))
    for pattern, style in _STYLES.items():
        painted.highlight_regex(pattern, style)
    with _quiet_pipe():
        Console(file=sys.stdout, soft_wrap=True, highlight=False).print(painted)


def _print(shown: str) -> None:
    """Write to stdout; what its encoding cannot say is written as escapes."""
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    with _quiet_pipe():
        print(shown, end="", flush=True)


class _quiet_pipe:  # noqa: N801 - reads as a function
    """A reader that went away (``| head``) is no error; the interpreter must not complain about it at exit either."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None or not issubclass(kind, BrokenPipeError):
            return False
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _progress() -> Callable[[str], None]:
    """Lines for a person who waits; a log gets none."""
    if not _is_terminal(sys.stderr):
        return lambda line: None
    return lambda line: _say(f"- {line}")


terminal.show, terminal.progress = _print, _progress
cli_trace.register(app)
cli_remedies.register(app)
audit_command.register(app, _print, _say)
