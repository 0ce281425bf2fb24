"""A folder, in; its Python files with what each one says of itself, its native sources, and what was skipped, out."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrate_lens.model.report import Skipped

NATIVE = frozenset({".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp"})
PRUNED = frozenset({".git", ".venv", "node_modules", "__pycache__"})
OUTPUTS = frozenset({"build", "dist"})
JIT_CALLS = frozenset({"torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What one Python file says of itself.

    Attributes:
        tests: its name and its functions or classes are those of a pytest file.
        jit: it calls ``torch.utils.cpp_extension.load`` or ``load_inline``.
    """

    tests: bool
    jit: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """What is below ``root``; all paths are absolute and sorted.

    Attributes:
        files: Python files that parse, with their facts.
        native: C++ and CUDA sources and headers.
        skipped: what could not be read, with paths relative to ``root``.
    """

    root: Path
    files: Mapping[Path, Facts]
    native: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


@dataclass(slots=True)
class _Walk:
    root: Path
    skipped: list[Skipped] = field(default_factory=list)

    def skip(self, path: str | Path, reason: str) -> None:
        self.skipped.append(Skipped(os.path.relpath(path, self.root), reason))


def scan(root: Path) -> Tree:
    """Read the tree below ``root``; never raises for what is in it."""
    walk = _Walk(root)
    facts: dict[Path, Facts] = {}
    native: list[Path] = []
    for path in sorted(_files(walk)):
        if path.suffix in NATIVE:
            native.append(path)
        elif path.suffix == ".py":
            data = check(path)
            if isinstance(data, str):
                walk.skip(path, data)
            else:
                facts[path] = gather(path, data)
    return Tree(root, facts, tuple(native), tuple(sorted(walk.skipped, key=lambda skipped: skipped.path)))


# --- walking ----------------------------------------------------------------------------------------------------------


def _files(walk: _Walk) -> Iterator[Path]:
    """Regular files below the root; a pipe or a dangling link is none."""

    def unreadable(error: OSError) -> None:
        walk.skip(error.filename or walk.root, error.strerror or "cannot be read")

    top = os.path.realpath(walk.root)
    for folder, names, files in os.walk(walk.root, onerror=unreadable):
        names[:] = [name for name in sorted(names) if _wanted(walk, top, os.path.join(folder, name))]
        yield from (Path(folder, name) for name in files if os.path.isfile(os.path.join(folder, name)))


def _wanted(walk: _Walk, top: str, folder: str) -> bool:
    """Whether to go into the folder. No link is followed: what it names inside the tree is read there, once."""
    if _pruned(folder):
        return False
    if os.path.islink(folder):
        if os.path.commonpath([top, os.path.realpath(folder)]) != top:
            walk.skip(folder, "a link to a folder outside the library")
        return False
    return True


def _pruned(folder: str) -> bool:
    name = os.path.basename(folder)
    if name in PRUNED or name.startswith(".") or name.endswith(".egg-info"):
        return True
    if name in OUTPUTS:
        return not os.path.isfile(os.path.join(folder, "__init__.py"))
    return os.path.isfile(os.path.join(folder, "pyvenv.cfg"))


# --- reading one file -------------------------------------------------------------------------------------------------


def check(path: Path) -> bytes | str:
    """The file's bytes if they are Python, else one line that says why not. PEP 263 coding lines are honoured.

    Compiling is faster than making a syntax tree, and finds more.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        return error.strerror or "cannot be read"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library's invalid escapes are no business of ours
            compile(data, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"syntax error in line {error.lineno}: {error.msg}" if error.lineno else f"syntax error: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"cannot be parsed: {error or type(error).__name__}"
    return data


def parse(path: Path) -> ast.Module | str:
    """The file's syntax tree, or the reason of ``check``."""
    data = check(path)
    return data if isinstance(data, str) else _tree(data)


def _tree(data: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(data)


def gather(path: Path, data: bytes) -> Facts:
    """The facts of one file that ``check`` let pass; a tree is made only where there may be something to see."""
    named, compiling = is_test_name(path.stem), b"cpp_extension" in data
    module = _tree(data) if named or compiling else ast.Module([], [])
    return Facts(named and _has_tests(module), compiling and _is_jit(module))


def is_test_name(stem: str) -> bool:
    """Whether pytest would collect a file of this name."""
    return stem.startswith("test_") or stem.endswith("_test")


def names(module: ast.Module) -> frozenset[str]:
    """All names bound anywhere in the file, so never too few; ``*`` where a star import may bind more."""
    return frozenset(name for node in ast.walk(module) for name in _bound(node))


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)


def _has_tests(module: ast.Module) -> bool:
    """Whether pytest may collect something here: a test function, or a class that has tests or inherits them."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            return True
        if isinstance(node, ast.ClassDef) and any(_is_test(item) for item in node.body):
            return node.name.startswith("Test") or bool(node.bases)
    return False


def _is_test(item: ast.stmt) -> bool:
    return isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test")


def _is_jit(module: ast.Module) -> bool:
    full = aliases(module)
    calls = (node.func for node in ast.walk(module) if isinstance(node, ast.Call)) if full else ()
    return any(dotted(func, full) in JIT_CALLS for func in calls)


def aliases(module: ast.Module) -> dict[str, str]:
    """What each name imported from torch stands for: ``{"load": "torch.utils.cpp_extension.load"}``."""
    full: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch" and not node.level:
            full.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    full.update({alias.asname: alias.name} if alias.asname else {"torch": "torch"})
    return full


def dotted(node: ast.expr, full: Mapping[str, str]) -> str:
    """The full dotted name of an expression, empty if it does not start at an imported name."""
    match node:
        case ast.Name(id=name):
            return full.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value, full)
            return f"{owner}.{attr}" if owner else ""
    return ""
