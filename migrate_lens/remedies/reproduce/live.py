"""The text of a Python program in; it without what nothing in it refers to, out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

_TOLD_APART = frozenset(("result", "torch"))  # what is looked at in the end, and what must be there before an extension
_SAYS = frozenset(("print", "pprint"))


def words(text: str) -> frozenset[str]:
    """All names in a text, those in strings too."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))


def live(text: str, wanted: frozenset[str], own: frozenset[str] = frozenset()) -> str:
    """A module without the functions, classes, imports and values that nothing refers to, and without what it prints.

    Args:
        text: the module.
        wanted: names that others refer to.
        own: packages whose import does something: an extension registers what it has.
    """
    tree = ast.parse(text)
    body = [statement for statement in tree.body if not _prints(statement)]
    changed = True
    while changed:
        kept = [one for one in body if _imports(one, own) or _needed(one, body, wanted | _TOLD_APART)]
        changed = len(kept) < len(body)
        body = kept
    if body == tree.body:
        return text
    return ast.unparse(ast.Module(body, [])) + "\n" if body else ""


def sliced(text: str, own: frozenset[str]) -> str:
    """A program with what its result and its assertions are made of, as far as names say so.

    Args:
        text: the program.
        own: packages whose import does something.
    """
    kept: list[ast.stmt] = []
    used = set(_TOLD_APART)
    body = ast.parse(text).body
    modules = {name for statement in body for name in _imported(statement)}
    for statement in reversed(body):
        if isinstance(statement, ast.Assert) or _imports(statement, own) or _makes(statement, modules) & used:
            kept.append(statement)
            used |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return ast.unparse(ast.Module(kept[::-1], [])) + "\n"


def _makes(statement: ast.stmt, modules: set[str]) -> set[str]:
    """Names that a statement binds, or whose value it may change: that of which a method is called, or an item set."""
    made = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {node.name for node in ast.walk(statement) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    whole = statement.value if isinstance(statement, ast.Expr) else None
    touched = [whole.func] if isinstance(whole, ast.Call) else []
    touched += [target for node in ast.walk(statement) if isinstance(node, ast.Assign) for target in node.targets]
    changed = {root.id for root in map(_root, touched) if isinstance(root, ast.Name)}
    return made | (changed - modules) | _imported(statement)


def _imported(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {one.asname or one.name.partition(".")[0] for one in statement.names}


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _prints(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(statement, ast.Pass) or (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _SAYS
    )


def _imports(statement: ast.stmt, own: frozenset[str]) -> bool:
    """Whether a statement imports something of some packages."""
    match statement:
        case ast.Import(names=names):
            return any(one.name.partition(".")[0] in own for one in names)
        case ast.ImportFrom(module=str(module)):
            return module.partition(".")[0] in own
        case _:
            return False


def _needed(statement: ast.stmt, body: list[ast.stmt], wanted: frozenset[str]) -> bool:
    bound = set(_bound(statement))
    if not bound:
        return True
    others = (other for other in body if other is not statement)
    used = {node.id for other in others for node in ast.walk(other) if isinstance(node, ast.Name)}
    return bool(bound & (used | wanted)) or "__all__" in bound


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement does nothing but bind; none where it may do more."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.ImportFrom(level=0, names=names):
            yield from (one.asname or one.name for one in names)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.Attribute() | ast.Name()):
            yield name
        case _:
            return


def imported(program: str, sources: Mapping[str, str]) -> set[str]:
    """The files of a library that a program imports, and those that they import in turn.

    Args:
        program: its text.
        sources: the library, by path.
    """
    found: set[str] = set()
    texts = [("", program)]
    while texts:
        path, text = texts.pop()
        for module in _modules(path, text):
            for name in _files(module, sources):
                if name not in found:
                    found.add(name)
                    texts.append((name, sources[name]))
    return found


def _modules(path: str, text: str) -> Iterator[str]:
    """All modules that a text may import, by their whole names."""
    package = path.rpartition("/")[0].split("/") if "/" in path else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join((*base, *filter(None, (node.module,))))
            yield module
            yield from (f"{module}.{one.name}" for one in node.names)


def _files(module: str, sources: Mapping[str, str]) -> Iterator[str]:
    """The files of a module and of the packages around it."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        for name in (f"{path}.py", f"{path}/__init__.py"):
            yield from (known for known in sources if known == name or known.endswith(f"/{name}"))
