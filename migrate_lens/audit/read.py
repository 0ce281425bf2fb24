"""A tree and a store, in; the scan of every file, out: unchanged files are not opened."""

from __future__ import annotations

import gc
import re
from operator import attrgetter
from pathlib import Path

from migrate_lens.audit import reach
from migrate_lens.audit.native import scan_cmake, scan_native, scan_pyproject
from migrate_lens.audit.python import scan_python
from migrate_lens.audit.reach import Seeds
from migrate_lens.audit.source import ignores
from migrate_lens.audit.store import Store
from migrate_lens.audit.tree import Language, Source, Tree
from migrate_lens.model.uses import Import, Lines, Scan, When

FROM = re.compile(rb"^([ \t]*)from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)", re.MULTILINE)
PLAIN = re.compile(rb"^([ \t]*)import[ \t]+([\w., \t]+)", re.MULTILINE)
IMPORT = re.compile(rb"^(?:from[ \t]+(?!__future__)[\w.]+[ \t]+import|import)\b", re.MULTILINE)
NAME = re.compile(rb"(\w+)(?:\s+as\s+(\w+))?")
PYTHON_WORDS = (b"torch", b"TORCH", b"Torch", b"nvcc", b"cudart", b"ctypes")
NATIVE_WORDS = (
    b"torch",
    b"TORCH",
    b"at::",
    b"c10",
    b"C10_",
    b"AT_",
    b"ATen",
    b"pybind",
    b"py::",
    b"CUDA_HOME",
    b".attr(",
)
CHAIN = 4  # how many modules a re-export of torch may pass through


def scan_source(source: Source, seeds: Seeds) -> Scan:
    """Read one file; what cannot be read is a scan with a reason."""
    try:
        data = Path(source.file).read_bytes()
    except OSError as error:
        return Scan(reason=f"cannot be read: {error.strerror}")
    match source.lang:
        case Language.CPP:
            return scan_native(data) if any(word in data for word in NATIVE_WORDS) else Scan()
        case Language.CMAKE:
            return scan_cmake(data)
        case Language.TOML:
            return scan_pyproject(data)
        case Language.PYTHON:
            if seeds or any(word in data for word in PYTHON_WORDS):
                return scan_python(data, source.path, dict(seeds))
            return scan_imports(data)


def scan_imports(data: bytes) -> Scan:
    """A Python file that never says torch: only its imports are of interest."""
    starts = [match.start() for match in IMPORT.finditer(data)]
    span = Lines(line_at(data, starts[0]), line_at(data, starts[-1])) if starts else Lines()
    return Scan(imports=plain_imports(data), ignores=ignores(data), span=span)


def line_at(data: bytes, offset: int) -> int:
    """1-based line of an offset."""
    return data.count(b"\n", 0, offset) + 1


def plain_imports(data: bytes) -> tuple[Import, ...]:
    """The imports of a file that never says torch, found by their text: it is on the way to those that do."""
    imports: list[Import] = []
    at: When
    for match in FROM.finditer(data):
        indent, dots, module, names = match.groups()
        at, line = "call" if indent else "import", data.count(b"\n", 0, match.start()) + 1
        pairs = [(name.decode(), alias.decode()) for name, alias in NAME.findall(re.sub(rb"#[^\n]*", b"", names))]
        joined = tuple(f"{name}={alias}" if alias else name for name, alias in pairs)
        imports.append(Import(len(dots), module.decode("ascii", "replace"), joined, at, line))
    for match in PLAIN.finditer(data):
        indent, names = match.groups()
        at, line = "call" if indent else "import", data.count(b"\n", 0, match.start()) + 1
        for name in names.decode("ascii", "replace").split(","):
            imports.append(Import(0, name.split(" as ")[0].strip(), (), at, line))
    return tuple(sorted(imports, key=attrgetter("line")))


def read_tree(tree: Tree, store: Store) -> dict[str, Scan]:
    """The scan of every file; files that import a re-export of torch are read again with what that says."""
    collecting = gc.isenabled()
    gc.disable()  # a syntax tree has no cycles: collecting while it grows costs a third of the time
    try:
        scans = {source.path: scan_or_kept(source, store, ()) for source in tree.sources}
        follow_exports(tree, scans, store)
    finally:
        if collecting:
            gc.enable()
    store.save({source.path for source in tree.sources} | {f"{source.path}\0" for source in tree.sources})
    return scans


def scan_or_kept(source: Source, store: Store, seeds: Seeds) -> Scan:
    """A kept scan if the file is as it was; scans with seeds are kept beside those without."""
    key = f"{source.path}\0" if seeds else source.path
    kept = store.get(key, source.size, source.changed, seeds)
    if kept is None:
        kept = scan_source(source, seeds)
        store.put(key, source.size, source.changed, seeds, kept)
    return kept


def follow_exports(tree: Tree, scans: dict[str, Scan], store: Store) -> None:
    """Read those files again whose imports bring torch names from the library's own modules."""
    by_path = {source.path: source for source in tree.sources if source.lang is Language.PYTHON}
    modules = reach.Modules(list(by_path))
    followed: dict[str, Seeds] = {}
    for _ in range(CHAIN):
        wanted = {path: seeds for path, seeds in reach.seeds(modules, scans).items() if followed.get(path) != seeds}
        if not wanted:
            return
        for path, seeds in wanted.items():
            scans[path] = scan_or_kept(by_path[path], store, seeds)
        followed |= wanted
