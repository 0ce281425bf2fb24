"""A call whose name is missing in; gates that send the program into a branch that the library already has, out.

A library that has a fast path and a plain one chooses between them by a test of its own. The gate adds one condition to
that test: that the name is there. It opens by itself when it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import Path

from migrate_lens.programs.sources import of_tree
from migrate_lens.remedies.fix.fixing import Replacement
from migrate_lens.remedies.fix.slots import Edit, source_of, span
from migrate_lens.remedies.fix.strategies import Candidate

KIND = "feature_gate"
_WHY = "the library has a branch for a runtime without it; the gate opens by itself when the name is there"
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Compare, ast.Constant, ast.Subscript)
Choice = ast.If | ast.IfExp


def gates(path: Path, line: int, missing: tuple[str, str]) -> Iterator[Replacement]:
    """Gates for what stands on a line, the innermost choice first.

    Args:
        path: the file.
        line: where the name is used.
        missing: the longest part of its dotted name that is there, and the name behind it.
    """
    data = path.read_bytes()
    tree = ast.parse(data)
    local = next((name for name, (_, dotted) in of_tree(tree).names.items() if dotted == "torch"), "")
    owner, name = missing
    if not local or not owner:
        return
    there = f'hasattr({owner.replace("torch", local, 1)}, "{name}")'
    named = {n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == name and n.lineno == line}
    for choice, taken in reversed(list(_choices(tree, named))):
        if there in source_of(data, choice.test):
            return  # it has its gate
        made = _gated(data, choice.test, there, taken)
        yield Replacement(path, made, Candidate(KIND, there, _WHY), choice.test.lineno)


def _choices(tree: ast.Module, named: Set[ast.AST]) -> Iterator[tuple[Choice, bool]]:
    """Choices around some nodes, outermost first, and whether they are in the branch that a true test takes."""
    for parent in ast.walk(tree):
        for block in _blocks(parent):
            for number, node in enumerate(block):
                if isinstance(node, ast.If):
                    yield from _of_if(node, named, followed=number + 1 < len(block))
        if isinstance(parent, ast.IfExp):
            for part, taken in ((parent.body, True), (parent.orelse, False)):
                if _holds(part, named):
                    yield parent, taken


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _of_if(node: ast.If, named: Set[ast.AST], *, followed: bool) -> Iterator[tuple[Choice, bool]]:
    other_way = bool(node.orelse) or (followed and isinstance(node.body[-1], _LEAVES))
    if other_way and any(_holds(s, named) for s in node.body):
        yield node, True
    elif any(_holds(s, named) for s in node.orelse) and not (
        len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
    ):
        yield node, False


def _holds(node: ast.stmt | ast.expr, named: Set[ast.AST]) -> bool:
    return any(inner in named for inner in ast.walk(node))


def _gated(data: bytes, test: ast.expr, there: str, taken: bool) -> Edit:
    """The test with the condition: in a true branch the name must be there, in the other one it must not be missing."""
    text = source_of(data, test)
    plain = isinstance(test, _ATOMS) or (
        isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if taken else ast.Or)
    )
    text = text if plain else f"({text})"
    return Edit(*span(data, test), f"{text} and {there}" if taken else f"{text} or not {there}")
