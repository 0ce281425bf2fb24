"""Our own files: a folder for the results of the last diagnosis and text to put there, in; files written whole, out."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate_lens.model.errors import LensError, StateError, UsageError

# What a folder of ours is known by; it also hides the folder from git.
IGNORE = ".gitignore"
_MARK = "# Made by migrate-lens: what is here is written anew by each diagnosis.\n*\n"
REPORT, TRACES, INDEX = "report.json", "traces", "index.json"  # what a diagnosis leaves in the state folder
_DAY = 86400.0


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Path]:
    """Make the state folder, and prove that it can be written, before any long work starts.

    A folder that was made or marked here is left as it was found when the work ends in one of our errors and put
    nothing into it.

    Raises:
        StateError: the folder cannot be made or written, or holds what is not ours.
    """
    fresh = not folder.exists()
    unmarked = fresh or _is_empty(folder)
    if not unmarked and not _is_ours(folder):
        raise StateError(
            f"{folder} is no folder of migrate-lens's, and is not empty", "name a new or an empty one: --state DIR"
        )
    try:
        _prepare(folder, fresh, unmarked)
        yield folder
    except (LensError, OSError, KeyboardInterrupt):
        if unmarked:
            _remove(folder, fresh)
        raise


def _is_empty(folder: Path) -> bool:
    """Whether a folder has nothing in it; what is no folder, or cannot be read, is told when it is written."""
    try:
        return not any(folder.iterdir())
    except OSError:
        return False


def _is_ours(folder: Path) -> bool:
    """Whether a folder carries our mark, or the report of a version that left none; what is no folder is told later."""
    if not folder.is_dir():
        return True
    try:
        if (folder / IGNORE).is_file() and (folder / IGNORE).read_text(errors="replace") == _MARK:
            return True
        return (folder / REPORT).is_file() and _by_us(folder / REPORT)
    except OSError:
        return False


def _by_us(report: Path) -> bool:
    """Whether a report says that this tool wrote it."""
    try:
        document = json.loads(report.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    tool = document.get("tool") if isinstance(document, dict) else None
    return isinstance(tool, dict) and tool.get("name") == "migrate-lens"


def _prepare(folder: Path, fresh: bool, unmarked: bool) -> None:
    """Make and mark the folder, where it is not."""
    try:
        if fresh:
            folder.mkdir()
        if unmarked:
            write(folder / IGNORE, _MARK)
        _touch(folder)
    except OSError as error:
        raise StateError(
            f"cannot write the state folder {folder}: {error.strerror}", "name another: --state DIR"
        ) from error


def _touch(folder: Path) -> None:
    """Prove that a file can be made in the folder, and leave none."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def _remove(folder: Path, fresh: bool) -> None:
    """Take our mark away if there is nothing else, and the folder if it was made for it."""
    with contextlib.suppress(OSError):
        if [item.name for item in folder.iterdir()] == [IGNORE]:
            (folder / IGNORE).unlink()
        if fresh:
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


def replace_folder(folder: Path) -> None:
    """Put what waits in the place of ``folder``; what is left of a killed run's is taken away."""
    new = waiting(folder)
    for stale in folder.parent.glob(f"{folder.name}.*"):
        if not stale.suffix[1:].isdecimal():
            continue  # the user's
        with contextlib.suppress(OSError):
            if stale != new and time.time() - stale.stat().st_mtime > _DAY:
                shutil.rmtree(stale, ignore_errors=True)
    if new.exists():
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(new, folder)


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
        Path(name).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


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
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}", "name another folder: --state DIR") from error
    except ValueError as error:
        raise StateError(f"{path} is not JSON: {error}", "run migrate-lens diagnose again") from error
    if not isinstance(document, dict):
        raise StateError(f"{path} is no report", "run migrate-lens diagnose again")
    return document


def umask() -> int:
    """The mask for new files; asking for it means setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_output(path: Path, sources: Sequence[Path] = ()) -> None:
    """See that a report can be put at ``path``, before any long work starts; leaves nothing there.

    Args:
        path: where to.
        sources: the user's files, or folders of them, of which none may be written over.

    Raises:
        UsageError: its folder is missing or cannot be written, it is a folder itself, or one of the user's files.
    """
    if any(_would_lose(path, source) for source in sources):
        raise UsageError(f"--output {path} is a file of the library, and is not written over", "name another file")
    if path.is_dir():
        raise UsageError(f"--output {path} is a folder", "name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"--output: no such folder: {path.parent}", f"make it first: mkdir -p {path.parent}")
    try:
        if path.is_file() or not path.exists():
            _touch(path.resolve().parent)
    except OSError as error:
        raise UsageError(f"--output: cannot write into {path.parent}: {error.strerror}", "name another file") from error


def _would_lose(path: Path, source: Path) -> bool:
    """Whether a file that is there belongs to a source: is it, or lies in it."""
    return path.is_file() and path.resolve().is_relative_to(source.resolve())


def cache_folder() -> Path:
    """Where caches go: ``MIGRATE_LENS_CACHE``, else the user's cache folder."""
    named = os.environ.get("MIGRATE_LENS_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "migrate-lens"
