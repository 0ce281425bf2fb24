"""Bridges in ``rules/bridges/*.toml`` and a gap of a native source in; the single-point edits that bridge it out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from migrate_lens.model.report import Gap
from migrate_lens.remedies.fix.fixing import NoReplacement, Replacement
from migrate_lens.remedies.fix.slots import Edit, line_starts
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.shipped import folder

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


@cache
def load() -> tuple[Mapping[str, Any], ...]:
    """All shipped bridges."""
    return tuple(tomllib.loads(p.read_text(encoding="utf-8")) for p in sorted(folder("rules/bridges").glob("*.toml")))


def find(gap: Gap, root: Path) -> tuple[Replacement, ...] | NoReplacement:
    """The edits of the bridge for a gap, one for each file or site; whether they build is for others to try."""
    bridge = next((b for b in load() if gap.api in _apis(b)), None)
    if bridge is None:
        return NoReplacement("there is no bridge for it")
    made: list[Replacement] = []
    for path, lines in _sites(gap, root).items():
        data = path.read_bytes()
        made += [
            Replacement(path, edit, Candidate(Kind.CPP_BRIDGE, "", bridge["title"]), _line(data, edit))
            for edit in _edits(bridge, data, lines)
        ]
    return tuple(made) if made else NoReplacement("the bridge for it fits none of its sites")


def _apis(bridge: Mapping[str, Any]) -> Sequence[str]:
    api = bridge["when"].get("api", ())
    return (api,) if isinstance(api, str) else api


def _sites(gap: Gap, root: Path) -> dict[Path, list[int]]:
    """Lines of the gap by file."""
    lines: dict[Path, list[int]] = {}
    for site in gap.sites:
        path = root / site.path
        if path.is_file():
            lines.setdefault(path, []).append(site.line)
    return lines


def _edits(bridge: Mapping[str, Any], data: bytes, lines: Sequence[int]) -> Iterator[Edit]:
    if bridge["kind"] == "add_name":
        yield _below_includes(data, bridge["header"])
    elif bridge["kind"] == "call_site":
        yield from _at_calls(data, bridge["edit"], lines)
    else:
        for shim in bridge["shim"]:
            yield from _instead_of_include(data, shim)


def _below_includes(data: bytes, header: str) -> Edit:
    """The names, below the last include."""
    last = max((found.end() for found in _INCLUDE.finditer(data)), default=0)
    return Edit(last, last, "\n" + header.strip("\n"))


def _at_calls(data: bytes, edits: Sequence[Mapping[str, str]], lines: Sequence[int]) -> Iterator[Edit]:
    starts = [*line_starts(data), len(data)]
    for line in lines:
        text = data[starts[line - 1] : starts[line]].decode("utf-8", errors="surrogateescape")
        for one in edits:
            changed = re.sub(one["pattern"], one["replacement"], text)
            if changed != text:
                yield Edit(starts[line - 1], starts[line], changed)
                break


def _instead_of_include(data: bytes, shim: Mapping[str, str]) -> Iterator[Edit]:
    """The header where there is one; the bridge expires by itself."""
    path = shim["path"]
    for found in _INCLUDE.finditer(data):
        if f"<{path}>".encode() in found[0] or f'"{path}"'.encode() in found[0]:
            body = "\n".join(x for x in shim["text"].strip().splitlines() if x.strip() != "#pragma once")
            text = f"#if __has_include(<{path}>)\n#include <{path}>\n#else\n{body}\n#endif"
            yield Edit(found.start(), found.end(), text)


def _line(data: bytes, edit: Edit) -> int:
    return data[: edit.start].count(b"\n") + 1
