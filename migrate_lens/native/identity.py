"""All that the outcome of a build depends on goes in; one digest of it comes out."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from migrate_lens.native.compiler import COMPILERS

# Variables that differ between two terminals, or between two runs in one, and that no build looks at. Any other one
# counts: a setup.py may ask for whatever it likes.
PASSING = frozenset(
    """
    _ COLUMNS DBUS_SESSION_BUS_ADDRESS DISPLAY HISTFILE LINES LS_COLORS MAIL OLDPWD PROMPT_COMMAND PS1 PWD SHLVL
    SSH_AGENT_PID SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_TTY STY TERM TERM_SESSION_ID TMUX TMUX_PANE
    WAYLAND_DISPLAY WINDOWID XAUTHORITY XDG_RUNTIME_DIR XDG_SESSION_ID
    MIGRATE_LENS_CACHE PYTEST_CURRENT_TEST PYTEST_XDIST_WORKER PYTEST_XDIST_TESTRUNUID
    """.split()  # noqa: SIM905 - a list of words reads better so
)


# What marks a distribution in a folder of an interpreter's path.
INSTALLED = (".dist-info", ".egg-info", ".pth", ".egg-link")


def digest(parts: Iterable[str | bytes]) -> str:
    """One digest of several values; where one ends and the next begins counts."""
    whole = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogateescape")
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def tree_digests(root: Path) -> dict[str, str]:
    """Each file below a folder with a digest of its content and whether it can be run.

    A link counts by what it points at and by the file that is there. A link to a folder outside has no digest, ``""``:
    nothing is known of what it leads to.
    """
    digests: dict[str, str] = {}
    for here, folders, files in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in (*files, *links):
            path = Path(here, name)
            digests[str(path.relative_to(root))] = file_digest(path, root)
    return digests


def file_digest(path: Path, root: Path) -> str:
    """A file or a link below ``root`` by its content and mode; empty for a link to a folder outside."""
    parts: list[str | bytes] = []
    if path.is_symlink():
        if path.is_dir():
            return digest([os.readlink(path)]) if path.resolve().is_relative_to(root.resolve()) else ""
        parts.append(os.readlink(path))
    if path.is_file():
        parts += [str(path.stat().st_mode & 0o111), path.read_bytes()]
    return digest(parts)


def folder_stamp(root: Path) -> str:
    """Changes when any file below a folder is another one, by its size and time; bytecode does not count."""
    return digest(_stamps(str(root)))


def _stamps(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield from _stamps(entry.path)
        else:
            stat = entry.stat(follow_symlinks=False)
            yield f"{entry.path} {stat.st_size} {stat.st_mtime_ns}"


def file_stamp(path: str | Path) -> str:
    """A file by its real path, size and time; empty if it is not there."""
    real = os.path.realpath(path)
    try:
        stat = os.stat(real)
    except OSError:
        return ""
    return f"{real} {stat.st_size} {stat.st_mtime_ns}"


def compilers(env: Mapping[str, str]) -> str:
    """The compilers and build tools that a build would find on PATH or in its variables."""
    names = [*COMPILERS, "ld", "as", "ninja", "make", *(env.get(name, "") for name in ("CC", "CXX", "CUDACXX"))]
    path = env.get("PATH", os.defpath)
    programs = [shutil.which(name.split()[0], path=path) if name.strip() else None for name in names]
    return json.dumps([file_stamp(program) if program else "" for program in programs])


def variables(env: Mapping[str, str]) -> str:
    """The environment without what differs from terminal to terminal."""
    return json.dumps(sorted((name, value) for name, value in env.items() if name not in PASSING))


def distributions(search: Sequence[str]) -> str:
    """What is installed in the folders of an interpreter's path: distributions by name and version."""
    distributions = []
    for folder in search:
        try:
            names = os.listdir(folder) if folder else []
        except OSError:
            continue
        distributions += sorted(name for name in names if name.endswith(INSTALLED))
    return json.dumps(distributions)


def program() -> str:
    """Changes with what this program itself does around a build and with what it makes of it."""
    return folder_stamp(Path(__file__).parent)
