"""A shared object goes in; what it needs, and which symbols nothing that it brings in defines, come out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from migrate_lens.native.process import run_bounded

_DYNAMIC = re.compile(r"\((NEEDED|RUNPATH|RPATH)\)[^\[]*\[([^\]]*)\]")
SECONDS = 60.0


def _tool(*argv: str | Path) -> str:
    """Output of a binutils program; empty if it is not installed or does not like the file."""
    if shutil.which(str(argv[0])) is None:
        return ""
    ran = run_bounded(argv, cwd=Path.cwd(), env=os.environ | {"LC_ALL": "C"}, timeout=SECONDS)
    return ran.output if ran.ok else ""


class Needed(NamedTuple):
    """The libraries that a shared object asks for, and the folders that it tells the loader to look in."""

    libraries: tuple[str, ...]
    folders: tuple[Path, ...]


def needed(path: Path) -> Needed:
    """What ``path`` asks the loader for."""
    names: list[str] = []
    folders: list[Path] = []
    for kind, value in _DYNAMIC.findall(_tool("readelf", "-d", path)):
        if kind == "NEEDED":
            names.append(value)
        else:
            folders += [Path(part.replace("$ORIGIN", str(path.parent))) for part in value.split(":") if part]
    return Needed(tuple(names), tuple(folders))


def undefined(path: Path) -> frozenset[str]:
    """The mangled names that ``path`` needs from elsewhere; weak ones are not needed."""
    return frozenset(_names(_listing(path, "--undefined-only"), ("U",)))


@lru_cache(maxsize=32)
def defined(path: Path) -> frozenset[str]:
    """The mangled names that ``path`` offers."""
    return frozenset(_names(_listing(path, "--defined-only"), None))


def _listing(path: Path, which: str) -> str:
    """What nm says, through a file: a framework's names are more than a bounded output keeps."""
    if shutil.which("nm") is None:
        return ""
    with tempfile.TemporaryFile() as file:
        try:
            subprocess.run(
                ["nm", "-D", which, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return ""
        file.seek(0)
        return file.read().decode("utf-8", "replace")


def _names(listing: str, kinds: tuple[str, ...] | None) -> Iterable[str]:
    for line in listing.splitlines():
        parts = line.split()
        if len(parts) >= 2 and (kinds is None or parts[-2] in kinds):
            yield parts[-1].partition("@")[0]


def closure(path: Path) -> tuple[Path, ...]:
    """The libraries beside ``path`` that the loader would bring in with it, found in its own run paths only."""
    names, folders = needed(path)
    queue = [(name, folders) for name in names]
    libraries: dict[str, Path] = {}
    while queue:
        name, places = queue.pop()
        where = next((place / name for place in places if (place / name).is_file()), None)
        if name in libraries or where is None:
            continue
        libraries[name] = where
        more, own = needed(where)
        queue += [(other, (*own, where.parent, *places)) for other in more]
    return tuple(libraries.values())


def unresolved(path: Path) -> tuple[str, ...]:
    """Symbols of C++ that ``path`` needs and no library it brings in defines; none if it brings in none."""
    libraries = closure(path)
    wanted = {symbol for symbol in undefined(path) if symbol.startswith("_Z")}
    if not libraries or not wanted:
        return ()
    offered = frozenset[str]().union(*(defined(library) for library in libraries))
    return tuple(sorted(wanted - offered))


def demangle(symbols: Iterable[str]) -> dict[str, str]:
    """Each symbol with its C++ spelling; the symbol itself where there is no c++filt."""
    names = list(symbols)
    lines = _tool("c++filt", *names).splitlines() if names else []
    return dict(zip(names, lines if len(lines) == len(names) else names, strict=True))
