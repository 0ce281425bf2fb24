"""Scans that are kept: a library's files in; their scans out, read anew only where a file changed.

One ``marshal`` file a library in the user's cache folder, never in the library. It is ours alone: written whole, and
thrown away when the program or the interpreter that wrote it was another one.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from pathlib import Path

from migrate_lens.audit import expressions, guards, knowledge, meaning, native, python, receivers, source
from migrate_lens.audit.reach import Seeds
from migrate_lens.model import uses
from migrate_lens.model.uses import PlainScan, Scan, from_plain

# Size, time of change and seeds of a file when it was read, and its scan.
Row = tuple[int, int, Seeds, PlainScan]
SCANNERS = (expressions, guards, knowledge, meaning, native, python, receivers, source, uses)


def stamp() -> str:
    """Changes with the interpreter and with every scanner."""
    parts = [sys.implementation.cache_tag or ""]
    files: list[str | Path] = [module.__file__ or "" for module in SCANNERS]
    for file in (*files, Path(__file__).with_name("read.py")):
        stat = os.stat(file)
        parts.append(f"{stat.st_mtime_ns}.{stat.st_size}")
    return "|".join(parts)


class Store:
    """The kept scans of one library."""

    def __init__(self, folder: Path | None, root: str) -> None:
        self.file = (
            folder / f"scans-{hashlib.blake2b(root.encode(), digest_size=10).hexdigest()}.bin" if folder else None
        )
        self.stamp = stamp()
        self.rows = self._load()
        self.fresh = False

    def _load(self) -> dict[str, Row]:
        if self.file is None:
            return {}
        try:
            kept_stamp, rows = marshal.loads(self.file.read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            return {}
        return rows if kept_stamp == self.stamp and isinstance(rows, dict) else {}

    def get(self, path: str, size: int, changed: int, seeds: Seeds = ()) -> Scan | None:
        """The kept scan of a file that did not change."""
        row = self.rows.get(path)
        if row is None:
            return None
        *read_as, scan = row
        return from_plain(scan) if read_as == [size, changed, seeds] else None

    def put(self, path: str, size: int, changed: int, seeds: Seeds, scan: Scan) -> None:
        """Keep a scan."""
        self.rows[path] = (size, changed, seeds, scan.plain())
        self.fresh = True

    def save(self, paths: set[str]) -> None:
        """Write what is of use; a cache that cannot be written is only slower."""
        gone = self.rows.keys() - paths
        if self.file is None or not (self.fresh or gone):
            return
        for path in gone:
            del self.rows[path]
        part = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(marshal.dumps((self.stamp, self.rows)))
            part.replace(self.file)
        except OSError:
            part.unlink(missing_ok=True)
