"""Our own files: a folder for the results of the last diagnosis and text to put there, in; files written whole, out.

A state folder carries our mark, and nothing is written into a folder that has other things in it and no mark. A file of
a library is overwritten only where it is a report or a trace of ours.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate_lens import interrupts
from migrate_lens.model.errors import StateError, UsageError

IGNORE = ".gitignore"
MARK, _MARKED = ".migrate-lens-state", "migrate-lens state 1\n"
REPORT, TRACES, INDEX = "report.json", "traces", "index.json"  # what a diagnosis leaves in the state folder
_HEAD = 4096
_REPORTS = re.compile(rb'\A(?:.{4}MLTRACE1|# migrate-lens(?:: |\b)|\{.*"name": "migrate-lens")', re.DOTALL)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Path]:
    """Make the state folder, and prove that it can be written, before any long work starts.

    A folder made here is taken away again when the work ends in one of our errors and left nothing in it.

    Raises:
        StateError: the folder cannot be made or written, or somebody else's things are in it.
    """
    made = not os.path.lexists(folder)
    fresh = _prepare(folder, made)
    try:
        yield folder
    except BaseException:
        if fresh:
            _remove(folder, made)
        raise
    finally:
        shutil.rmtree(waiting(folder / TRACES), ignore_errors=True)


def _prepare(folder: Path, made: bool) -> bool:
    """Make the folder ours; whether it was not before. Only such a folder is hidden from git."""
    fresh = False
    try:
        if made:
            folder.mkdir()
        fresh = _is_free(folder)
        if fresh:
            (folder / MARK).write_text(_MARKED, encoding="utf-8")
            write(folder / IGNORE, "*\n")
        _touch(folder)
    except OSError as error:
        if made or fresh:
            _remove(folder, made)
        raise StateError(
            f"cannot write the state folder {folder}: {error.strerror}", "name another: --state DIR"
        ) from error
    return fresh


def _is_free(folder: Path) -> bool:
    """Whether there is nothing in the folder.

    Raises:
        StateError: there is, and it does not carry our mark.
    """
    if not any(folder.iterdir()):
        return True
    mark = folder / MARK
    if mark.is_file() and mark.read_bytes()[:_HEAD] == _MARKED.encode():
        return False
    raise StateError(
        f"{folder} is no state folder of migrate-lens, and other things are in it",
        "name an empty or a new folder: --state DIR",
    )


def _touch(folder: Path) -> None:
    """Prove that a file can be made in the folder, and leave none."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def _remove(folder: Path, made: bool) -> None:
    """Take our marks away, and a folder that was made for them, if there is nothing but them in it."""
    with contextlib.suppress(OSError):
        if {item.name for item in folder.iterdir()} <= {IGNORE, MARK}:
            (folder / IGNORE).unlink(missing_ok=True)
            (folder / MARK).unlink(missing_ok=True)
        if made:
            folder.rmdir()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else puts results into the folder meanwhile; two diagnoses that end at once come one after the other."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def waiting(folder: Path) -> Path:
    """Where this process makes what will be put in the place of ``folder``."""
    return folder.with_name(f"{folder.name}.{os.getpid()}")


def replace(folder: Path, report: str) -> None:
    """Put new results in the place of the old: the traces that wait, and the report that belongs to them.

    All that can fail comes first, so that a full disk leaves the old results as they were.

    Raises:
        OSError: they cannot be written.
    """
    traces = folder / TRACES
    new, old = waiting(traces), folder / f"{TRACES}.{os.getpid()}.old"
    with locked(folder), _whole((folder / REPORT).resolve()) as name, interrupts.later():
        _write_synced(Path(name), report)
        for stale in folder.iterdir():
            if _is_left_behind(stale):
                shutil.rmtree(stale, ignore_errors=True)
        if new.exists() and os.path.lexists(traces):
            os.replace(traces, old)
        if new.exists():
            os.replace(new, traces)
    shutil.rmtree(old, ignore_errors=True)


def _is_left_behind(path: Path) -> bool:
    """Whether it is what a diagnosis left that was killed."""
    match = re.fullmatch(rf"{TRACES}\.(\d+)(\.old)?", path.name)
    return match is not None and not os.path.exists(f"/proc/{match[1]}")


def _write_synced(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def write(path: Path, text: str) -> None:
    """Write the file whole or not at all: a temporary file beside it, then a rename.

    Raises:
        OSError: the folder of ``path`` is missing or cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", errors="backslashreplace")  # /dev/stdout, a pipe: never rename over it
        return
    with _whole(path) as name:
        _write_synced(Path(name), text)


def copy(source: Path, path: Path) -> None:
    """Copy a file whole or not at all, with the mode of a file that was made there.

    Raises:
        OSError: the folder of ``path`` is missing or cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(source.read_bytes())
        return
    with _whole(path.resolve()) as name:
        shutil.copyfile(source, name)


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[str]:
    """A temporary file beside a path, put in its place at the end and gone if anything goes wrong."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield name
        os.chmod(name, 0o666 & ~umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read(path: Path) -> dict[str, object] | None:
    """The JSON object in the file, None where there is no file.

    Raises:
        StateError: it cannot be read, or is none.
    """
    if not os.path.lexists(path):
        return None
    try:
        document = json.loads(text_of(path))
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}", "name another folder: --state DIR") from error
    except (ValueError, RecursionError) as error:
        raise StateError(f"{path} is not JSON: {error}", "run migrate-lens diagnose again") from error
    if not isinstance(document, dict):
        raise StateError(f"{path} is no report", "run migrate-lens diagnose again")
    return document


def text_of(path: Path) -> str:
    """The text of a regular file; anything else, a pipe above all, is not waited for.

    Raises:
        OSError: it cannot be read, or is no file.
        UnicodeDecodeError: it is no text.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        return file.read()


def umask() -> int:
    """The mask for new files; asking for it means setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_output(path: Path, libraries: Sequence[Path] = (), option: str = "--output") -> None:
    """See that a report can be put at ``path``, before any long work starts; leaves nothing there.

    Args:
        path: where.
        libraries: folders and files of which nothing may be overwritten but reports and traces of ours.
        option: what the user named it with.

    Raises:
        UsageError: its folder is missing or cannot be written, or it is a folder itself, or a file of a library.
    """
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder", "name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: no such folder: {path.parent}", f"make it first: mkdir -p {path.parent}")
    try:
        if path.is_file() or not path.exists():
            _touch(path.resolve().parent)
        _check_spared(path, libraries, option)
    except OSError as error:
        raise UsageError(f"{option}: cannot write into {path.parent}: {error.strerror}", "name another file") from error


def _check_spared(path: Path, libraries: Sequence[Path], option: str) -> None:
    """See that no file of a library is overwritten."""
    place = path.resolve()
    within = any(place.is_relative_to(library.resolve()) for library in libraries)
    if within and place.is_file() and not is_ours(place):
        raise UsageError(
            f"{option} {path} is a file of the library and no report of migrate-lens: it is not overwritten",
            "name another file",
        )


def is_ours(path: Path) -> bool:
    """Whether a file is a report or a trace that this program wrote.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return _REPORTS.match(file.read(_HEAD)) is not None


def cache_folder() -> Path:
    """Where caches go: ``MIGRATE_LENS_CACHE``, else the user's cache folder."""
    named = os.environ.get("MIGRATE_LENS_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "migrate-lens"
