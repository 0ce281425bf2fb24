"""The sources of a port in; what keeps it from being finished, out. Reading only: nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.remedies.port.todos import Todo, todos
from migrate_lens.rulebook.private import private_name

NATIVE = frozenset((".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".cuh"))
_SKIPPED = frozenset(("__pycache__", "node_modules", "venv", "build", "dist", "site-packages", "issues"))
_BUILD = re.compile(r"(^|/)(setup|build\w*|\w*_build|_?build_backend|hatch_build|conanfile)\.py$")
ENABLERS = frozenset(("enable_compat", "enable_torch_proxy", "use_compat_guard", "use_torch_proxy_guard"))
# What a port may say of Paddle by itself: the switch, the version, and the build entry.
_ALLOWED = re.compile(
    r"paddle\.(enable_compat|disable_compat|use_compat_guard|compat\.\w*|__version__|version\.\w*|utils\.cpp_extension\.?\w*)$"
)
_BROAD = frozenset(("Exception", "BaseException"))
_MANY = 3


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that must change: where, which rule, and what to do."""

    path: str
    line: int
    rule: str
    message: str


def check_tree(root: Path, changed: Mapping[str, Collection[int]] | None = None) -> Iterator[Complaint]:
    """Check all sources below a folder, or one file.

    Args:
        root: the port.
        changed: lines that the port changed, by path; None where that is not known, and then all lines count.
    """
    for path in sources(root):
        name = path.relative_to(root).as_posix() if root.is_dir() else path.name
        if changed is not None and name not in changed:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = None if changed is None else changed[name]
        for complaint in check_text(name, text):
            if lines is None or complaint.line in lines or complaint.rule == "todo":
                yield complaint


def sources(root: Path) -> Iterator[Path]:
    """Python and native sources, in order; what tools put there is left out."""
    if root.is_file():
        yield root
        return
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if (
            path.suffix in NATIVE | {".py"}
            and path.is_file()
            and not any(p in _SKIPPED or p.startswith(".") for p in parts[:-1])
        ):
            yield path


def check_text(name: str, text: str) -> Iterator[Complaint]:
    """Check one source."""
    native = Path(name).suffix in NATIVE
    found = list(todos(text, native=native))
    for todo in found:
        if todo.lacks:
            yield Complaint(name, todo.first, "todo", f"the workaround comment lacks {', '.join(todo.lacks)}")
    if native:
        yield from _native(name, text)
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        yield Complaint(name, getattr(error, "lineno", 1) or 1, "syntax", f"cannot be read: {error}")
        return
    yield from _swallowed(name, tree)
    yield from _paddle(name, tree, found)
    yield from _scopes(name, tree)


def _native(name: str, text: str) -> Iterator[Complaint]:
    for number, line in enumerate(text.splitlines(), 1):
        found = private_name(line.partition("//")[0])
        if found:
            yield Complaint(name, number, "private_api", f"{found} is private to Paddle and may go without notice")


# -- broad handlers ----------------------------------------------------------------------------------------------------


def _swallowed(name: str, tree: ast.Module) -> Iterator[Complaint]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Try | ast.TryStar) and _concerns(node):
            for handler in node.handlers:
                if _is_broad(handler) and all(_says_nothing(s) for s in handler.body):
                    yield Complaint(
                        name, handler.lineno, "broad_except", "a broad except that says nothing hides every other error"
                    )


def _concerns(node: ast.Try | ast.TryStar) -> bool:
    return any(re.search(r"\b(torch|paddle)\b", ast.unparse(s)) for s in node.body)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(k) in _BROAD for k in kinds)


def _says_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass | ast.Continue) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


# -- Paddle's own names ------------------------------------------------------------------------------------------------


def _paddle(name: str, tree: ast.Module, found: list[Todo]) -> Iterator[Complaint]:
    yield from _imports(name, tree)
    aliases = _aliases(tree)
    unmarked = []
    for node, dotted in _chains(tree, aliases):
        if private_name(dotted):
            yield Complaint(
                name, node.lineno, "private_api", f"{dotted} is private to Paddle and may go without notice"
            )
        elif not _ALLOWED.match(dotted) and dotted != "paddle" and not _marked(tree, node.lineno, found):
            unmarked.append((node.lineno, dotted))
    if len(unmarked) >= _MANY:
        names = ", ".join(dict.fromkeys(d for _, d in unmarked[:4]))
        message = f"{len(unmarked)} uses of Paddle's own names ({names}): keep the torch spelling"
        yield Complaint(name, unmarked[0][0], "mechanical_rewrite", message)
    else:
        for line, dotted in unmarked:
            yield Complaint(name, line, "unmarked", f"{dotted} without a workaround comment above it")


def _imports(name: str, tree: ast.Module) -> Iterator[Complaint]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "paddle" and alias.asname == "torch":
                    message = "import paddle as torch rewrites the library mechanically; let compat answer import torch"
                    yield Complaint(name, node.lineno, "mechanical_rewrite", message)


def _aliases(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname or "paddle": a.name if a.asname else "paddle" for a in node.names if _of_paddle(a.name)}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and _of_paddle(node.module):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return found


def _of_paddle(name: str) -> bool:
    return name.partition(".")[0] == "paddle"


def _chains(tree: ast.Module, aliases: dict[str, str]) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Names of Paddle that are used or imported, longest form, once each."""
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and _of_paddle(node.module):
            yield from ((node, f"{node.module}.{a.name}") for a in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node, a.name) for a in node.names if _of_paddle(a.name))
        elif isinstance(node, ast.Attribute) and node not in inner:
            parts, base = [node.attr], node.value
            while isinstance(base, ast.Attribute):
                inner.add(base)
                parts.append(base.attr)
                base = base.value
            if isinstance(base, ast.Name) and base.id in aliases:
                yield node, ".".join((aliases[base.id], *reversed(parts)))


def _marked(tree: ast.Module, line: int, found: list[Todo]) -> bool:
    """Whether a line stands in a statement, or in a block, that a full workaround comment is above."""
    starts = {todo.last + 1 for todo in found if not todo.lacks}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.stmt)
            and node.end_lineno
            and node.lineno <= line <= node.end_lineno
            and node.lineno in starts
        ):
            return True
    return line in starts or any(todo.first == line for todo in found)


# -- the scope ---------------------------------------------------------------------------------------------------------


def _scopes(name: str, tree: ast.Module) -> Iterator[Complaint]:
    if _BUILD.search(name):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ENABLERS and not any(k.arg == "scope" for k in node.keywords):
            message = (
                f"{called} without scope= answers every import torch in the process; name the packages: scope={{...}}"
            )
            yield Complaint(name, node.lineno, "global_compat", message)
