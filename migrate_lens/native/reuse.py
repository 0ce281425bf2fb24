"""A build's workplace goes in and is kept under all that it depends on; the same workplace comes out the next time.

What is kept is what a build leaves behind: the installed library, the records of its compilers and interpreters, how
it ended, and sources that it made itself. What is said about it is worked out anew each time.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, TypedDict

from migrate_lens.model.report import Library, Runtime
from migrate_lens.native import identity
from migrate_lens.native.compiler import ObjectStore, read_calls
from migrate_lens.native.constructs import Construct, ConstructKind
from migrate_lens.native.diagnostics import Location
from migrate_lens.native.process import Ran
from migrate_lens.native.shelf import Shelf
from migrate_lens.native.standins import NATIVE, native_files
from migrate_lens.native.units import UnitCheck
from migrate_lens.native.workplace import Interpreter, Workplace

RAN, WHERE, ROOT = "ran.json", "where", "@ROOT@"
# Records and small texts name the folder in which they were made; they are told the new one.
TEXTS = (".json", ".py", ".pyi", ".pth", ".txt", ".cmake", ".cfg", ".toml")
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class Basis:
    """What one build depends on.

    Attributes:
        key: a digest of all of it; empty where something is not known, and then nothing is kept.
        unit: a digest of the part of it that each single object depends on: all but the contents of the sources.
        files: the digests of the library's files before the build.
    """

    key: str
    unit: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, place: Workplace, library: Library, runtime: Runtime, python: Path, about: Interpreter) -> Basis:
        """The basis of a build that is about to start in ``place``."""
        files = identity.tree_digests(place.source)
        if not about.version or "" in files.values() or library.build is None:
            return cls("", "", files)
        parts = [
            library.build.kind,
            os.path.relpath(library.build.file, library.root),
            *_around(runtime, python, about),
        ]
        content = (f"{name} {digest}" for name, digest in sorted(files.items()))
        # A header that is new may stand in front of one that a unit has read.
        headers = sorted(name for name in files if name.endswith(NATIVE))
        return cls(identity.digest([*parts, *content]), identity.digest([*parts, *headers]), files)

    def objects(self, shelf: Shelf, place: Workplace) -> ObjectStore | None:
        """Where the shims keep objects; None where nothing is kept."""
        if not self.key:
            return None
        return ObjectStore(shelf.folder, shelf.fresh, place.root, self.unit)


def _around(runtime: Runtime, python: Path, about: Interpreter) -> list[str]:
    """What a compiler's output depends on beside the library."""
    frameworks = about.torch if runtime is Runtime.TORCH else (*about.torch, *about.paddle)
    return [
        runtime,
        identity.program(),
        str(python),
        identity.file_stamp(python),
        about.version,
        repr(about.known),
        identity.distributions(about.search),
        *(identity.folder_stamp(Path(root)) for root in frameworks),
        identity.compilers(os.environ),
        identity.variables(os.environ),
    ]


def jit_basis(library: Library, runtime: Runtime, python: Path, about: Interpreter) -> str:
    """What objects that a program makes while it runs depend on, their sources apart; empty if that is not known."""
    sources = native_files(library.root) if library.script is None else []
    names = [str(path.relative_to(library.root)) for path in sources]
    return identity.digest([*_around(runtime, python, about), *names]) if about.version else ""


def keep(shelf: Shelf, basis: Basis, place: Workplace, ran: Ran) -> str:
    """Keep a finished build; the reason if it could not be kept."""
    if not basis.key:
        return "it depends on files outside of the library"

    def fill(file: BinaryIO) -> None:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for folder in (place.target, place.calls, place.errors):
                archive.add(folder, folder.name)
            for path in _made(place, basis.files):
                archive.add(path, str(path.relative_to(place.root)))
            _add_text(archive, RAN, json.dumps(asdict(ran)))
            _add_text(archive, WHERE, str(place.root))

    return shelf.put(f"build-{basis.key}", fill)


