"""Which modules importing a package runs: scans in; for each file how near it is, and re-exports of torch, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from migrate_lens.audit.tree import Role, role_of
from migrate_lens.model.uses import Scan

# Names that a file takes from a re-export of torch, with the torch names that they stand for.
Seeds = tuple[tuple[str, str], ...]


class Modules:
    """The dotted names of a library's Python files."""

    def __init__(self, paths: list[str]) -> None:
        packages = {path[: -len("/__init__.py")] for path in paths if path.endswith("/__init__.py")}
        self.name_of: dict[str, str] = {path: dotted(path, packages) for path in paths}
        self.path_of: dict[str, str] = {}
        for path, name in self.name_of.items():
            if role_of(path) is Role.LIBRARY or name not in self.path_of:
                self.path_of[name] = path

    def base(self, path: str, level: int, module: str) -> str:
        """The absolute name of what an import statement in a file names."""
        if not level:
            return module
        name = self.name_of[path].split(".")
        keep = len(name) - level + (1 if path.endswith("__init__.py") else 0)
        return ".".join([*name[: max(keep, 0)], *([module] if module else [])])

    def loaded(self, path: str, scan: Scan) -> Iterator[tuple[int, str]]:
        """Files that run when a file is imported, each with the line that imports it."""
        for one in scan.imports:
            if one.at != "import":
                continue
            base = self.base(path, one.level, one.module)
            for candidate in (*parents(base), *(f"{base}.{name.partition('=')[0]}" for name in one.names)):
                if candidate in self.path_of:
                    yield one.line, self.path_of[candidate]


def dotted(path: str, packages: set[str]) -> str:
    """The module name of a file: from the topmost folder of an unbroken chain of packages."""
    folders = path.split("/")[:-1]
    start = len(folders)
    while start and "/".join(folders[:start]) in packages:
        start -= 1
    stem = path.rpartition("/")[2].rpartition(".")[0]
    parts = folders[start:] if stem == "__init__" else [*folders[start:], stem]
    return ".".join(parts)


def parents(name: str) -> list[str]:
    """A dotted name and everything above it: importing it imports those."""
    parts = name.split(".")
    return [".".join(parts[: size + 1]) for size in range(len(parts))]


def roots(modules: Modules) -> list[str]:
    """The files that importing the library's packages begins with."""
    return [
        path
        for path, name in modules.name_of.items()
        if path.endswith("__init__.py") and "." not in name and role_of(path) is Role.LIBRARY
    ]


class Stretch(NamedTuple):
    """Lines of a file that run one after the other: from one on, until the next stretch of that file."""

    path: str
    line: int


def stretches(modules: Modules, scans: Mapping[str, Scan], start: list[str]) -> Iterator[Stretch]:
    """What runs when the start files are imported, in that order.

    A file is left at an import of another that has not run, and gone on with behind it.
    """
    entered: set[str] = set()

    def run(path: str) -> Iterator[Stretch]:
        if path in entered:
            return
        entered.add(path)
        yield Stretch(path, 0)
        for line, other in modules.loaded(path, scans[path]) if path in scans else ():
            if other not in entered:
                yield from run(other)
                yield Stretch(path, line)

    for path in start:
        yield from run(path)


def entries(modules: Modules, scans: Mapping[str, Scan], start: list[str]) -> set[str]:
    """The package files that begin an import with torch behind it."""
    return {path for path in start if any(scans[other].torch for other, _ in stretches(modules, scans, [path]))}


def seeds(modules: Modules, scans: Mapping[str, Scan]) -> dict[str, Seeds]:
    """For each file, the names that it imports from a module of this library that has them from torch."""
    by_path: dict[str, Seeds] = {}
    exports = {
        modules.name_of[path]: dict(scan.exports)
        for path, scan in scans.items()
        if scan.exports and path in modules.name_of
    }
    for path, scan in scans.items():
        own = set()
        for one in scan.imports:
            given = exports.get(modules.base(path, one.level, one.module))
            if not given:
                continue
            for name in one.names:
                source, _, alias = name.partition("=")
                if source in given:
                    own.add((alias or source, given[source]))
        if own:
            by_path[path] = tuple(sorted(own))
    return by_path
