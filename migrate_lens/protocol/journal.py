"""The trace file: whole frames in, Python tuples out, and back; shared by both ends of the wire.

A trace is a sequence of frames, each four bytes of length and a ``marshal`` (version 4) payload, written to a
memory-mapped file so that every frame before a crash survives it. A frame whose length is zero ends the file; a
frame that is cut off is not read. Large data is written once, from where the program has it: four bytes of ones, eight
of length, the bytes. A later frame says ``("&", offset, length)`` in its place, and is read with the bytes in it.
"""

from __future__ import annotations

import hashlib
import marshal
import mmap
import os
import stat
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARSHAL_VERSION = 4
HEADER = 16
MAGIC = b"MLTRACE1"
# Name of the module of a backward pass that the program does not make itself (see ``worker.observe.backward``).
BACKWARD_PASS = "__backward__"
_LENGTH = struct.Struct("<I")
_APART, _SIZE = b"\xff\xff\xff\xff", struct.Struct("<Q")
_REFERENCE = "&"
_ROOM, FULL, SEALED = 12, b"FULL", b"KEPT"  # where it is said that there was no room for more, or a digest
_FIRST_SIZE = 1 << 20
_MOST_AHEAD = 1 << 26  # bytes that are reserved at once
_LARGE = 1 << 15
_RESIDENT = 1 << 24  # bytes of a trace that stay in memory; what is older is in the file alone


class Journal:
    """Append-only, memory-mapped writer of one trace.

    Bytes 0 to 3 of the file hold the number of the node in flight (0: none), so that a crash leaves its name; the
    eight after them say that it is a trace, and of which form; the last four, whether there was no room for more.
    Room is reserved before it is mapped: a page that the disk has no place for would end the process with a signal.

    Args:
        path: the file; made anew.
        full: called where the disk has no room for more; by default the error is raised. A program must not see it.

    Raises:
        OSError: the file cannot be made or grown.
    """

    def __init__(self, path: str | Path, full: Callable[[], object] | None = None) -> None:
        self._full = full
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._size = _FIRST_SIZE
        os.posix_fallocate(self._fd, 0, self._size)
        self._map = mmap.mmap(self._fd, self._size)
        self._map[4 : 4 + len(MAGIC)] = MAGIC
        self._end = HEADER
        self._left = 0
        self._apart = False  # what was written last went past the map
        self._muted = False
        self._lock = threading.RLock()  # a signal's handler may come while this very thread writes
        self.written = 0

    def mute(self) -> None:
        """Write nothing from now on: in a process that was forked off, or when nobody records any more."""
        self._muted = True

    def write(self, frame: tuple[Any, ...]) -> None:
        """Append one frame; it is in the file when this returns."""
        if self._muted:
            return
        plain = tuple(frame)  # a named tuple does not travel
        try:
            payload = marshal.dumps(plain, MARSHAL_VERSION)
        except ValueError:
            payload = marshal.dumps(_plain(plain), MARSHAL_VERSION)
        length = len(payload)
        with self._lock:
            at = self._reserve(4 + length)
            if length > _LARGE or self._apart:
                os.pwritev(self._fd, (_LENGTH.pack(length), payload), at)  # the same pages, without a fault for each
                self._apart = False
            else:
                self._map[at + 4 : at + 4 + length] = payload
                _LENGTH.pack_into(self._map, at, length)
        self.written += 1

    def put(self, values: NDArray[Any]) -> Any:
        """The data of an array, for a frame that is written later: its bytes, or where they are if they are many.

        Args:
            values: any shape, a dtype of numbers or bools; what a view leaves out is not written.

        Returns:
            None where nothing is written any more.
        """
        if values.nbytes <= _LARGE:
            return values.tobytes()
        if self._muted:
            return None
        view = values.ravel().view("u1").data
        with self._lock:
            at = self._reserve(12 + len(view))
            written = os.pwritev(self._fd, (_APART, _SIZE.pack(len(view)), view), at) - 12
            while written < len(view):  # one write takes 2 GB at most
                written += os.pwrite(self._fd, view[written:], at + 12 + written)
            self._apart = True
        return (_REFERENCE, at + 12, len(view))

    def mention(self) -> None:
        """Say that the next frame has data in it that lies further ahead in the file (see ``put``)."""
        if self._muted or self._apart:
            return
        with self._lock:
            at = self._reserve(12)
            os.pwritev(self._fd, (_APART, _SIZE.pack(0)), at)
            self._apart = True

    @staticmethod
    def is_place(data: Any) -> bool:
        """Whether data is where it lies in the file (see ``put``)."""
        return type(data) is tuple and len(data) == 3 and data[0] == _REFERENCE

    def _reserve(self, length: int) -> int:
        """Where the next so many bytes go; what follows them is zero."""
        at = self._end
        self._end = end = at + length
        if end + 4 > self._size:
            self._grow(end + 4)
        if at - self._left > _RESIDENT:
            self._leave(at - at % mmap.PAGESIZE)
        return at

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
        """Cut the file to its length; what a program does at its very end is not written."""
        self.mute()
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
        size = max(needed, min(self._size * 2, self._size + _MOST_AHEAD))
        try:
            os.posix_fallocate(self._fd, self._size, size - self._size)
        except OSError:
            self._map[_ROOM : _ROOM + len(FULL)] = FULL
            if self._full is not None:
                self._full()
            raise
        self._size = size
        self._map.resize(size)


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
    if not stat.S_ISREG(os.stat(path).st_mode):
        return False  # a pipe would be waited for
    with open(path, "rb") as file:
        return file.read(HEADER)[4 : 4 + len(MAGIC)] == MAGIC