def _made(place: Workplace, before: Mapping[str, str]) -> list[Path]:
    """Native sources that the build itself wrote: checking a unit again needs them."""
    made = [path for path in (place.root / "cmake").rglob("*") if path.suffix in NATIVE]
    for path in place.source.rglob("*"):
        if path.suffix not in NATIVE:
            continue
        name = str(path.relative_to(place.source))
        if name not in before or identity.file_digest(path, place.source) != before[name]:
            made.append(path)
    return [path for path in made if path.is_file()]


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def restore(shelf: Shelf, basis: Basis, place: Workplace) -> Ran | None:
    """Put a kept build into ``place``; how it ended, None if there is none."""
    file = shelf.take(f"build-{basis.key}") if basis.key else None
    if file is None:
        return None
    try:
        with file, tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:  # all of it is looked at before any of it is written
                tarfile.data_filter(member, str(place.root))
            archive.extractall(place.root, filter="data")
        return _restored(place)
    except (OSError, tarfile.TarError, ValueError, TypeError, LookupError):
        return None


def _restored(place: Workplace) -> Ran:
    """What was kept, told of its new place; how the build ended."""
    old = (place.root / WHERE).read_text(encoding="utf-8")
    for folder in (place.calls, place.errors, place.target):
        _move_texts(folder, old, str(place.root))
    for call in read_calls(place.calls):
        if call.cwd.is_relative_to(place.root):  # a folder for objects, which are not kept: compilers are asked there
            call.cwd.mkdir(parents=True, exist_ok=True)
    return Ran(**json.loads((place.root / RAN).read_text(encoding="utf-8")))


def _move_texts(folder: Path, old: str, new: str) -> None:
    for path in folder.rglob("*"):
        if path.suffix not in TEXTS or not path.is_file() or path.is_symlink():
            continue
        if path.stat().st_size >= _SMALL:
            continue
        data = path.read_bytes()
        if old.encode() in data:
            path.write_bytes(data.replace(old.encode(), new.encode()))


# -- what checking the units gave --------------------------------------------------------------------------------------


def keep_checks(shelf: Shelf, key: str, checks: Sequence[UnitCheck], root: Path) -> None:
    """Keep what checking the units gave; ``root`` is the copy that was checked."""
    text = json.dumps([asdict(check) for check in checks], default=str).replace(str(root), ROOT)

    def fill(file: BinaryIO) -> None:
        file.write(text.encode())

    shelf.put(f"units-{key}", fill)


def restore_checks(shelf: Shelf, key: str, root: Path) -> tuple[UnitCheck, ...] | None:
    """What checking the same units gave before; None if that is not kept."""
    file = shelf.take(f"units-{key}")
    if file is None:
        return None
    try:
        with file:
            rows: list[CheckRow] = json.loads(file.read().decode().replace(ROOT, str(root)))
        return tuple(_check(row) for row in rows)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


class LocationRow(TypedDict):
    """A ``Location`` as it is kept."""

    path: str
    line: int
    column: int


class ConstructRow(TypedDict):
    """A ``Construct`` as it is kept."""

    api: str
    kind: str
    site: LocationRow | None
    message: str
    folded: int
    directive: bool


class CheckRow(TypedDict):
    """A ``UnitCheck`` as it is kept."""

    path: str
    constructs: list[ConstructRow]
    reached: bool
    reason: str
    headers: list[str]
    command: list[str]


def _check(row: CheckRow) -> UnitCheck:
    return UnitCheck(
        path=row["path"],
        constructs=tuple(_construct(construct) for construct in row["constructs"]),
        reached=row["reached"],
        reason=row["reason"],
        headers=tuple(row["headers"]),
        command=tuple(row["command"]),
    )


def _construct(row: ConstructRow) -> Construct:
    return Construct(
        api=row["api"],
        kind=ConstructKind(row["kind"]),
        site=_location(row["site"]),
        message=row["message"],
        folded=row["folded"],
        directive=row["directive"],
    )


def _location(row: LocationRow | None) -> Location | None:
    return Location(Path(row["path"]), row["line"], row["column"]) if row is not None else None
