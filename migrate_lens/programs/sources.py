"""A recorded place in, the syntax that stands there and the imports that give its names a meaning out."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from migrate_lens.model.trace import Place

FRAMEWORK = "torch"


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed source file.

    Attributes:
        tree: its syntax.
        imports: statements that import the framework, one name each, in order.
        names: by local name, the import statement that binds it and the dotted name that it stands for.
    """

    tree: ast.Module
    imports: tuple[str, ...]
    names: dict[str, tuple[str, str]]


def module(path: str) -> Module | None:
    """Read a file; None where it is gone or does not parse."""
    try:
        return _parsed(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> Module:
    return of_tree(ast.parse(data))


def of_tree(tree: ast.Module) -> Module:
    """The imports of a parsed file."""
    names: dict[str, tuple[str, str]] = {}
    order: list[str] = []
    for node in ast.walk(tree):
        for local, statement, dotted in _bound(node):
            names.setdefault(local, (statement, dotted))
            if dotted.partition(".")[0] == FRAMEWORK and statement not in order:
                order.append(statement)
    return Module(tree, tuple(order), names)


def _bound(node: ast.AST) -> list[tuple[str, str, str]]:
    """What an import statement binds: (local name, the statement for it alone, dotted name)."""
    if isinstance(node, ast.Import):
        return [_plain(alias) for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        found = []
        for alias in node.names:
            renamed = f" as {alias.asname}" if alias.asname else ""
            statement = f"from {node.module} import {alias.name}{renamed}"
            found.append((alias.asname or alias.name, statement, f"{node.module}.{alias.name}"))
        return found
    return []


def _plain(alias: ast.alias) -> tuple[str, str, str]:
    if alias.asname:
        return alias.asname, f"import {alias.name} as {alias.asname}", alias.name
    top = alias.name.partition(".")[0]
    return top, f"import {alias.name}", top


def unchanged(place: Place, data: bytes) -> bool:
    """Whether a file still has at a place what was recorded there."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    if place.line > len(lines):
        return False
    text = lines[place.line - 1][place.column :].decode("utf-8", errors="replace")
    return text.startswith(place.text.removesuffix(" ...").strip())


def node_at(place: Place) -> ast.AST | None:
    """The node at a place: from its file, else from the text that was recorded of it."""
    found = module(place.path)
    if found is not None:
        for node in ast.walk(found.tree):
            if _position(node) == (place.line, place.column, place.end_line, place.end_column):
                if isinstance(node, ast.Expr):
                    continue
                return node
    try:
        tree = ast.parse(place.text.strip())
    except SyntaxError:
        return None
    statement = tree.body[0] if len(tree.body) == 1 else None
    return statement.value if isinstance(statement, ast.Expr) else statement


def _position(node: ast.AST) -> tuple[int, int, int, int] | None:
    if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None:
        return None
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset or 0)


def root(node: ast.expr) -> str:
    """``torch`` of ``torch.nn.functional``; empty for anything but a chain of names."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def binding(place: Place, name: str) -> tuple[str, str]:
    """The import statement that binds a local name where a place stands, and what it stands for; empty without one."""
    found = module(place.path)
    return found.names.get(name, ("", "")) if found else ("", "")


def framework_imports(place: Place) -> tuple[str, ...]:
    """All statements of the file that import the framework."""
    found = module(place.path)
    return found.imports if found else ()
