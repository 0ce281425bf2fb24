"""What the user asked for: flags over ``[tool.migrate-lens]`` or ``migrate-lens.toml``, in; frozen ``Options``, out."""

from __future__ import annotations

import difflib
import math
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.errors import UsageError

DEFAULT_TIMEOUT = 600.0
DEFAULT_STATE = Path(".migrate-lens")


@dataclass(frozen=True, slots=True)
class Options:
    """What a diagnosis was asked to do.

    Attributes:
        path: the library or the script.
        probes: ``--probe`` values; empty means configured or found.
        torch_python: interpreter of the torch side.
        paddle_python: interpreter of the Paddle side.
        scope: compat scope; empty means found.
        keep_torch: leave real torch visible in the Paddle runtimes.
        timeout: seconds that any one stage may take.
        tests: run the ``test`` stage too.
        test_select: pytest's ``-k`` expression, which chooses among the tests.
        stop_at_first: do not go on past the first gap.
        backward: differentiate each probe's result, and compare gradients too.
        state: folder for the results of the last diagnosis.
        cache: take builds from earlier diagnoses where nothing that they depend on has changed.
        configured: probes from the library's configuration file; ``probes`` win over them.
    """

    path: Path
    probes: tuple[str, ...]
    torch_python: Path
    paddle_python: Path
    scope: tuple[str, ...]
    keep_torch: bool
    timeout: float
    tests: bool
    stop_at_first: bool
    state: Path
    configured: tuple[str, ...] = ()
    backward: bool = False
    cache: bool = True
    test_select: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """A configuration file: where it is and the values in it, already of the right types."""

    path: Path
    values: Mapping[str, object]

    def get(self, key: str) -> object:
        return self.values.get(key)


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed; None and empty mean that nothing was, so that the configuration file may say it.

    Attributes:
        probes: what to run.
        torch_python, paddle_python: an interpreter, or the folder of an environment.
        scope: compat scope.
        keep_torch: leave real torch visible in the Paddle runtimes.
        timeout: seconds that any one stage may take.
        tests: run the library's test files too.
        test_select: pytest's ``-k`` expression, which chooses among the tests.
        stop_at_first: do not go on past the first gap.
        backward: differentiate each probe's result.
        state: folder for the results.
        cache: take builds from earlier diagnoses.
    """

    probes: Sequence[str] = ()
    torch_python: str | None = None
    paddle_python: str | None = None
    scope: Sequence[str] = ()
    keep_torch: bool | None = None
    timeout: float | None = None
    tests: bool | None = None
    test_select: str | None = None
    stop_at_first: bool = False
    backward: bool = False
    state: Path | None = None
    cache: bool = True


NOTHING = Given()


def load(path: Path, given: Given = NOTHING) -> Options:
    """Merge flags over the configuration file of the library at ``path``; nothing is written or run.

    Raises:
        UsageError: the path does not exist, the file does not parse or holds an unknown key or a value of the wrong
            type, or an interpreter, a scope or a time limit cannot be used.
    """
    if not os.path.exists(path):
        raise UsageError(f"no such path: {path}", "name a library's folder or a .py file")
    file = _read(path if path.is_dir() else path.parent)
    return Options(
        path=path,
        probes=tuple(given.probes),
        torch_python=_python("torch-python", given.torch_python, file),
        paddle_python=_python("paddle-python", given.paddle_python, file),
        scope=_scope(given.scope, file),
        keep_torch=bool(_first(given.keep_torch, file.get("keep-torch"))),
        timeout=_timeout(given.timeout, file),
        tests=bool(_first(given.tests, file.get("tests"))),
        test_select=str(_first(given.test_select, file.get("test-select")) or ""),
        stop_at_first=given.stop_at_first,
        backward=given.backward,
        state=Path(os.path.abspath(DEFAULT_STATE if given.state is None else given.state.expanduser())),
        configured=_strings(file.get("probes")),
        cache=given.cache,
    )


def _first(flag: object, configured: object) -> object:
    """A flag wins over the file, also when it says no."""
    return configured if flag is None else flag


# --- the file ---------------------------------------------------------------------------------------------------------


def _read(folder: Path) -> _File:
    """The first of ``migrate-lens.toml`` and ``[tool.migrate-lens]`` that is there; an empty file otherwise."""
    own = folder / "migrate-lens.toml"
    if own.is_file():
        return _checked(own, _toml(own))
    project = folder / "pyproject.toml"
    if project.is_file():
        tool = _toml(project).get("tool")
        table = tool.get("migrate-lens", {}) if isinstance(tool, dict) else {}
        if not isinstance(table, dict):
            raise UsageError(f"{project}: tool.migrate-lens must be a table", "write it as [tool.migrate-lens]")
        return _checked(project, table)
    return _File(own, {})


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "make it readable, or remove it") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8", "save it as UTF-8, which TOML asks for") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}", "correct the line that it names") from error


def _checked(path: Path, table: Mapping[str, object]) -> _File:
    for key, value in table.items():
        if key not in _TYPES:
            raise UsageError(f"{path}: unknown key {key!r}", _nearest(key))
        wanted, fits = _TYPES[key]
        if not fits(value):
            raise UsageError(f"{path}: {key} must be {wanted}, not {_kind(value)}", f"set {key} to {wanted}")
    return _File(path, table)


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key.replace("_", "-").lower(), _TYPES, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else "the keys are " + ", ".join(sorted(_TYPES))


def _kind(value: object) -> str:
    names = {str: "a string", bool: "a boolean", int: "an integer", float: "a float", list: "a list", dict: "a table"}
    return names.get(type(value), type(value).__name__)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_Check = tuple[str, Callable[[object], bool]]
_STRINGS: _Check = ("a list of strings", _is_strings)
_STRING: _Check = ("a string", lambda value: isinstance(value, str))
_BOOLEAN: _Check = ("true or false", lambda value: isinstance(value, bool))
_TYPES: dict[str, _Check] = {
    "probes": _STRINGS,
    "torch-python": _STRING,
    "paddle-python": _STRING,
    "scope": _STRINGS,
    "keep-torch": _BOOLEAN,
    "timeout": ("a number of seconds", _is_number),
    "tests": _BOOLEAN,
    "test-select": _STRING,
}


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


# --- single values ----------------------------------------------------------------------------------------------------


def _timeout(flag: float | None, file: _File) -> float:
    value = _first(flag, file.get("timeout"))
    seconds = float(str(value)) if value is not None else DEFAULT_TIMEOUT
    if not (math.isfinite(seconds) and seconds > 0):
        where = "--timeout" if flag is not None else f"{file.path}: timeout"
        raise UsageError(f"{where} must be a positive number of seconds, not {seconds:g}", "for example --timeout 600")
    return seconds


def _scope(flags: Sequence[str], file: _File) -> tuple[str, ...]:
    names = tuple(flags) or _strings(file.get("scope"))
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            where = "--scope" if flags else f"{file.path}: scope"
            raise UsageError(
                f"{where}: {name!r} is not a module name", "name importable modules, such as --scope mylib"
            )
    return names


def _python(key: str, flag: str | None, file: _File) -> Path:
    """The interpreter for one side; links are kept, because a virtual environment's interpreter is one.

    A value with a separator is a path (relative to the file that holds it), another one is looked up on PATH, and a
    folder stands for the environment in it.
    """
    value = flag if flag is not None else file.get(key)
    if value is None:
        return Path(sys.executable)
    where = f"--{key}" if flag is not None else f"{file.path}: {key}"
    base = Path.cwd() if flag is not None else file.path.parent
    found = _executable(Path(str(value)).expanduser(), base)
    if found is None:
        raise UsageError(
            f"{where}: no interpreter at {str(value)!r}", "name a Python executable or an environment's folder"
        )
    return found


def _executable(value: Path, base: Path) -> Path | None:
    place = Path(os.path.abspath(base / value))
    if place.is_dir():
        place = place / "bin" / "python"
    elif len(value.parts) == 1 and not place.exists():
        place = Path(shutil.which(str(value)) or place)
    return place if place.is_file() and os.access(place, os.X_OK) else None
