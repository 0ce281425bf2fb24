"""A frozen dataclass of flags, in; a command of the command line with one option a field, out.

So a command is a function of one argument with a type, however many options it has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar, get_type_hints

import typer

from migrate_lens.cli import terminal
from migrate_lens.reports import Document, named

Flags = TypeVar("Flags")
Content = TypeVar("Content")

TorchPython = Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has torch.")]
PaddlePython = Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")]
State = Annotated[Path, typer.Option("--state", metavar="DIR", help="Where the last diagnosis is.")]
Issues = Annotated[Path, typer.Option(metavar="DIR", help="Where the reproductions are.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report there, not on stdout.")]


# What every command takes. ``--json`` is how some of them were asked for JSON before there was ``--format``.
_QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No lines of progress.")]
_VERBOSE = Annotated[bool, typer.Option("--verbose", "-v", help="Lines of progress also where no terminal is.")]
_JSON = Annotated[bool, typer.Option("--json", hidden=True)]
_COMMON = {"quiet": _QUIET, "verbose": _VERBOSE}
_FORMAT, _AS_JSON = "format", "as_json"


class Command(Generic[Flags]):
    """What Typer is given for a command: it shows the fields of the flags, and what all take, as its parameters.

    Args:
        flags: the dataclass; a field without a default is an argument that must be given.
        run: the command; its docstring is its help, its result the exit code.
    """

    def __init__(self, flags: Callable[..., Flags], run: Callable[[Flags], int]) -> None:
        self._flags = flags
        self._run = run
        self.__name__ = run.__name__
        self.__doc__ = run.__doc__
        hints = get_type_hints(flags, include_extras=True)
        common = {**_COMMON, **({_AS_JSON: _JSON} if _FORMAT in hints else {})}
        self.__annotations__ = {**hints, **common}
        own = [_parameter(field, hints) for field in _fields(flags)]
        self.__signature__ = inspect.Signature([*own, *(_switch(name, hint) for name, hint in common.items())])

    def __call__(self, **values: object) -> int:
        terminal.speak(quiet=bool(values.pop("quiet", False)), verbose=bool(values.pop("verbose", False)))
        if values.pop(_AS_JSON, False):
            values[_FORMAT] = "json"
        return self._run(self._flags(**values))


def add(app: typer.Typer, flags: Callable[..., Flags], run: Callable[[Flags], int]) -> None:
    """Add a command to the application, under the name of its function."""
    app.command(run.__name__)(Command(flags, run))


def _fields(flags: object) -> tuple[Field[object], ...]:
    assert isinstance(flags, type), f"{flags} is no class"
    assert is_dataclass(flags), f"{flags} is no dataclass"
    return fields(flags)


def _parameter(field: Field[object], hints: dict[str, object]) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def _switch(name: str, hint: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=hint)


def one_of(*formats: str) -> object:
    """The option that names one of a few formats, for what is no document of ``reports``."""
    return typer.Option(
        metavar="|".join(formats), help="How it is written.", callback=lambda name: named(name, formats)
    )


def format_of(document: Document[Content], help: str = "How the report is written.") -> object:
    """The option that names one of a document's formats."""
    return typer.Option(metavar="|".join(document.formats()), help=help, callback=document.format)
