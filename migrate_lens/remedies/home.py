"""A trace of a library that was built and installed somewhere in; the trace with the library's own files out.

A library with native code runs from a private folder that is gone afterwards. Its Python files are those of the tree.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrate_lens.model.report import Library
from migrate_lens.model.trace import Place, Trace


def at_home(trace: Trace, library: Library) -> Trace:
    """The trace with each place of the library in the file of its tree."""
    moved: dict[Place, Place] = {place: _at_home(place, library) for place in trace.places}
    for event in trace.events:
        moved.setdefault(event.place, _at_home(event.place, library))
    if all(old is new for old, new in moved.items()):
        return trace
    events = tuple(replace(event, place=moved[event.place]) for event in trace.events)
    return replace(trace, places=tuple(moved[place] for place in trace.places), events=events)


def _at_home(place: Place, library: Library) -> Place:
    if place.module.partition(".")[0] not in library.packages or Path(place.path).exists():
        return place
    stem = library.import_root / place.module.replace(".", "/")
    files = (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))
    file = next((file for file in files if file.is_file()), None)
    return place if file is None else replace(place, path=str(file))
