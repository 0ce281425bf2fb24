"""Which modules importing a package runs: scans in; for each file how near it is, and re-exports of torch, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate_lens.audit.tree import role_of
from migrate_lens.model.uses import Scan


class Modules:
    """The dotted names of a library's Python files."""

    def __init__(self, paths: list[str]) -> None:
        packages = {path[: -len("/__init__.py")] for path in paths if path.endswith("/__init__.py")}
        self.name_of: dict[str, str] = {path: dotted(path, packages) for path in paths}
        self.path_of: dict[str, str] = {}
        for path, name in self.name_of.items():
            if role_of(path) == "library" or name not in self.path_of:
                self.path_of[name] = path

    def base(self, path: str, level: int, module: str) -> str:
        """The absolute name of what an import statement in a file names."""
        if not level:
            return module
        name = self.name_of[path].split(".")
        keep = len(name) - level + (1 if path.endswith("__init__.py") else 0)
        return ".".join([*name[: max(keep, 0)], *([module] if module else [])])

    def targets(self, path: str, scan: Scan, at: str | None) -> Iterator[str]:
        """Files that a file's imports run."""
        for level, module, names, when in scan.imports:
            if at and when != at:
                continue
            base = self.base(path, level, module)
            for candidate in (*parents(base), *(f"{base}.{name.partition('=')[0]}" for name in names)):
                if candidate in self.path_of:
                    yield self.path_of[candidate]


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
        if path.endswith("__init__.py") and "." not in name and role_of(path) == "library"
    ]


def closure(modules: Modules, scans: Mapping[str, Scan], start: list[str]) -> set[str]:
    """All files that run when the start files are imported."""
    seen: set[str] = set()
    stack = list(start)
    while stack:
        path = stack.pop()
        if path not in seen:
            seen.add(path)
            stack.extend(modules.targets(path, scans[path], "import") if path in scans else ())
    return seen


def entries(modules: Modules, scans: Mapping[str, Scan], start: list[str]) -> dict[str, bool]:
    """For each package file that begins an import: whether torch is behind it."""
    return {
        path: any(scans[other].torch for other in closure(modules, scans, [path]) if other in scans) for path in start
    }


def seeds(modules: Modules, scans: Mapping[str, Scan]) -> dict[str, tuple[tuple[str, str], ...]]:
    """For each file, the names that it imports from a module of this library that has them from torch."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    exports = {
        modules.name_of[path]: dict(scan.exports)
        for path, scan in scans.items()
        if scan.exports and path in modules.name_of
    }
    for path, scan in scans.items():
        own = []
        for level, module, names, _ in scan.imports:
            given = exports.get(modules.base(path, level, module))
            for name in names if given else ():
                source, _, alias = name.partition("=")
                if given and source in given:
                    own.append((alias or source, given[source]))
        if own:
            found[path] = tuple(sorted(set(own)))
    return found
