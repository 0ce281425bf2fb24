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
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from migrate_lens.model.errors import LibraryError
from migrate_lens.model.report import Skipped
from migrate_lens.model.uses import words

NOT_SOURCES = words(
    ".git .hg .svn .tox .nox .venv venv __pycache__ node_modules .mypy_cache .ruff_cache .pytest_cache .eggs "
    ".migrate-lens site-packages dist-packages"
)
LARGEST = 16 << 20
VERSION = re.compile(r"-\d.*|\.(?:tar\.\w+|tgz|zip|whl)$")
BUILD_FILES = frozenset(
    ("setup.py", "build.py", "build_backend.py", "custom_build.py", "CMakeLists.txt", "pyproject.toml")
)


class Role(StrEnum):
    """What a file is for, by where it lies."""

    LIBRARY = "library"
    TEST = "test"
    EXAMPLE = "example"  # examples, benchmarks, tools, vendored code
    BUILD = "build"


class Language(StrEnum):
    """What a file is written in."""

    PYTHON = "python"
    CPP = "cpp"
    CMAKE = "cmake"
    TOML = "toml"


NATIVE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hh", ".inl", ".hip")
LANGUAGES = {
    ".py": Language.PYTHON,
    ".pyi": Language.PYTHON,
    **dict.fromkeys(NATIVE_SUFFIXES, Language.CPP),
    ".cmake": Language.CMAKE,
}
NAMED = {"CMakeLists.txt": Language.CMAKE, "pyproject.toml": Language.TOML}
TEST_FOLDERS = words("test tests testing unittests ci .github .circleci")
EXAMPLE_FOLDERS = words(
    "example examples demo demos docs doc tutorial tutorials benchmark benchmarks bench notebooks samples scripts "
    "gallery gallery_src third_party 3rdparty thirdparty vendor packaging tools"
)
ROLE_PARTS = {
    **dict.fromkeys(TEST_FOLDERS, Role.TEST),
    **dict.fromkeys(EXAMPLE_FOLDERS, Role.EXAMPLE),
    **dict.fromkeys(("cmake", "buildsystem"), Role.BUILD),
}


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read: its path in the library, where it is, and what tells whether it changed."""

    path: str
    file: str
    lang: Language
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class Tree:
    """What there is to read of one PATH."""

    name: str
    root: Path
    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]


def role_of(path: str) -> Role:
    """What a file is for, by the names of its folders and of the file."""
    *folders, name = path.split("/")
    roles = [ROLE_PARTS.get(folder.lower()) for folder in folders]
    if name in BUILD_FILES or name.endswith(".cmake"):
        return Role.EXAMPLE if Role.EXAMPLE in roles[:-1] else Role.BUILD
    if name.startswith(("test_", "conftest")) or name.removesuffix(".py").endswith(("_test", "_tests")):
        return Role.TEST
    return next((role for role in roles if role is not None), Role.LIBRARY)


def language_of(name: str) -> Language | None:
    """What a file is written in, by its name; None for what is not read."""
    return NAMED.get(name) or LANGUAGES.get(os.path.splitext(name)[1].lower())


def walk(root: Path) -> Tree:
    """All source files below a folder, or the one file."""
    if root.is_file():
        stat = root.stat()
        lang = language_of(root.name) or Language.PYTHON
        source = Source(root.name, str(root), lang, stat.st_size, stat.st_mtime_ns)
        return Tree(root.stem, root.parent, (source,), ())
    place = root.resolve()
    above = package_above(place)
    walked = Walk()
    prefix = ""
    for part in place.relative_to(above).parts:
        if prefix:  # a package that is imported on the way to this one
            walked.take(above / prefix / "__init__.py", f"{prefix}__init__.py", Language.PYTHON)
        prefix += f"{part}/"
    walked.run(str(place), prefix)
    sources = sorted(walked.sources, key=lambda source: source.path)
    return Tree(name_of(place.name), above, tuple(sources), tuple(walked.skipped))


def package_above(place: Path) -> Path:
    """The folder that the modules of a folder are named from: for a package, the one above the topmost package."""
    if any((place / name).is_file() for name in BUILD_FILES):
        return place
    while (place / "__init__.py").is_file() and place.parent != place:
        place = place.parent
    return place


class Walk:
    """What lies below a folder, sorted into what is read and what is left out."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.skipped: list[Skipped] = []
        self.waiting: list[tuple[str, str]] = []  # folders: their path in the library, and where they are

    def run(self, root: str, prefix: str = "") -> None:
        """Look at everything below ``root``, whose own path in the library is ``prefix``."""
        self.waiting.append((prefix, root))
        while self.waiting:
            prefix, folder = self.waiting.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self.skip(prefix.rstrip("/") or ".", f"cannot be listed: {error.strerror}")
                continue
            for entry in entries:
                self.look(entry, f"{prefix}{entry.name}")

    def skip(self, path: str, reason: str) -> None:
        """Leave something out."""
        self.skipped.append(Skipped(path, reason))

    def look(self, entry: os.DirEntry[str], path: str) -> None:
        """Put one entry where it belongs."""
        lang = language_of(entry.name)
        if entry.is_symlink():
            if lang or os.path.isdir(entry.path):
                self.skip(path, "a link: what it points to is read where it lies")
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in NOT_SOURCES and not os.path.exists(f"{entry.path}/pyvenv.cfg"):
                self.waiting.append((f"{path}/", entry.path))
        elif entry.name.endswith(".ipynb"):
            self.skip(path, "a notebook: convert it to a script to have it read")
        elif lang and entry.is_file(follow_symlinks=False):
            self.take(Path(entry.path), path, lang)

    def take(self, file: Path, path: str, lang: Language) -> None:
        """A source file, unless it is too large to be one."""
        stat = file.stat()
        if stat.st_size > LARGEST:
            self.skip(path, f"too large: {stat.st_size >> 20} MiB")
        else:
            self.sources.append(Source(path, str(file), lang, stat.st_size, stat.st_mtime_ns))


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
            wanted = [member for member in members if member.isfile() and language_of(os.path.basename(member.name))]
            members.extractall(folder, wanted, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise LibraryError(
            f"{archive} cannot be read: {error}", "name a folder, a file, a wheel or an sdist"
        ) from error


def stripped(tree: Tree) -> tuple[tuple[Source, ...], tuple[Skipped, ...]]:
    """An sdist's only top folder is not part of its paths."""
    tops = {source.path.partition("/")[0] for source in tree.sources}
    if len(tops) != 1 or any("/" not in source.path for source in tree.sources):
        return tree.sources, tree.skipped
    top = tops.pop()
    if (tree.root / top / "__init__.py").exists():
        return tree.sources, tree.skipped
    return tuple(replace(source, path=source.path.removeprefix(f"{top}/")) for source in tree.sources), tree.skipped


def installed(name: str) -> Tree:
    """The files of an installed distribution, as its record lists them."""
    try:
        distribution = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as error:
        raise LibraryError(
            f"no such file, folder or installed distribution: {name}", "name a path that exists"
        ) from error
    root = Path(str(distribution.locate_file("")))
    sources = []
    for entry in distribution.files or ():
        path, lang = entry.as_posix(), language_of(entry.name)
        file = root / entry
        if lang and not path.startswith("..") and file.is_file():
            stat = file.stat()
            sources.append(Source(path, str(file), lang, stat.st_size, stat.st_mtime_ns))
    if not sources:
        raise LibraryError(f"{name} is installed without sources in {sys.prefix}", "name its folder")
    return Tree(distribution.name or name, root, tuple(sorted(sources, key=lambda source: source.path)), ())
