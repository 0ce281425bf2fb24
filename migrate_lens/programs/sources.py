"""A recorded place in, the syntax that stands there and the imports that give its names a meaning out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from migrate_lens.model.trace import Place

FRAMEWORK = "torch"


@dataclass(frozen=True, slots=True)
class Bound:
    """A name that an import statement binds.

    Attributes:
        local: the name in the file.
        statement: an import statement that binds it alone.
        dotted: what it stands for.
    """

    local: str
    statement: str
    dotted: str

    @property
    def is_framework(self) -> bool:
        """Whether it stands for the framework, or for something in it."""
        return self.dotted.partition(".")[0] == FRAMEWORK


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed source file.

    Attributes:
        tree: its syntax.
        imports: statements that import the framework, one name each, in order.
        names: what its import statements bind, by local name.
    """

    tree: ast.Module
    imports: tuple[str, ...]
    names: Mapping[str, Bound]

    @property
    def framework(self) -> str:
        """The name under which the file knows the framework itself; empty where it does not."""
        return next((local for local, bound in self.names.items() if bound.dotted == FRAMEWORK), "")


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
    names: dict[str, Bound] = {}
    framework: list[str] = []
    for node in ast.walk(tree):
        for bound in _bound(node):
            names.setdefault(bound.local, bound)
            if bound.is_framework and bound.statement not in framework:
                framework.append(bound.statement)
    return Module(tree, tuple(framework), names)


def _bound(node: ast.AST) -> Iterator[Bound]:
    """What an import statement binds."""
    if isinstance(node, ast.Import):
        yield from (_plain(alias) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            renamed = f" as {alias.asname}" if alias.asname else ""
            statement = f"from {node.module} import {alias.name}{renamed}"
            yield Bound(alias.asname or alias.name, statement, f"{node.module}.{alias.name}")


def _plain(alias: ast.alias) -> Bound:
    if alias.asname:
        return Bound(alias.asname, f"import {alias.name} as {alias.asname}", alias.name)
    top = alias.name.partition(".")[0]
    return Bound(top, f"import {alias.name}", top)


def unchanged(place: Place, data: bytes) -> bool:
    """Whether a file still has at a place what was recorded there."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    if place.line > len(lines):
        return False
    text = lines[place.line - 1][place.column :].decode("utf-8", errors="replace")
    return text.startswith(place.text.removesuffix(" ...").strip())


def node_at(place: Place) -> ast.AST | None:
    """The node at a place: from its file, else from the text that was recorded of it."""
    parsed = module(place.path)
    node = None if parsed is None else _node_in(parsed.tree, place)
    if node is not None:
        return node
    try:
        tree = ast.parse(place.text.strip())
    except SyntaxError:
        return None
    statement = tree.body[0] if len(tree.body) == 1 else None
    return statement.value if isinstance(statement, ast.Expr) else statement


def _node_in(tree: ast.Module, place: Place) -> ast.AST | None:
    """The node at a place; of an expression that is a statement, the expression."""
    position = (place.line, place.column, place.end_line, place.end_column)
    nodes = (node for node in ast.walk(tree) if not isinstance(node, ast.Expr))
    return next((node for node in nodes if _position(node) == position), None)


def _position(node: ast.AST) -> tuple[int, int, int, int] | None:
    if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None:
        return None
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset or 0)


def root(node: ast.expr) -> str:
    """``torch`` of ``torch.nn.functional``; empty for anything but a chain of names."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def binding(place: Place, name: str) -> Bound | None:
    """What an import binds to a local name where a place stands; None where no import does."""
    parsed = module(place.path)
    return None if parsed is None else parsed.names.get(name)


def framework_imports(place: Place) -> tuple[str, ...]:
    """All statements of the file that import the framework."""
    parsed = module(place.path)
    return () if parsed is None else parsed.imports
