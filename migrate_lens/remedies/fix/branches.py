"""A call whose name is missing in; gates that send the program into a branch that the library already has, out.

A library that has a fast path and a plain one chooses between them by a test of its own. The gate adds one condition to
that test: that the name is there. It opens by itself when it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path

from migrate_lens.programs.sources import of_tree
from migrate_lens.remedies.fix.slots import Edit, source_of, span
from migrate_lens.remedies.fix.strategies import Candidate, Kind, Missing
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.fix.ways import is_guarded

_WHY = "the other branch of the library's own choice; the gate opens by itself when the name is there"
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Compare, ast.Constant, ast.Subscript)
Choice = ast.If | ast.IfExp


def gates(path: Path, line: int, missing: Missing) -> Iterator[Replacement]:
    """Gates for what stands on a line, the innermost choice first.

    Args:
        path: the file.
        line: where the name is used.
        missing: what of the name is not there.
    """
    data = path.read_bytes()
    tree = ast.parse(data)
    parsed = of_tree(tree)
    local = parsed.framework
    if not local:
        return
    there = f'hasattr({missing.owner.replace("torch", local, 1)}, "{missing.name}")'
    named = _named(tree, missing.name, line)
    if any(is_guarded(parsed, node, missing) for node in named):
        return  # it has its gate
    for choice, taken in reversed(list(_choices(tree, named))):
        made = _gated(data, choice.test, there, taken)
        yield Replacement(path, made, Candidate(Kind.FEATURE_GATE, there, _WHY), choice.test.lineno)


def when_closed(gate: Replacement) -> Edit:
    """The edit of a gate as it is where the name is missing, for a trial where it is there."""
    return replace(gate.edit, text=gate.edit.text.replace(gate.candidate.template, "False"))


def _named(tree: ast.Module, name: str, line: int) -> set[ast.AST]:
    """The nodes on a line that look a name up."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node for node in nodes if node.attr == name and node.lineno == line}


def _choices(tree: ast.Module, named: Set[ast.AST]) -> Iterator[tuple[Choice, bool]]:
    """Choices around some nodes, outermost first, and whether they are in the branch that a true test takes."""
    for parent in ast.walk(tree):
        for block in _blocks(parent):
            for number, node in enumerate(block):
                if isinstance(node, ast.If):
                    yield from _of_if(node, named, followed=number + 1 < len(block))
        if isinstance(parent, ast.IfExp):
            yield from _of_expression(parent, named)


def _of_expression(choice: ast.IfExp, named: Set[ast.AST]) -> Iterator[tuple[Choice, bool]]:
    if _holds(choice.body, named):
        yield choice, True
    if _holds(choice.orelse, named):
        yield choice, False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _of_if(node: ast.If, named: Set[ast.AST], *, followed: bool) -> Iterator[tuple[Choice, bool]]:
    other_way = bool(node.orelse) or (followed and isinstance(node.body[-1], _LEAVES))
    is_elif = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
    if other_way and any(_holds(statement, named) for statement in node.body):
        yield node, True
    elif not is_elif and any(_holds(statement, named) for statement in node.orelse):
        yield node, False


def _holds(node: ast.stmt | ast.expr, named: Set[ast.AST]) -> bool:
    return any(inner in named for inner in ast.walk(node))


def _gated(data: bytes, test: ast.expr, there: str, taken: bool) -> Edit:
    """The test with the condition: in a true branch the name must be there, in the other one it must not be missing."""
    text = source_of(data, test)
    joins = ast.And if taken else ast.Or
    plain = isinstance(test, _ATOMS) or (isinstance(test, ast.BoolOp) and isinstance(test.op, joins))
    text = text if plain else f"({text})"
    return Edit(*span(data, test), f"{text} and {there}" if taken else f"{text} or not {there}")
