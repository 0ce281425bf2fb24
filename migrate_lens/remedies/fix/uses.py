"""A call in a parsed file in; what its own statement makes of the result, as far as nothing else is needed, out.

Of ``(x * y).sum().to(int32) + z`` that is ``.sum().to(torch.int32)``: what is known of the product alone is enough to
run it. A difference that does not outlive it is none for the program, and one that comes of it is one.
"""

from __future__ import annotations

import ast
import builtins
import copy
from dataclasses import dataclass

from migrate_lens.programs.sources import Module
from migrate_lens.remedies.fix.ways import ancestors

_RESULT = "{0}"
_CONDITIONAL = (ast.If, ast.While, ast.IfExp, ast.Assert)


def use_of(parsed: Module, call: ast.AST) -> str:
    """What is made of a call's result: an expression with ``{0}`` for it; empty where it goes on as it is."""
    known = _Known(parsed)
    below, text, used = call, _RESULT, ""
    for around in ancestors(parsed.tree, call):
        if isinstance(around, _CONDITIONAL) and around.test is below:
            return f"bool({text})"
        if isinstance(around, ast.keyword) or not isinstance(around, ast.expr):
            break
        wider = known.around(around, below, text)
        if not wider:
            break
        text, below = wider, around
        used = used if _is_method(parsed, around) else text
    return used


def _is_method(parsed: Module, node: ast.AST) -> bool:
    """Whether an attribute is read in order to be called."""
    parent = next(ancestors(parsed.tree, node), None)
    return isinstance(parent, ast.Call) and parent.func is node


@dataclass(frozen=True, slots=True)
class _Known:
    """The names of a file that mean the same everywhere: Python's own, and those of the framework."""

    parsed: Module

    def around(self, node: ast.expr, below: ast.AST, text: str) -> str:
        """The text of an expression with that of one part of it given; empty where another part is not known."""
        if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp | ast.BoolOp):
            return ""
        parts = [part for part in ast.iter_child_nodes(node) if part is not below]
        if not all(self._says_itself(part) for part in parts):
            return ""
        made = ast.unparse(_Spelled(self.parsed, below).visit(copy.deepcopy(node, {id(below): below})))
        return made.replace(_Spelled.PLACE, text if text == _RESULT else f"({text})")

    def _says_itself(self, part: ast.AST) -> bool:
        names = [node for node in ast.walk(part) if isinstance(node, ast.Name)]
        return all(self._is_known(name.id) for name in names) and not _steps(part)

    def _is_known(self, name: str) -> bool:
        bound = self.parsed.names.get(name)
        if name in _stored(self.parsed.tree):
            return False
        return bound.is_framework if bound is not None else hasattr(builtins, name)


def _steps(part: ast.AST) -> bool:
    """Whether a part does something of its own: a call, or a scope."""
    return any(isinstance(node, ast.Call | ast.Lambda | ast.comprehension | ast.Starred) for node in ast.walk(part))


def _stored(tree: ast.Module) -> set[str]:
    """The names that a file gives a meaning of its own."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return names | {node.name for node in ast.walk(tree) if isinstance(node, defined)}


class _Spelled(ast.NodeTransformer):
    """Names of the framework in full, and a mark in the place of a part."""

    PLACE = "_the_result_"

    def __init__(self, parsed: Module, below: ast.AST) -> None:
        self._names = parsed.names
        self._below = below

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace the part, and names."""
        if node is self._below:
            return ast.Name(self.PLACE, ast.Load())
        if isinstance(node, ast.Name) and node.id in self._names:
            return ast.parse(self._names[node.id].dotted, mode="eval").body
        return self.generic_visit(node)
