"""Command-line arguments, in; a report on stdout, progress on stderr and an exit code, out. Nothing else prints.

Exit codes: 0 no gaps, 1 gaps, 2 usage or tool error, 3 the torch baseline does not run, 128 + signal interrupted:
130 by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from migrate_lens import __version__, interrupts
from migrate_lens.cli import audit as cli_audit
from migrate_lens.cli import diagnose as cli_diagnose
from migrate_lens.cli import remedies as cli_remedies
from migrate_lens.cli import terminal
from migrate_lens.cli import trace as cli_trace
from migrate_lens.cli.exits import ERROR, EXIT_CODES, GAPS, INTERRUPTED, NO_GAPS
from migrate_lens.model.errors import LensError

__all__ = ["EXIT_CODES", "GAPS", "NO_GAPS", "app", "main"]

app = typer.Typer(
    name="migrate-lens",
    help="Run a PyTorch library under torch and under Paddle's torch compat layer, and name every gap.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: importing rich would double the time it takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    except MemoryError:
        return _complain("there is not enough memory", "raise the limit, or run it where there is more")
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception:  # noqa: BLE001 - the command line's edge: status 1 means gaps, so a fault of ours must not end in it
        traceback.print_exc()
        return _complain("this is a fault of migrate-lens, not of your library", "report it with the lines above")
    if code == INTERRUPTED:
        terminal.say("interrupted")
        return interrupts.exit_code()
    return code if isinstance(code, int) else NO_GAPS


def _complain(message: str, remedy: str) -> int:
    """One line that says what is wrong, and one that says what to do."""
    terminal.say(f"error: {' '.join(message.split())}")
    if remedy:
        terminal.say(f"  try: {' '.join(remedy.split())}")
    return ERROR


def _usage_message(error: typer.TyperException) -> str:
    formatted = getattr(error, "format_message", None)
    message = str(formatted() if callable(formatted) else error)
    return message[:1].lower() + message[1:].rstrip(".")


# --- commands ---------------------------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        terminal.show(f"migrate-lens {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command."""


cli_diagnose.register(app)  # commands are listed in the order in which they are added


cli_remedies.register_explain(app)
cli_trace.register(app)
cli_remedies.register(app)
cli_audit.register(app)
