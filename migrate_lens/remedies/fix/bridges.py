"""A gap of a native source and the bridges of the rulebook in; the single-point edits that bridge it out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import assert_never

from migrate_lens.model.report import Gap
from migrate_lens.remedies.fix.fixing import NoReplacement
from migrate_lens.remedies.fix.slots import Edit, line_starts
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.rulebook.bridges import AddName, CallSite, Change, Rewrite, ShimHeader, ShimHeaders, bridge_for, load

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


def find(gap: Gap, root: Path) -> tuple[Replacement, ...] | NoReplacement:
    """The edits of the bridge for a gap, one for each file or site; whether they build is for others to try."""
    bridge = bridge_for(gap.api, load())
    if bridge is None:
        return NoReplacement("there is no bridge for it")
    candidate = Candidate(Kind.CPP_BRIDGE, "", bridge.title)
    made: list[Replacement] = []
    for path, lines in _sites(gap, root).items():
        data = path.read_bytes()
        for edit in _edits(bridge.change, data, lines):
            line = data[: edit.start].count(b"\n") + 1
            made.append(Replacement(path, edit, candidate, line))
    return tuple(made) if made else NoReplacement("the bridge for it fits none of its sites")


def _sites(gap: Gap, root: Path) -> dict[Path, list[int]]:
    """The files of a gap that are there, and its lines in each."""
    lines: dict[Path, list[int]] = {}
    for site in gap.sites:
        path = root / site.path
        if path.is_file():
            lines.setdefault(path, []).append(site.line)
    return lines


def _edits(change: Change, data: bytes, lines: Sequence[int]) -> Iterator[Edit]:
    match change:
        case AddName(header):
            yield _below_includes(data, header)
        case CallSite(rewrites):
            yield from _at_calls(data, rewrites, lines)
        case ShimHeaders(headers):
            for shim in headers:
                yield from _instead_of_include(data, shim)
        case _:
            assert_never(change)


def _below_includes(data: bytes, header: str) -> Edit:
    """The names, below the last include."""
    last = max((include.end() for include in _INCLUDE.finditer(data)), default=0)
    return Edit(last, last, "\n" + header.strip("\n"))


def _at_calls(data: bytes, rewrites: Sequence[Rewrite], lines: Sequence[int]) -> Iterator[Edit]:
    """The lines of the calls, each changed by the first rewriting that fits it."""
    starts = [*line_starts(data), len(data)]
    for line in lines:
        start, end = starts[line - 1], starts[line]
        text = data[start:end].decode("utf-8", errors="surrogateescape")
        rewritten = (re.sub(rewrite.pattern, rewrite.replacement, text) for rewrite in rewrites)
        changed = next((other for other in rewritten if other != text), None)
        if changed is not None:
            yield Edit(start, end, changed)


def _instead_of_include(data: bytes, shim: ShimHeader) -> Iterator[Edit]:
    """The header where there is one; the bridge expires by itself."""
    spellings = (f"<{shim.path}>".encode(), f'"{shim.path}"'.encode())
    lines = [line for line in shim.text.strip().splitlines() if line.strip() != "#pragma once"]
    body = "\n".join(lines)
    guarded = f"#if __has_include(<{shim.path}>)\n#include <{shim.path}>\n#else\n{body}\n#endif"
    for include in _INCLUDE.finditer(data):
        if any(spelling in include[0] for spelling in spellings):
            yield Edit(include.start(), include.end(), guarded)
