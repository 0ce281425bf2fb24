"""Distributions of PyPI for benchmarks: a name and a version in, a folder out; nothing is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Distribution:
    """A pinned distribution.

    Attributes:
        name: on PyPI.
        version: pinned.
        needs: pinned packages that it imports, torch and numpy aside, as ``name==version``.
        source: its source archive is wanted, and not its wheel.
    """

    name: str
    version: str
    needs: tuple[str, ...] = ()
    source: bool = False

    @property
    def pattern(self) -> str:
        """The file names that its archive may have."""
        stem = f"{self.name.replace('-', '_')}-{self.version}"
        return f"{stem}.tar.gz" if self.source else f"{stem}-*.whl"


def pip(*arguments: str, built: bool | None = True) -> None:
    """Run pip without dependencies, for wheels or for source archives only; None takes whatever there is.

    Raises:
        SystemExit: pip failed; its last line says why.
    """
    kinds = () if built is None else ("--only-binary" if built else "--no-binary", ":all:")
    options = ("-q", "--no-deps", *kinds)
    command = [sys.executable, "-m", "pip", arguments[0], *options, *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"pip {' '.join(arguments)}: {done.stderr.strip().splitlines()[-1]}")


def needed(distribution: Distribution, cache: Path) -> list[Path]:
    """A folder for each package that a distribution needs."""
    folders = [cache / "needs" / need for need in distribution.needs]
    for folder, need in zip(folders, distribution.needs, strict=True):
        if not folder.exists():
            pip("install", "--no-build-isolation", "--target", f"{folder}.part", need, built=None)
            Path(f"{folder}.part").rename(folder)
    return folders


def unpacked(distribution: Distribution, cache: Path, folder: Path) -> Path:
    """The contents of a distribution's archive in a folder, downloaded if the cache does not have it."""
    if folder.exists():
        return folder
    if not list(cache.glob(distribution.pattern)):
        wanted = f"{distribution.name}=={distribution.version}"
        pip("download", "--no-build-isolation", "-d", str(cache), wanted, built=not distribution.source)
    archive = next(cache.glob(distribution.pattern))
    if not distribution.source:
        shutil.unpack_archive(archive, folder, "zip")
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        shutil.unpack_archive(archive, scratch, filter="data")
        next(Path(scratch).iterdir()).rename(folder)
    return folder
