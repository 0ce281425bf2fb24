"""An import that fails under Paddle in; an import from a public module, or a small stand-in, out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from migrate_lens.model.trace import Event
from migrate_lens.remedies.fix.slots import Edit, line_starts, span
from migrate_lens.remedies.fix.strategies import Candidate
from migrate_lens.remedies.lab import Lab
from migrate_lens.rulebook.recipes import Shim, load

PUBLIC = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.utils",
    "torch.autograd",
    "torch.nn.utils",
    "torch.nn.init",
    "torch.linalg",
    "torch.library",
)


def shims() -> Mapping[str, Shim]:
    """The shipped stand-ins, by the name that they stand in for."""
    return load().shims


def edits(event: Event, node: ast.AST | None, data: bytes, lab: Lab) -> Iterator[tuple[Edit, Candidate]]:
    """Ways to get the name that a ``from`` import does not find."""
    if not isinstance(node, ast.ImportFrom) or not node.module or event.place.kind != "f":
        return
    alias = _imported(node, event.part)
    if alias is None:
        return
    others = _without(node, alias)
    for module in PUBLIC:
        if module != node.module and _same_object(node.module, module, alias.name, lab):
            text = _statements(node, others, f"from {module} import {_named(alias)}")
            yield Edit(*span(data, node), text), Candidate("equal_api", "", f"{module} has the very same object")
            return
    shim = shims().get(f"{node.module}.{alias.name}")
    if shim is not None:
        lines = _guarded(node, alias, others, shim)
        yield _in_place(node, lines, data), Candidate("shim", "", shim.why)


def _imported(node: ast.ImportFrom, name: str) -> ast.alias | None:
    """The part of an import statement that imports a name."""
    return next((alias for alias in node.names if alias.name == name), None)


def _without(node: ast.ImportFrom, alias: ast.alias) -> list[ast.alias]:
    return [other for other in node.names if other is not alias]


def _same_object(old: str, new: str, name: str, lab: Lab) -> bool:
    """Whether torch has one object under both names, and Paddle has the new one."""
    program = (
        f"from {new} import {name} as new\ntry:\n    from {old} import {name} as old\n"
        "except ImportError:\n    old = new\nresult = old is new\n"
    )
    trial = lab.both(program)
    return all(side.finished and side.ending.value is True for side in (trial.torch, trial.paddle))


def _named(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def without_name(node: ast.ImportFrom, name: str, module: str) -> str:
    """An import statement that takes one of its names from another module; empty where it does not import it."""
    alias = _imported(node, name)
    if alias is None:
        return ""
    return _statements(node, _without(node, alias), f"from {module} import {_named(alias)}")


def _statements(node: ast.ImportFrom, others: Sequence[ast.alias], new: str) -> str:
    """The import without the name, and the new one, on the line of the old."""
    return f"{_import(node, others)}; {new}" if others else new


def _import(node: ast.ImportFrom, names: Sequence[ast.alias]) -> str:
    return f"from {node.module} import {', '.join(map(_named, names))}"


def _guarded(node: ast.ImportFrom, alias: ast.alias, others: Sequence[ast.alias], shim: Shim) -> list[str]:
    """The lines that import a name, define it where that fails, and import the other names as before."""
    lines = ["try:", f"    {_import(node, [alias])}", "except ImportError:"]
    for line in shim.code.strip("\n").splitlines():
        lines.append(f"    {line}" if line else "")
    if alias.asname:
        lines.append(f"    {alias.asname} = {alias.name}")
    if others:
        lines.append(_import(node, others))
    return lines


def _in_place(node: ast.ImportFrom, lines: Sequence[str], data: bytes) -> Edit:
    """Lines in the place of a statement, at its depth and with the file's own line breaks."""
    start, end = span(data, node)
    indent = data[line_starts(data)[node.lineno - 1] : start].decode()
    first, *rest = lines
    line_break = "\r\n" if b"\r\n" in data else "\n"
    return Edit(start, end, line_break.join([first, *(indent + line if line else "" for line in rest)]))
