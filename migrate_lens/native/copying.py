"""A library goes in; a copy of its tree without what builds leave behind comes out; the library is only read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

SKIPPED_ANYWHERE = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        "__pycache__",
        "node_modules",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".migrate-lens",
    }
)
SKIPPED_AT_ROOT = frozenset({"build", "dist", "_skbuild"})
SKIPPED_SUFFIXES = (".so", ".pyc", ".egg-info", ".egg")


def copy_tree(root: Path, target: Path) -> Path:
    """Copies ``root`` to ``target``; links that would lead out of the copy are pointed at what they meant."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(root, target, symlinks=True, ignore=_ignored(root, target))
    for path in _links(target):
        _mend(path, root / path.relative_to(target))
    _make_writable(target)
    return target


def without_libraries(installed: Path, target: Path) -> Path:
    """Copies an installed library whose extensions another framework cannot load.

    Extension modules are left out; libraries that a program loads by their path are there and empty, so that it finds
    them and fails where it loads them.
    """
    shutil.copytree(installed, target, symlinks=True, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for path in installed.rglob("lib*.so"):
        (target / path.relative_to(installed)).write_bytes(b"")
    return target


def _ignored(root: Path, target: Path) -> Callable[[str, list[str]], set[str]]:
    """What copytree is told to leave out of each folder; the copy itself may stand below the root."""
    inside = target if target.is_relative_to(root) else None

    def ignored(folder: str, names: list[str]) -> set[str]:
        here = Path(folder)
        skipped = {name for name in names if name in SKIPPED_ANYWHERE or name.endswith(SKIPPED_SUFFIXES)}
        skipped |= {name for name in names if not _ordinary(here / name)}
        if here == root:
            skipped |= SKIPPED_AT_ROOT & set(names)
        if inside is not None:
            skipped |= {name for name in names if inside == here / name}
        return skipped

    return ignored


def _ordinary(path: Path) -> bool:
    """Whether it is a file, a folder or a link: a socket or a pipe would block or break the copy."""
    return path.is_symlink() or path.is_file() or path.is_dir()


def _links(folder: Path) -> list[Path]:
    links = []
    for here, folders, files in os.walk(folder):
        links += [path for name in (*folders, *files) if (path := Path(here, name)).is_symlink()]
    return links


def _mend(copy: Path, original: Path) -> None:
    if not copy.exists() and original.exists():
        copy.unlink()
        copy.symlink_to(original.resolve())


def _make_writable(folder: Path) -> None:
    """A read-only tree is copied with its modes, and a build has to write into it."""
    for here, _, files in os.walk(folder):
        for path in (Path(here), *(Path(here, name) for name in files)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o600 | (0o100 if path.is_dir() else 0))
