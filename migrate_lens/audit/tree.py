"""What there is to read: a PATH in; its source files, and what was left out with its reason, out.

A folder, a file, a wheel, an sdist, or the name of an installed distribution. Links are not followed; archives are read
into a temporary folder, members only, and nothing in them is run.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from migrate_lens.model.errors import LibraryError
from migrate_lens.model.report import Skipped
from migrate_lens.model.uses import words

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hh", ".inl", ".hip"), "cpp"),
    ".cmake": "cmake",
}
NAMED = {"CMakeLists.txt": "cmake", "pyproject.toml": "toml"}
NOT_SOURCES = words(
    ".git .hg .svn .tox .nox .venv venv __pycache__ node_modules .mypy_cache .ruff_cache .pytest_cache .eggs "
    ".migrate-lens site-packages dist-packages"
)
LARGEST = 16 << 20
VERSION = re.compile(r"-\d.*|\.(?:tar\.\w+|tgz|zip|whl)$")
ROLE_PARTS = {
    **dict.fromkeys(("test", "tests", "testing", "unittests", "ci", ".github", ".circleci"), "test"),
    **dict.fromkeys(
        [
            "example",
            "examples",
            "demo",
            "demos",
            "docs",
            "doc",
            "tutorial",
            "tutorials",
            "benchmark",
            "benchmarks",
            "bench",
            "notebooks",
            "samples",
            "scripts",
            "gallery",
            "gallery_src",
            "third_party",
            "3rdparty",
            "thirdparty",
            "vendor",
            "packaging",
            "tools",
        ],
        "example",
    ),
    **dict.fromkeys(("cmake", "buildsystem"), "build"),
}
BUILD_FILES = frozenset(
    ("setup.py", "build.py", "build_backend.py", "custom_build.py", "CMakeLists.txt", "pyproject.toml")
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read: its path in the library, where it is, and what tells whether it changed."""

    path: str
    file: str
    lang: str
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class Tree:
    """What there is to read of one PATH."""

    name: str
    root: Path
    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]


def role_of(path: str) -> str:
    """library, test, example, or build: by the names of its folders and of the file."""
    *folders, name = path.split("/")
    if name in BUILD_FILES or name.endswith(".cmake"):
        return "example" if any(ROLE_PARTS.get(part.lower()) == "example" for part in folders[:-1]) else "build"
    if name.startswith(("test_", "conftest")) or name.removesuffix(".py").endswith(("_test", "_tests")):
        return "test"
    return next((ROLE_PARTS[part.lower()] for part in folders if part.lower() in ROLE_PARTS), "library")


def language_of(name: str) -> str:
    """What a file is written in, by its name; empty for what is not read."""
    return NAMED.get(name) or LANGUAGES.get(os.path.splitext(name)[1].lower(), "")


def walk(root: Path) -> Tree:
    """All source files below a folder, or the one file."""
    if root.is_file():
        stat = root.stat()
        source = Source(root.name, str(root), language_of(root.name) or "python", stat.st_size, stat.st_mtime_ns)
        return Tree(root.stem, root.parent, (source,), ())
    sources: list[Source] = []
    skipped: list[Skipped] = []
    stack = [("", str(root))]
    while stack:
        prefix, folder = stack.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            skipped.append(Skipped(prefix.rstrip("/") or ".", f"cannot be listed: {error.strerror}"))
            continue
        for entry in entries:
            look(entry, f"{prefix}{entry.name}", sources, skipped, stack)
    return Tree(
        name_of(root.resolve().name), root, tuple(sorted(sources, key=lambda source: source.path)), tuple(skipped)
    )


def look(
    entry: os.DirEntry[str], path: str, sources: list[Source], skipped: list[Skipped], stack: list[tuple[str, str]]
) -> None:
    """Put one entry where it belongs."""
    lang = language_of(entry.name)
    if entry.is_symlink():
        if lang or os.path.isdir(entry.path):
            skipped.append(Skipped(path, "a link: what it points to is read where it lies"))
    elif entry.is_dir(follow_symlinks=False):
        if entry.name not in NOT_SOURCES and not os.path.exists(f"{entry.path}/pyvenv.cfg"):
            stack.append((f"{path}/", entry.path))
    elif entry.name.endswith(".ipynb"):
        skipped.append(Skipped(path, "a notebook: convert it to a script to have it read"))
    elif lang and entry.is_file(follow_symlinks=False):
        stat = entry.stat(follow_symlinks=False)
        if stat.st_size > LARGEST:
            skipped.append(Skipped(path, f"too large: {stat.st_size >> 20} MiB"))
        else:
            sources.append(Source(path, entry.path, lang, stat.st_size, stat.st_mtime_ns))


def name_of(name: str) -> str:
    """The name of a folder or an archive without its version."""
    return VERSION.sub("", name) or "library"


@contextmanager
def opened(path: str) -> Iterator[Tree]:
    """The tree behind a PATH; a temporary folder is gone afterwards.

    Raises:
        LibraryError: there is no such file, folder, archive or installed distribution.
    """
    place = Path(path)
    if place.is_dir() or (place.is_file() and language_of(place.name)):
        yield walk(place)
    elif place.is_file():
        with TemporaryDirectory(prefix="migrate-lens-") as folder:
            unpack(place, Path(folder))
            tree = walk(Path(folder))
            yield Tree(name_of(place.name), tree.root, *stripped(tree))
    else:
        yield installed(path)


def unpack(archive: Path, folder: Path) -> None:
    """Regular files of a wheel or an sdist."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as members:
                members.extractall(folder, [name for name in members.namelist() if language_of(os.path.basename(name))])
            return
        with tarfile.open(archive) as members:
            wanted = [m for m in members if m.isfile() and language_of(os.path.basename(m.name))]
            members.extractall(folder, wanted, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise LibraryError(
            f"{archive} cannot be read: {error}", "name a folder, a file, a wheel or an sdist"
        ) from error


def stripped(tree: Tree) -> tuple[tuple[Source, ...], tuple[Skipped, ...]]:
    """An sdist's only top folder is not part of its paths."""
    tops = {source.path.partition("/")[0] for source in tree.sources}
    if (
        len(tops) != 1
        or any("/" not in source.path for source in tree.sources)
        or (tree.root / tops.copy().pop() / "__init__.py").exists()
    ):
        return tree.sources, tree.skipped
    cut = len(tops.pop()) + 1
    return tuple(Source(s.path[cut:], s.file, s.lang, s.size, s.changed) for s in tree.sources), tree.skipped


def installed(name: str) -> Tree:
    """The files of an installed distribution, as its record lists them."""
    try:
        found = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as error:
        raise LibraryError(
            f"no such file, folder or installed distribution: {name}", "name a path that exists"
        ) from error
    root = Path(str(found.locate_file("")))
    sources = []
    for entry in found.files or ():
        path, lang = entry.as_posix(), language_of(entry.name)
        file = root / entry
        if lang and not path.startswith("..") and file.is_file():
            stat = file.stat()
            sources.append(Source(path, str(file), lang, stat.st_size, stat.st_mtime_ns))
    if not sources:
        raise LibraryError(f"{name} is installed without sources in {sys.prefix}", "name its folder")
    return Tree(found.name or name, root, tuple(sorted(sources, key=lambda source: source.path)), ())
