"""Both traces in; the calls of the program's code that torch ran from within its own, and the target never did, out.

A hook, a method that a subclass overrides or that is put in place of the framework's, a function registered with it: a
run may come to its end without them, and then they were not missed on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.trace import Event, Place, Trace

_FRAMEWORK = "torch."


@dataclass(frozen=True, slots=True)
class Unentered:
    """Code of the program's that one call runs under torch alone.

    Attributes:
        outer: torch's call, which both sides make.
        calls: what the code does under torch.
    """

    outer: Event
    calls: tuple[Event, ...]


def unentered(want: Trace, got: Trace) -> Iterator[Unentered]:
    """Calls that run code of the program's under torch alone, in torch's order."""
    known = {event.key for event in got.events}
    within: list[Event] = []
    for event in want.events:
        if event.flags.inner:
            within.append(event)
            continue
        calls = tuple(one for one in within if one.key not in known)
        if calls and event.key in known:
            yield Unentered(event, calls)
        within = []


@dataclass(frozen=True, slots=True)
class Own:
    """A function of the program's, by the name under which the framework runs it.

    Attributes:
        api: that name, as torch documents it.
        name: its own name.
        line: where it is put in the framework's place.
        lines: where it stands.
    """

    api: str
    name: str
    line: int
    lines: range


def put_in_place(outer: Event, place: Place) -> Own | None:
    """The program's function around a place, where it stands for one of the framework's."""
    try:
        tree = ast.parse(Path(place.path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    around = [node for node in ast.walk(tree) if _holds(node, place.line)]
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    if not functions:
        return None
    function = functions[-1]
    lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    assigned = _assigned(tree, function.name)
    if assigned is not None:
        return Own(_dotted(tree, assigned), function.name, assigned.lineno, lines)
    owner = outer.api if outer.flags.made_layer else outer.api.rpartition(".")[0]
    extends = any(isinstance(node, ast.ClassDef) and _extends(tree, node) for node in around)
    if not extends or not outer.api.startswith(_FRAMEWORK):
        return None
    return Own(f"{owner}.{function.name}", function.name, function.lineno, lines)


def _holds(node: ast.AST, line: int) -> bool:
    kinds = ast.FunctionDef | ast.ClassDef
    return isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _extends(tree: ast.Module, kind: ast.ClassDef, met: frozenset[ast.ClassDef] = frozenset()) -> bool:
    """Whether a class has one of the framework's among its bases, or among those of a base in the same file."""
    for base in kind.bases:
        if isinstance(base, ast.Attribute | ast.Name) and _dotted(tree, base).startswith(_FRAMEWORK):
            return True
        if isinstance(base, ast.Name):
            here = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == base.id)
            if any(node not in met and _extends(tree, node, met | {kind}) for node in here if node is not kind):
                return True
    return False


def _assigned(tree: ast.Module, name: str) -> ast.Attribute | None:
    """Where a function is put in the place of an attribute of the framework's: ``torch.nn.Module.to = mine``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name) or node.value.id != name:
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and _dotted(tree, target).startswith("torch."):
                return target
    return None


def _dotted(tree: ast.Module, target: ast.Attribute | ast.Name) -> str:
    """The dotted name of an attribute by the imports of its file; empty where it has none."""
    head, _, rest = ast.unparse(target).partition(".")
    rest = f".{rest}" if rest else ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.asname or alias.name.partition(".")[0]: alias.asname and alias.name for alias in node.names}
            if head in names:
                return f"{names[head] or head}{rest}"
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if head == (alias.asname or alias.name):
                    return f"{node.module}.{alias.name}{rest}"
    return ""
