"""A tree and what its project declares, in; its build entry, or None where nothing has to be compiled, out."""

from __future__ import annotations

import re
from pathlib import Path

from migrate_lens.discovery.declared import Declared
from migrate_lens.discovery.tree import Tree
from migrate_lens.model.report import BuildEntry, BuildKind

_FIND_TORCH = re.compile(r"^[^#\n]*\bfind_package\s*\(\s*Torch\b", re.IGNORECASE | re.MULTILINE)
_PURE_BACKENDS = ("setuptools", "hatchling", "flit", "poetry", "pdm", "uv_build")


def find(tree: Tree, declared: Declared) -> BuildEntry | None:
    """The entry that the project's own installation would use first; just-in-time compilation comes last."""
    return _packaged(tree, declared) or _cmake(tree.root) or find_jit(tree)


def _packaged(tree: Tree, declared: Declared) -> BuildEntry | None:
    pyproject, setup = tree.root / "pyproject.toml", tree.root / "setup.py"
    if declared.backend.startswith("scikit_build_core"):
        return BuildEntry(BuildKind.SCIKIT_BUILD_CORE, pyproject, native=True)
    if declared.extensions:
        return BuildEntry(BuildKind.SETUPTOOLS, setup if setup.is_file() else pyproject, native=True)
    if tree.native and declared.backend and not declared.backend.startswith(_PURE_BACKENDS):
        return BuildEntry(BuildKind.PYPROJECT, pyproject, native=True)
    return None


def _cmake(root: Path) -> BuildEntry | None:
    path = root / "CMakeLists.txt"
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return None
    return BuildEntry(BuildKind.CMAKE, path, native=True) if _FIND_TORCH.search(text) else None


def find_jit(tree: Tree) -> BuildEntry | None:
    """The first file outside the tests that compiles when it runs."""
    for path, facts in tree.files.items():
        if facts.jit and not {"tests", "test"} & set(path.relative_to(tree.root).parts):
            return BuildEntry(BuildKind.JIT, path, native=True)
    return None
