"""A library that was diagnosed in; by which name it may be called in public, and how often it meets a gap, out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from migrate_lens.model.report import Gap, Library
from migrate_lens.programs.synthesis import ProbeRecord

_FORGE = re.compile(
    r"https?://(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|pypi\.org)/", re.IGNORECASE
)
_OPEN = re.compile(r"(?i)\b(?:MIT|BSD|Apache|MPL|ISC|L?GPL|Mozilla|Unlicense|PSF)\b")


@dataclass(frozen=True, slots=True)
class Met:
    """Who met a gap, and how often.

    Attributes:
        library: name and version; empty where that is nobody's business.
        places: in its sources.
        calls: that were recorded.
    """

    library: str = ""
    places: int = 0
    calls: int = 0


def met(gaps: Iterable[Gap], records: Iterable[ProbeRecord], library: str) -> Met:
    """How often the gaps of one issue are met.

    Args:
        gaps: the gaps.
        records: what torch did in each probe.
        library: its name, where it may be called by it.
    """
    group = list(gaps)
    names = {gap.api for gap in group}
    places = {site for gap in group for site in gap.sites}
    events = (event for record in records for event in record.trace.events)
    return Met(library, len(places), sum(event.what == "call" and event.api in names for event in events))


def public_name(library: Library) -> str:
    """Name and version of a distribution that says itself that it is public; empty for all others.

    It says so by an open licence and by the address of a public forge, and by nothing that says that it is private.
    """
    for file in _metadata(library):
        said = HeaderParser().parsestr(file.read_text(encoding="utf-8", errors="replace"))
        if _provides(file, said, library) and _is_public(said):
            return f"{said['Name']} {said['Version']}"
    return ""


def _metadata(library: Library) -> Iterator[Path]:
    for folder in dict.fromkeys((library.root, library.import_root, library.root.parent)):
        yield from sorted(folder.glob("*.dist-info/METADATA"))
    yield from (file for file in (library.root / "PKG-INFO",) if file.is_file())


def _provides(file: Path, said: Message, library: Library) -> bool:
    """Whether a distribution is the one that a library's packages are of."""
    record = file.with_name("RECORD")
    listed = record.read_text(encoding="utf-8", errors="replace") if record.is_file() else ""
    own = {re.sub(r"[-_.]+", "_", name).lower() for name in (library.name, *library.packages)}
    named = re.sub(r"[-_.]+", "_", str(said["Name"])).lower()
    return named in own or any(f"{package}/__init__.py" in listed for package in library.packages)


def _is_public(said: Message) -> bool:
    classifiers = said.get_all("Classifier", [])
    if any(one.startswith("Private") for one in classifiers):
        return False
    licences = [*said.get_all("License", []), *said.get_all("License-Expression", [])]
    is_open = any("OSI Approved" in one for one in classifiers) or any(map(_OPEN.search, licences))
    addresses = [*said.get_all("Home-page", []), *said.get_all("Project-URL", [])]
    return is_open and any(map(_FORGE.search, addresses))
