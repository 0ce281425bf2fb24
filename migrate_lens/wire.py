"""The trace file: whole frames in, Python tuples out, and back; shared by both ends of the wire.

A trace is a sequence of frames, each four bytes of length and a ``marshal`` (version 4) payload, written to a
memory-mapped file so that every frame before a crash survives it. A frame whose length is zero ends the file; a
frame that is cut off is not read.
"""

from __future__ import annotations

import marshal
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARSHAL_VERSION = 4
HEADER = 16
MAGIC = b"MLTRACE1"
# Name of the module of a backward pass that the program does not make itself (see ``worker.backward``).
BACKWARD_PASS = "__backward__"
_LENGTH = struct.Struct("<I")
_FIRST_SIZE = 1 << 20
_LARGE = 1 << 15
_RESIDENT = 1 << 24  # bytes of a trace that stay in memory; what is older is in the file alone


class Journal:
    """Append-only, memory-mapped writer of one trace.

    Bytes 0 to 3 of the file hold the number of the node in flight (0: none), so that a crash leaves its name; the
    eight after them say that it is a trace, and of which form.

    Args:
        path: the file; made anew.

    Raises:
        OSError: the file cannot be made or grown.
    """

    def __init__(self, path: str | Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._size = _FIRST_SIZE
        os.ftruncate(self._fd, self._size)
        self._map = mmap.mmap(self._fd, self._size)
        self._map[4 : 4 + len(MAGIC)] = MAGIC
        self._end = HEADER
        self._left = 0
        self._muted = False
        self.written = 0

    def mute(self) -> None:
        """Write nothing from now on: in a process that was forked off, or when nobody records any more."""
        self._muted = True

    def write(self, frame: tuple[Any, ...]) -> None:
        """Append one frame; it is in the file when this returns."""
        if self._muted:
            return
        try:
            payload = marshal.dumps(frame, MARSHAL_VERSION)
        except ValueError:
            payload = marshal.dumps(_plain(frame), MARSHAL_VERSION)
        length = len(payload)
        end = self._end + 4 + length
        if end + 4 > self._size:
            self._grow(end + 4)
        if length > _LARGE:
            os.pwrite(self._fd, payload, self._end + 4)  # the same pages, without a page fault for each
        else:
            self._map[self._end + 4 : end] = payload
        _LENGTH.pack_into(self._map, self._end, length)
        self._end = end
        if end - self._left > _RESIDENT:
            self._leave(end - end % mmap.PAGESIZE)
        self.written += 1

    def enter(self, node: int) -> None:
        """Note the node in flight."""
        if self._muted:
            return
        _LENGTH.pack_into(self._map, 0, node)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._end

    def close(self) -> None:
        """Cut the file to its length."""
        if self._fd >= 0:
            self._map.close()
            os.ftruncate(self._fd, self._end)
            os.close(self._fd)
            self._fd = -1

    def _leave(self, end: int) -> None:
        """Give written pages back to the system: they are in the file, so a long trace does not fill the memory."""
        self._map.madvise(mmap.MADV_DONTNEED, self._left, end - self._left)
        self._left = end

    def _grow(self, needed: int) -> None:
        self._size = max(needed, self._size * 2)
        os.ftruncate(self._fd, self._size)
        self._map.resize(self._size)


def _plain(value: Any) -> Any:
    """A value with everything that does not travel (a symbolic size, a subclass of int) as what it is worth."""
    kind = type(value)
    if kind in (tuple, list):
        return kind(_plain(v) for v in value)
    if kind is dict:
        return {_plain(k): _plain(v) for k, v in value.items()}
    if kind in (bool, int, float, complex, str, bytes, type(None)):
        return value
    try:
        return int(value)
    except (TypeError, ValueError, RuntimeError):
        return repr(kind)


def is_trace(path: str | Path) -> bool:
    """Whether a file is a trace of the form that this version writes.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        return file.read(HEADER)[4 : 4 + len(MAGIC)] == MAGIC


def read(path: str | Path) -> tuple[int, Iterator[tuple[Any, ...]]]:
    """Read a trace: the node in flight when it ended (0: none), and its whole frames.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < HEADER:
            return 0, iter(())
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return _LENGTH.unpack_from(data, 0)[0], _frames(data)


def _frames(data: mmap.mmap) -> Iterator[tuple[Any, ...]]:
    at = HEADER
    while at + 4 <= len(data):
        length = _LENGTH.unpack_from(data, at)[0]
        end = at + 4 + length
        if length == 0 or end > len(data):
            return
        yield marshal.loads(data[at + 4 : end])
        at = end
