"""Small questions about a program's syntax: a tree or an expression in, names or a yes out."""

from __future__ import annotations

import ast

# These look at the calling frame: they are left as they stand even where a program has a variable of the same name.
FRAMED = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec"))

# What calls the functions that it is handed, and where these stand among its arguments.
_CALLERS: dict[str, int | str] = {
    "map": 0, "filter": 0, "functools.reduce": 0, "itertools.starmap": 0, "itertools.accumulate": 1,
    "sorted": "key", "max": "key", "min": "key", "itertools.groupby": 1, "itertools.takewhile": 0,
    "itertools.dropwhile": 0, "itertools.filterfalse": 0,
}  # fmt: skip


def top(name: str) -> str:
    """The first part of a dotted name."""
    return name.partition(".")[0]


def annotations_are_strings(tree: ast.Module) -> bool:
    """Whether the module's annotations are never evaluated."""
    return any(
        isinstance(s, ast.ImportFrom) and s.module == "__future__" and any(a.name == "annotations" for a in s.names)
        for s in tree.body
    )


def aliases(tree: ast.Module) -> dict[str, str]:
    """Local names and the dotted names that the imports of the file give them."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                dotted = alias.name if alias.asname else top(alias.name)
                names[alias.asname or dotted] = dotted
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def bound(tree: ast.Module) -> frozenset[str]:
    """Names that the program gives a meaning of its own: ``input`` is a tensor more often than the builtin."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if type(node) is ast.arg:
            names.add(node.arg)
        elif type(node) is ast.Name and type(node.ctx) is ast.Store:
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
    return frozenset(names) - FRAMED


def given(kind: ast.ClassDef) -> frozenset[str]:
    """Names that a class gives to its objects, as far as its own text says so."""
    names = {target.id for statement in kind.body for target in _targets(statement) if isinstance(target, ast.Name)}
    for node in ast.walk(kind):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Call):
            texts = (a.value for a in node.args[:2] if isinstance(a, ast.Constant))
            names.update(text for text in texts if isinstance(text, str))
    return frozenset(names)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What an assignment binds; an annotation without a value binds nothing."""
    if isinstance(statement, ast.AnnAssign):
        return [statement.target] if statement.value is not None else []
    return statement.targets if isinstance(statement, ast.Assign) else []


def handed(node: ast.Call, name: str) -> ast.expr | None:
    """The function that a call hands to something that calls it: ``torch.relu`` in ``map(torch.relu, xs)``."""
    place = _CALLERS.get(name)
    if place is None:
        return None
    if isinstance(place, int):
        func = node.args[place] if len(node.args) > place else None
    else:
        func = next((k.value for k in node.keywords if k.arg == place), None)
    return func if isinstance(func, (ast.Name, ast.Attribute)) else None


def at_name(call: ast.Call, attribute: ast.Attribute) -> ast.Call:
    """Put a call where Python places what it does with an attribute: on the line of its name."""
    if attribute.end_lineno is not None and attribute.end_lineno != attribute.lineno:
        call.lineno = attribute.end_lineno
        call.col_offset = (attribute.end_col_offset or 0) - len(attribute.attr)
    return call


def chain(node: ast.expr) -> tuple[ast.Name, tuple[str, ...]] | None:
    """``torch.nn.functional`` as its root name and the attributes behind it."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node, tuple(reversed(attributes))) if isinstance(node, ast.Name) else None


def mangled(name: str) -> bool:
    """Whether a class body gives this name a prefix."""
    return name.startswith("__") and not name.endswith("__")


def handled(handler: ast.ExceptHandler) -> list[str]:
    """Last names of the exceptions that a handler catches."""
    if handler.type is None:
        return ["BaseException"]
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [ast.unparse(k).rpartition(".")[2] for k in kinds]
