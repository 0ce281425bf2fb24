"""Files of the user's, as they are and as they become, in; all of them written, or none, out.

Each is written beside the old one, synced, and renamed over it, so that whatever ends the process, on whatever disk, a
file is what it was or what it becomes, and never between. Where one cannot be put there, those before are put back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from migrate_lens import interrupts, state
from migrate_lens.model.errors import StateError, UsageError

# Python tells a stale cache by time and size, and a changed module has more lines; a build tool goes by the time alone.
_TIMES_KEPT = frozenset((".py", ".pyi"))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A file that is written and not yet in its place.

    Attributes:
        path: its place.
        new: where it waits, beside its place.
        old: another name of what is there now; None where nothing is.
    """

    path: Path
    new: Path
    old: Path | None


def write_all(root: Path, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> None:
    """Write all files, or leave all as they are.

    Args:
        root: what the names are relative to.
        old: what each file must still hold; nothing where it is made.
        new: what it becomes.

    Raises:
        UsageError: one holds something else by now.
        StateError: one cannot be written.
    """
    for name, data in old.items():
        path = root / name
        if (path.read_bytes() if path.is_file() else b"") != data:
            raise UsageError(f"{name} was changed in the meantime, nothing was written", "run migrate-lens fix again")
    waiting: list[_Waiting] = []
    name = ""
    try:
        for name, data in new.items():
            waiting.append(_beside((root / name).resolve(), data))
        with interrupts.later():
            _put(waiting)
    except OSError as error:
        remedy = "see that it can be written, and that the disk has room"
        raise StateError(f"cannot write {name}: {error.strerror}; nothing was written", remedy) from error
    finally:
        for one in waiting:
            _forget(one)


def _beside(path: Path, data: bytes) -> _Waiting:
    """Write a file beside its place, with the mode of what is there, and give what is there a second name."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not path.exists():
            os.chmod(name, 0o666 & ~state.umask())
            return _Waiting(path, Path(name), None)
        _like(path, Path(name))
        return _Waiting(path, Path(name), _second_name(path))
    except BaseException:
        os.unlink(name)
        raise


def _like(path: Path, new: Path) -> None:
    """Give a new file the mode of the old one, its owner where that is allowed, and its times unless it is built."""
    stat = path.stat()
    if path.suffix in _TIMES_KEPT:
        shutil.copystat(path, new)
    else:
        shutil.copymode(path, new)
    with suppress(PermissionError):
        os.chown(new, stat.st_uid, stat.st_gid)


def _second_name(path: Path) -> Path:
    """Another name for a file, under which it can be put back; a copy where the file system has no links."""
    name = Path(f"{tempfile.mkdtemp(dir=path.parent, prefix=f'.{path.name}.')}/{path.name}")
    try:
        os.link(path, name)
    except OSError:
        shutil.copy2(path, name)
    return name


def _put(waiting: list[_Waiting]) -> None:
    """Put each in its place; those that were are put back where one cannot be."""
    done: list[_Waiting] = []
    try:
        for one in waiting:
            os.replace(one.new, one.path)
            done.append(one)
        for folder in {one.path.parent for one in waiting}:
            _sync(folder)
    except BaseException:
        for one in reversed(done):
            if one.old is None:
                one.path.unlink()
            else:
                os.replace(one.old, one.path)
        raise


def _sync(folder: Path) -> None:
    """Have the renames in a folder reach the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _forget(one: _Waiting) -> None:
    """Remove what is not needed any more."""
    one.new.unlink(missing_ok=True)
    if one.old is not None:
        shutil.rmtree(one.old.parent, ignore_errors=True)
