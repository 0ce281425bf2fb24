"""Bytes and their key go in; the same bytes, or nothing, come out: a bounded folder of what is kept between diagnoses.

An entry is one file: the digest of its key and of the rest on its first line. It is written beside its place and then
renamed, so a reader sees all of it or nothing, and so does another diagnosis that writes the same entry at that
time. What does not fit its digest counts as absent. The entry that was used longest ago goes first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LIMIT = 2 << 30
LARGEST = LIMIT // 4
SUFFIX = ".kept"
_DAY = 86400.0
_WIDTH = 2 * 32 + 1


class Shelf:
    """What is kept in one folder; a folder that cannot be written keeps nothing and is no error.

    Args:
        folder: made when the first entry is put there.
        limit: bytes that all entries together may take.
        fresh: nothing is taken from it, only put.
    """

    def __init__(self, folder: Path, limit: int = LIMIT, *, fresh: bool = False) -> None:
        self.folder, self.limit, self.fresh = folder, limit, fresh

    def take(self, key: str) -> BinaryIO | None:
        """The entry, checked and open behind its digest; None if there is none that is whole."""
        if self.fresh:
            return None
        path = self._path(key)
        try:
            file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        except OSError:
            return None
        try:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode) and self._is_private()
            if is_file and file.readline(_WIDTH) == _digest_line(key, file):
                file.seek(_WIDTH)
                with contextlib.suppress(OSError):
                    os.utime(path)
                return file
        except OSError:
            pass  # a disk that cannot give it back has no entry
        file.close()
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, fill: Callable[[BinaryIO], object]) -> str:
        """Keep what ``fill`` writes; the reason if it is not kept, else ``""``."""
        part = ""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
            handle, part = tempfile.mkstemp(dir=self.folder, suffix=".part")
            with open(handle, "w+b") as file:
                file.write(b" " * _WIDTH)
                fill(file)
                if file.tell() > min(LARGEST, self.limit):
                    return f"it is larger than {min(LARGEST, self.limit) >> 20} MiB"
                file.seek(_WIDTH)
                line = _digest_line(key, file)
                file.seek(0)
                file.write(line)
            os.replace(part, self._path(key))
            part = ""
            self.trim()
        except OSError as error:
            return f"{self.folder}: {error.strerror or error}"
        finally:
            if part:
                with contextlib.suppress(OSError):
                    os.unlink(part)
        return ""

    def trim(self) -> None:
        """Drops what was used longest ago until the rest fits, and what a killed diagnosis left half-written."""
        entries: list[tuple[float, int, Path]] = []
        now = time.time()
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                stat = path.stat()
                if path.suffix == ".part" and now - stat.st_mtime > _DAY:
                    path.unlink()
                elif path.suffix == SUFFIX:
                    entries.append((stat.st_mtime, stat.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def _is_private(self) -> bool:
        """Whether nobody else can have put something here."""
        about = self.folder.stat()
        return about.st_uid == os.getuid() and not about.st_mode & 0o022

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"


def _digest_line(key: str, file: BinaryIO) -> bytes:
    """The first line of an entry whose rest starts where the file stands; an entry under another key has another."""
    digest = hashlib.blake2b(key.encode() + b"\n", digest_size=32)
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest().encode() + b"\n"
