"""An import that fails under Paddle in; an import from a public module, or a small stand-in, out."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from migrate_lens.model.trace import Event
from migrate_lens.remedies.fix.slots import Edit, line_starts, span
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.remedies.lab import Lab
from migrate_lens.shipped import folder

PUBLIC = (
    "torch", "torch.nn", "torch.nn.functional", "torch.utils", "torch.autograd", "torch.nn.utils", "torch.nn.init",
    "torch.linalg", "torch.library",
)  # fmt: skip


@cache
def shims() -> Mapping[str, Mapping[str, Any]]:
    """The shipped stand-ins, by the name that they stand in for."""
    raw = tomllib.loads((folder("rules/recipes") / "shims.toml").read_text(encoding="utf-8"))
    return {shim["name"]: shim for shim in raw["shim"]}


def edits(event: Event, node: ast.AST | None, data: bytes, lab: Lab) -> Iterator[tuple[Edit, Candidate]]:
    """Ways to get the name that a ``from`` import does not find."""
    if not isinstance(node, ast.ImportFrom) or not node.module or event.place.kind != "f":
        return
    alias = next((a for a in node.names if a.name == event.part), None)
    if alias is None:
        return
    others = [a for a in node.names if a is not alias]
    for module in PUBLIC:
        if module != node.module and _same_object(node.module, module, alias.name, lab):
            text = _statements(node, others, f"from {module} import {_named(alias)}")
            yield Edit(*span(data, node), text), Candidate(Kind.EQUAL_API, "", f"{module} has the very same object")
            return
    shim = shims().get(f"{node.module}.{alias.name}")
    if shim is not None:
        yield _guarded(node, alias, others, shim, data), Candidate(Kind.SHIM, "", shim["why"])


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
    alias = next((a for a in node.names if a.name == name), None)
    if alias is None:
        return ""
    return _statements(node, [a for a in node.names if a is not alias], f"from {module} import {_named(alias)}")


def _statements(node: ast.ImportFrom, others: list[ast.alias], new: str) -> str:
    """The import without the name, and the new one, on the line of the old."""
    if not others:
        return new
    return f"from {node.module} import {', '.join(map(_named, others))}; {new}"


def _guarded(
    node: ast.ImportFrom, alias: ast.alias, others: list[ast.alias], shim: Mapping[str, Any], data: bytes
) -> Edit:
    start, end = span(data, node)
    line = line_starts(data)[node.lineno - 1]
    indent = data[line:start].decode()
    break_ = "\r\n" if b"\r\n" in data else "\n"
    code = [f"    {x}" if x else "" for x in shim["code"].strip("\n").splitlines()]
    renamed = [f"    {alias.asname} = {alias.name}"] if alias.asname else []
    kept = [f"from {node.module} import {', '.join(map(_named, others))}"] if others else []
    lines = ["try:", f"    from {node.module} import {_named(alias)}", "except ImportError:", *code, *renamed, *kept]
    return Edit(start, end, break_.join(x if n == 0 or not x else indent + x for n, x in enumerate(lines)))
