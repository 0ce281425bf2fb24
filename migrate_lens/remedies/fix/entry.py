"""A file that is run first in; the lines at its top that switch compat on, out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from migrate_lens.remedies.fix.slots import Edit, first_line, line_starts
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.port.checking import ENABLERS, called

# Real torch goes on answering where it is installed, and where there is neither the program fails as it did before.
_GATE = 'if importlib.util.find_spec("torch") is None and importlib.util.find_spec("paddle"):'


def scope_line(path: Path, scope: Sequence[str]) -> Replacement:
    """Compat for some packages, at the top of the program that imports them."""
    names = ", ".join(f'"{name}"' for name in scope)
    why = f"the smallest scope in which the program does as with global compat is {', '.join(scope)}"
    return _at_top(path, f"paddle.enable_compat(scope={{{names}}})", Kind.SCOPE_LINE, why)


def build_switch(path: Path) -> Replacement:
    """Compat for a build, which is a process of its own, at the top of the build script."""
    why = "a build is a process of its own, and its script imports torch"
    return _at_top(path, "paddle.enable_compat()", Kind.BUILD_SWITCH, why)


def switched_on(path: Path) -> bool:
    """Whether a file switches compat on by itself."""
    nodes = ast.walk(ast.parse(path.read_bytes()))
    return any(called(node) in ENABLERS for node in nodes if isinstance(node, ast.Call))


def _at_top(path: Path, call: str, kind: Kind, why: str) -> Replacement:
    data = path.read_bytes()
    lines = ["import importlib.util", "", _GATE, "    import paddle", "", f"    {call}", "", ""]
    at = top_of(data)
    made = Edit(at, at, _text(data, at, lines))
    return Replacement(path, made, Candidate(kind, "", why), data[:at].count(b"\n") + 1)


def _text(data: bytes, at: int, lines: Sequence[str]) -> str:
    newline = "\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else "\n"
    text = newline.join(lines)
    return newline + text if at and not data[:at].endswith((b"\n", b"\xef\xbb\xbf")) else text


def top_of(data: bytes) -> int:
    """Where a file's first statement begins that is neither its docstring nor an import from the future.

    Raises:
        SyntaxError: the file does not parse.
    """
    body = ast.parse(data).body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:] if isinstance(body[0].value.value, str) else body
    rest = [statement for statement in body if not _is_of_the_future(statement)]
    if not rest:
        return len(data)
    return line_starts(data)[first_line(rest[0]) - 1]


def _is_of_the_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