def seal(path: str | Path) -> None:
    """End a trace that is to be kept with a digest of it, behind the frame that ends the file.

    Raises:
        OSError: the file cannot be written.
    """
    with open(path, "r+b") as file:
        file.seek(_ROOM)
        file.write(SEALED)
        file.seek(0, os.SEEK_END)
        file.write(_LENGTH.pack(0))
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").digest()
        file.write(digest)


def is_sound(path: str | Path) -> bool:
    """Whether a trace is as it was when it was kept; one that was never kept is believed.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        if file.read(HEADER)[_ROOM:] != SEALED:
            return os.fstat(file.fileno()).st_size >= HEADER
        whole = hashlib.sha256()
        left = os.fstat(file.fileno()).st_size - whole.digest_size
        file.seek(0)
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            whole.update(piece)
            left -= len(piece)
        return file.read() == whole.digest()


def ran_full(path: str | Path) -> bool:
    """Whether the disk had no room for all of a trace."""
    with open(path, "rb") as file:
        return file.read(HEADER)[_ROOM:] == FULL


def read(path: str | Path) -> tuple[int, Iterator[tuple[Any, ...]]]:
    """Read a trace: the node in flight when it ended (0: none), and its whole frames.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < HEADER:
            return 0, iter(())
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _mapped.add(data)
    return _LENGTH.unpack_from(data, 0)[0], _frames(data)


def give_back() -> None:
    """Give pages of traces that were read back to the system: they are in the files, and come again when asked for."""
    for data in _mapped:
        data.madvise(mmap.MADV_DONTNEED)


_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def _frames(data: mmap.mmap) -> Iterator[tuple[Any, ...]]:
    at, apart = HEADER, False
    while at + 4 <= len(data):
        if data[at : at + 4] == _APART:
            if at + 12 > len(data):
                return
            at, apart = at + 12 + _SIZE.unpack_from(data, at + 4)[0], True
            continue
        length = _LENGTH.unpack_from(data, at)[0]
        end = at + 4 + length
        if length == 0 or end > len(data):
            return
        frame = marshal.loads(data[at + 4 : end])
        yield _filled(frame, data) if apart else frame
        at = end


def _filled(value: Any, data: mmap.mmap) -> Any:
    """A value with the bytes that it says are elsewhere in the file, as views of it: nothing large is copied."""
    kind = type(value)
    if kind is tuple:
        if len(value) == 3 and value[0] == _REFERENCE:
            return memoryview(data)[value[1] : value[1] + value[2]]
        return tuple(_filled(v, data) for v in value)
    if kind is list:
        return [_filled(v, data) for v in value]
    return {k: _filled(v, data) for k, v in value.items()} if kind is dict else value
