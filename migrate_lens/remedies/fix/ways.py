"""A call in a parsed file in; how its result is used there, and which conditions already guard it, out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from migrate_lens.model.value import NAMED_TUPLE, Encoded, NamedTupleValue, tag
from migrate_lens.programs.sources import Module
from migrate_lens.remedies.fix.slots import Edit, Form, Site, span
from migrate_lens.remedies.fix.strategies import Missing

Layout = tuple[Form, tuple[str, ...]]
_CATCHING = frozenset(("AttributeError", "ImportError", "ModuleNotFoundError", "Exception", "BaseException"))
_MARK = "slot_"
_Node = TypeVar("_Node", bound=ast.AST)


def layout(site: Site) -> Layout:
    """How a call is laid out: replacements of one layout name the same slots."""
    return site.form, site.keywords


@dataclass(frozen=True, slots=True)
class Ways:
    """A call as it stands in its file, and torch's result of it."""

    parsed: Module
    site: Site
    want: Encoded

    @property
    def is_unpacked(self) -> bool:
        """Whether the program takes its result apart by position alone, so that a tuple does for a named one."""
        match self._parent():
            case ast.Subscript(slice=ast.Constant(value=int())):
                return True
            case ast.Assign(targets=[ast.Tuple() | ast.List()]):
                return True
            case _:
                return False

    def as_item(self, data: bytes, made: Edit) -> Edit | None:
        """The edit with the field that the program reads of its result as an item; None where it reads none."""
        parent = self._parent()
        if tag(self.want) != NAMED_TUPLE or not isinstance(parent, ast.Attribute):
            return None
        fields = NamedTupleValue._make(self.want).fields
        if parent.attr not in fields:
            return None
        _, end = span(data, parent)
        return replace(made, end=end, text=f"{made.text}[{fields.index(parent.attr)}]")

    def _parent(self) -> ast.AST | None:
        return next(ancestors(self.parsed.tree, self.site.node), None)


def ancestors(tree: ast.Module, node: ast.AST) -> Iterator[ast.AST]:
    """What stands around a node of a tree, innermost first."""
    above = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    while node in above:
        node = above[node]
        yield node


def repeats_a_guard(template: str, ways: Ways) -> bool:
    """Whether a replacement asks what the program has already asked, where the call stands."""
    asked = _asked(ast.parse(_with_names(template))) if "hasattr(" in template else set()
    known = guards(ways.parsed, ways.site.node)
    return bool(asked) and (asked <= known or is_caught(ways.parsed, ways.site.node))


def is_guarded(parsed: Module, node: ast.AST, missing: Missing) -> bool:
    """Whether the program has asked for a name, or catches that it is not there, where a node stands."""
    return (missing.owner, missing.name) in guards(parsed, node) or is_caught(parsed, node)


def _with_names(template: str) -> str:
    return re.sub(r"\{(\d+)\}", rf"{_MARK}\1", template)


def guards(parsed: Module, node: ast.AST) -> set[tuple[str, str]]:
    """The names that are known to be there where a node stands: ``(owner, name)`` of each question around it."""
    asked: set[tuple[str, str]] = set()
    below = node
    for around in ancestors(parsed.tree, node):
        asked |= _asked_by(around, below)
        below = around
    local = parsed.framework
    return {(_in_torch(owner, local), name) for owner, name in asked}


def is_caught(parsed: Module, node: ast.AST) -> bool:
    """Whether the program itself catches that a name is not there."""
    below = node
    for around in ancestors(parsed.tree, node):
        if isinstance(around, ast.Try) and below in around.body and any(map(_catches, around.handlers)):
            return True
        below = around
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = (node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name))
    return not _CATCHING.isdisjoint(names)


def _asked_by(around: ast.AST, below: ast.AST) -> set[tuple[str, str]]:
    """What a statement or expression asks before it comes to a part of it."""
    match around:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if below is not test:
            return _asked(test)
        case ast.BoolOp(values=values):
            return {one for value in _before(values, below) for one in _asked(value)}
        case ast.FunctionDef(body=body) | ast.Module(body=body):
            return {one for statement in _before(body, below) for one in _left_by(statement)}
        case _:
            return set()


def _before(nodes: Sequence[_Node], below: ast.AST) -> list[_Node]:
    """The nodes that come before one of them; none where it is not among them."""
    places = [number for number, node in enumerate(nodes) if node is below]
    return list(nodes[: places[0]]) if places else []


def _left_by(statement: ast.stmt) -> set[tuple[str, str]]:
    """What a statement that leaves the function has asked."""
    if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Raise):
        return _asked(statement.test)
    return _asked(statement.test) if isinstance(statement, ast.Assert) else set()


def _asked(tree: ast.AST) -> set[tuple[str, str]]:
    """The ``hasattr`` and ``getattr`` questions in a piece of syntax."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[owner, ast.Constant(value=str(name)), *_]):
                found.add((ast.unparse(owner), name))
    return found


def _in_torch(owner: str, local: str) -> str:
    return re.sub(rf"^{re.escape(local)}\b", "torch", owner) if local else owner
