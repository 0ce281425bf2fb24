"""A tree and what its project declares, in; its import root, top-level names and public modules, out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.discovery.declared import Declared
from migrate_lens.discovery.tree import Tree, is_test_name

# What a folder of a project may be called without being its package.
ASIDE = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "demo", "demos", "build", "dist", "csrc"}
    | {"benchmarks", "benchmark", "scripts", "tools", "ci"}
)
# What a file of a project may be called without being its module.
ASIDE_FILES = frozenset(["setup", "conftest", "noxfile", "tasks", "versioneer", "smoke", "test", "fabfile"])
TESTS = frozenset({"tests", "test"})


@dataclass(frozen=True, slots=True)
class Layout:
    """How a library is imported.

    Attributes:
        import_root: the folder to put on ``sys.path``.
        packages: top-level import names.
        modules: dotted names of the public modules, packages first.
    """

    import_root: Path
    packages: tuple[str, ...]
    modules: tuple[str, ...]


def is_project(root: Path) -> bool:
    """Whether a build or a packaging tool would take this folder for a project's."""
    return any((root / name).is_file() for name in ("setup.py", "pyproject.toml", "setup.cfg", "CMakeLists.txt"))


def of_package(tree: Tree) -> Layout:
    """The layout where the folder itself is a package, as in an installation."""
    top = tree.root
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    return Layout(top.parent, (top.name,), _public(tree, top.parent, (top.name,)))


def of_project(tree: Tree, declared: Declared) -> Layout:
    """The layout of a source tree: the declared folder, else ``src``, else the project's own."""
    roots = _roots(tree.root, declared)
    for find in (_named_or_regular, _loose, _aside):
        for root in roots:
            if names := find(tree, root, declared):
                return Layout(root, names, _public(tree, root, names))
    return Layout(tree.root, (), ())


def _roots(root: Path, declared: Declared) -> list[Path]:
    """``src`` comes first only if the project's own name is not in the folder above it."""
    names = {normal(name) for name in (declared.name, *declared.packages) if name}
    flat = any(normal(item.stem) in names for item in root.iterdir() if _is_importable(item))
    usual = [root, root / "src"] if flat else [root / "src", root]
    return [root / declared.where, *usual] if declared.where else usual


def _is_importable(item: Path) -> bool:
    return item.suffix == ".py" or (item / "__init__.py").is_file()


def normal(name: str) -> str:
    """A distribution's name as an import name would be spelled."""
    return re.sub(r"[-.]+", "_", name).lower()


def _named_or_regular(tree: Tree, root: Path, declared: Declared) -> tuple[str, ...]:
    """Packages first: the declared ones, else those with an ``__init__.py``, else the one called like the project."""
    folders, files = _folders(tree, root), _modules(tree, root)
    regular = {name for name in folders - ASIDE if (root / name / "__init__.py").is_file()}
    packages = set(declared.packages) & folders or regular or _called(declared.name, folders)
    modules = set(declared.modules) & files or _called(declared.name, files)
    return (*sorted(packages), *sorted(modules - packages))


def _called(name: str, known: set[str]) -> set[str]:
    return {one for one in known if normal(one) == normal(name)}


def _loose(tree: Tree, root: Path, declared: Declared) -> tuple[str, ...]:
    """All modules of a folder that has nothing better, but not those that only packaging or testing use."""
    return tuple(sorted(name for name in _modules(tree, root) - ASIDE_FILES if not is_test_name(name)))


def _aside(tree: Tree, root: Path, declared: Declared) -> tuple[str, ...]:
    """Folders that are packages by form but not by name: taken only where there is nothing else."""
    return tuple(sorted(name for name in _folders(tree, root) if (root / name / "__init__.py").is_file()))


def _folders(tree: Tree, root: Path) -> set[str]:
    return {parts[0] for path in tree.files if len(parts := _below(path, root)) > 1 and parts[0].isidentifier()}


def _modules(tree: Tree, root: Path) -> set[str]:
    return {path.stem for path in tree.files if path.parent == root and path.stem.isidentifier()}


def _below(path: Path, root: Path) -> tuple[str, ...]:
    return path.relative_to(root).parts if path.is_relative_to(root) else ()


# --- modules ----------------------------------------------------------------------------------------------------------


def _public(tree: Tree, root: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    found = {name: path.name != "__init__.py" for name, path in _named(tree, root) if name.partition(".")[0] in names}
    return tuple(sorted((name for name in found if _is_public(name)), key=lambda name: (found[name], name)))


def _named(tree: Tree, root: Path) -> Iterator[tuple[str, Path]]:
    for path in tree.files:
        name = module_name(path, root)
        if name and _reachable(path, root):
            yield name, path


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file below the import root, empty if it has none."""
    parts = list(_below(path.with_suffix(""), root))
    if parts and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else ""


def _reachable(path: Path, root: Path) -> bool:
    """Below the top-level folder, which may be a namespace, every folder must be a regular package."""
    folders = path.relative_to(root).parts[1:-1]
    top = root / path.relative_to(root).parts[0]
    return all((top.joinpath(*folders[:depth]) / "__init__.py").is_file() for depth in range(1, len(folders) + 1))


def _is_public(name: str) -> bool:
    first, *rest = name.split(".")
    hidden = any(part.startswith("_") for part in (first, *rest))
    return not hidden and not any(part in TESTS or part == "conftest" or is_test_name(part) for part in rest)
