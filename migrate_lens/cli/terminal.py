"""Text and lines of progress, in; what a person or a pipe sees on stdout and stderr, out. Nothing else prints.

Whatever is printed passes through ``media``: no text drives the terminal, wherever it comes from.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from enum import Enum

from migrate_lens import media
from migrate_lens.model.errors import UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.reports import WIDTH

MAX_WIDTH = 120


def show(text: str) -> None:
    """Write to stdout; what its encoding cannot say is written as escapes."""
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    with _quiet_pipe():
        print(media.lines(text), end="", flush=True)


def say(line: str) -> None:
    """Write a line to stderr."""
    print(media.lines(line), file=sys.stderr, flush=True)


class Loudness(Enum):
    """Who gets lines of progress."""

    NOBODY = "quiet"
    TERMINALS = "as usual"
    EVERYBODY = "verbose"


_loudness = Loudness.TERMINALS


def speak(*, quiet: bool, verbose: bool) -> None:
    """Choose who gets lines of progress, for the command that runs.

    Raises:
        UsageError: nobody and everybody.
    """
    global _loudness
    if quiet and verbose:
        raise UsageError("--quiet and --verbose are two wishes", "leave one out")
    _loudness = Loudness.NOBODY if quiet else Loudness.EVERYBODY if verbose else Loudness.TERMINALS


def progress() -> Progress:
    """Lines for a person who waits; a log gets them with ``--verbose`` only."""
    heard = _loudness is Loudness.EVERYBODY or (_loudness is Loudness.TERMINALS and _is_terminal(sys.stderr))
    if not heard:
        return lambda line: None
    return lambda line: say(f"- {line}")


def width() -> int:
    """Columns for text on stdout: what a terminal has, up to what can be read with ease."""
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if _is_terminal(sys.stdout) else WIDTH
    return min(columns, MAX_WIDTH)


def show_in_colour(text: str) -> None:
    """Write a diagnosis to stdout, in colour where a person sees it and has not said otherwise."""
    if _is_terminal(sys.stdout) and not os.environ.get("NO_COLOR"):
        _paint(media.lines(text))
    else:
        show(text)


_STYLES = {
    r"(?m)^No gaps: .*": "bold green",
    r"(?m)^\d+ gaps?: .*": "bold red",
    r"(?m)^Nothing was exercised: .*": "bold red",
    r"(?m)^The torch baseline does not run.*": "bold red",
    r"(?m)^(First divergence|What to do next|UNCLASSIFIED.*|\w+: .*)$": "bold",
    r"\bpassed\b": "green",
    r"\b(failed|crashed|timed_out)\b": "red",
    r"(?m)^    migrate-lens .*": "cyan",
}


def _paint(text: str) -> None:
    """Colours come last and only here, so that the text itself is the same everywhere."""
    from rich.console import Console
    from rich.text import Text

    painted = Text(text.rstrip("\n"))
    for pattern, style in _STYLES.items():
        painted.highlight_regex(pattern, style)
    with _quiet_pipe():
        Console(file=sys.stdout, soft_wrap=True, highlight=False).print(painted)


def _is_terminal(stream: object) -> bool:
    """A closed stream is None, and no terminal."""
    return stream is not None and bool(getattr(stream, "isatty", bool)())


class _quiet_pipe:  # noqa: N801 - reads as a function
    """A reader that went away (``| head``) is no error; the interpreter must not complain about it at exit either."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None or not issubclass(kind, BrokenPipeError):
            return False
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
