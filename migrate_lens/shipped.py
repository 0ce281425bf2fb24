"""The name of a data folder in; where it lies, out: beside the package in a wheel, one level up in a checkout."""

from __future__ import annotations

from pathlib import Path

from migrate_lens.model.errors import StateError

PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """A folder of data that is shipped: ``rules``, ``rules/audit``, ``templates``.

    Raises:
        StateError: it is in neither place.
    """
    for candidate in (PACKAGE / name, PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise StateError(f"the folder {name!r} is missing from the installation", "install migrate-lens again")
