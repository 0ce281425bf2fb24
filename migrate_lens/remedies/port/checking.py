"""The sources of a port in; what keeps it from being finished, out. Reading only: nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeGuard

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
_NAMED = 4


class Fault(StrEnum):
    """Which rule of a finished port is broken."""

    TODO = "todo"
    SYNTAX = "syntax"
    BROAD_EXCEPT = "broad_except"
    PRIVATE_API = "private_api"
    MECHANICAL_REWRITE = "mechanical_rewrite"
    UNMARKED = "unmarked"
    GLOBAL_COMPAT = "global_compat"
    CHURN = "churn"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that must change: where, which rule, and what to do."""

    path: str
    line: int
    rule: Fault
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
            if lines is None or complaint.line in lines or complaint.rule is Fault.TODO:
                yield complaint


def sources(root: Path) -> Iterator[Path]:
    """Python and native sources, in order; what tools put there is left out."""
    if root.is_file():
        yield root
        return
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        skipped = any(part in _SKIPPED or part.startswith(".") for part in parts[:-1])
        if not skipped and path.suffix in NATIVE | {".py"} and path.is_file():
            yield path


@dataclass(frozen=True, slots=True)
class Waiting:
    """A workaround comment of a port: where it stands, and the API that it waits for."""

    path: str
    line: int
    api: str


def workarounds(root: Path) -> Iterator[Waiting]:
    """The workaround comments of a tree, or of one file, that say what they wait for."""
    for file in sources(root):
        name = file.relative_to(root).as_posix() if root.is_dir() else file.name
        text = file.read_text(encoding="utf-8", errors="replace")
        for todo in todos(text, native=file.suffix in NATIVE):
            if todo.api:
                yield Waiting(name, todo.first, todo.api)


def check_text(name: str, text: str) -> Iterator[Complaint]:
    """Check one source."""
    native = Path(name).suffix in NATIVE
    comments = list(todos(text, native=native))
    for todo in comments:
        if todo.lacks:
            yield Complaint(name, todo.first, Fault.TODO, f"the workaround comment lacks {', '.join(todo.lacks)}")
    if native:
        yield from _native(name, text)
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        yield Complaint(name, getattr(error, "lineno", 1) or 1, Fault.SYNTAX, f"cannot be read: {error}")
        return
    yield from _swallowed(name, tree)
    yield from _paddle(name, tree, comments)
    yield from _scopes(name, tree)


def _native(name: str, text: str) -> Iterator[Complaint]:
    for number, line in enumerate(text.splitlines(), 1):
        private = private_name(line.partition("//")[0])
        if private:
            yield _private(name, number, private)


def _private(name: str, line: int, private: str) -> Complaint:
    return Complaint(name, line, Fault.PRIVATE_API, f"{private} is private to Paddle and may go without notice")


# -- broad handlers ----------------------------------------------------------------------------------------------------


def _swallowed(name: str, tree: ast.Module) -> Iterator[Complaint]:
    message = "a broad except that says nothing hides every other error"
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.TryStar))
    for handler in (handler for node in tries if _concerns(node) for handler in node.handlers):
        if _is_broad(handler) and all(_says_nothing(statement) for statement in handler.body):
            yield Complaint(name, handler.lineno, Fault.BROAD_EXCEPT, message)


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


def _paddle(name: str, tree: ast.Module, comments: list[Todo]) -> Iterator[Complaint]:
    yield from _imports(name, tree)
    unmarked: list[_Use] = []
    for use in _uses(tree):
        if private_name(use.dotted):
            yield _private(name, use.line, use.dotted)
        elif use.dotted != "paddle" and not _ALLOWED.match(use.dotted) and not _marked(tree, use.line, comments):
            unmarked.append(use)
    if len(unmarked) >= _MANY:
        names = ", ".join(dict.fromkeys(use.dotted for use in unmarked[:_NAMED]))
        message = f"{len(unmarked)} uses of Paddle's own names ({names}): keep the torch spelling"
        yield Complaint(name, unmarked[0].line, Fault.MECHANICAL_REWRITE, message)
    else:
        for use in unmarked:
            yield Complaint(name, use.line, Fault.UNMARKED, f"{use.dotted} without a workaround comment above it")


@dataclass(frozen=True, slots=True)
class _Use:
    """A name of Paddle's that a source uses or imports, as it is called in full."""

    line: int
    dotted: str


def _imports(name: str, tree: ast.Module) -> Iterator[Complaint]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "paddle" and alias.asname == "torch":
                    message = "import paddle as torch rewrites the library mechanically; let compat answer import torch"
                    yield Complaint(name, node.lineno, Fault.MECHANICAL_REWRITE, message)


def _aliases(tree: ast.Module) -> dict[str, str]:
    """What names of a source stand for, where that is Paddle's."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in filter(_imports_paddle, node.names):
                aliases[alias.asname or "paddle"] = alias.name if alias.asname else "paddle"
        elif _is_from_paddle(node):
            aliases |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return aliases


def _imports_paddle(alias: ast.alias) -> bool:
    return _of_paddle(alias.name)


def _is_from_paddle(node: ast.AST) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and not node.level and _of_paddle(node.module or "")


def _of_paddle(name: str) -> bool:
    return name.partition(".")[0] == "paddle"


def _uses(tree: ast.Module) -> Iterator[_Use]:
    """Names of Paddle that are used or imported, longest form, once each."""
    aliases = _aliases(tree)
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_Use(node.lineno, alias.name) for alias in node.names if _of_paddle(alias.name))
        elif isinstance(node, ast.Attribute) and node not in inner:
            chain = list(_chain(node))
            inner.update(chain)
            base = chain[-1].value
            if isinstance(base, ast.Name) and base.id in aliases:
                parts = (part.attr for part in reversed(chain))
                yield _Use(node.lineno, ".".join((aliases[base.id], *parts)))
        elif _is_from_paddle(node):
            yield from (_Use(node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _chain(node: ast.expr) -> Iterator[ast.Attribute]:
    """A look-up and those that it looks into, from the outside in."""
    while isinstance(node, ast.Attribute):
        yield node
        node = node.value


def _marked(tree: ast.Module, line: int, comments: list[Todo]) -> bool:
    """Whether a line stands in a statement, or in a block, that a full workaround comment is above."""
    starts = {todo.last + 1 for todo in comments if not todo.lacks}
    if line in starts or any(todo.first == line for todo in comments):
        return True
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno in starts)
    return any(node.lineno <= line <= (node.end_lineno or 0) for node in statements)


# -- the scope ---------------------------------------------------------------------------------------------------------


def _scopes(name: str, tree: ast.Module) -> Iterator[Complaint]:
    if _BUILD.search(name):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name_of_call = called(node)
        if name_of_call in ENABLERS and not any(keyword.arg == "scope" for keyword in node.keywords):
            message = (
                f"{name_of_call} without scope= answers every import torch in the process; "
                "name the packages: scope={...}"
            )
            yield Complaint(name, node.lineno, Fault.GLOBAL_COMPAT, message)


def called(call: ast.Call) -> str:
    """The last part of what is called; empty where it has no name."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""
