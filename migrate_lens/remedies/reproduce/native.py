"""A native source and a line in it, or a small library, in; the text of a tiny project out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.remedies.publish.issue import render_template

MAIN = "mre.py"
UNIT = "csrc/mre.cc"
# Most lines of a whole library that is taken as its own reproduction.
SMALL = 200
_NATIVE = frozenset((".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".cuh"))
_ENTRY = re.compile(r"\bPyInit_\w+|\bPYBIND11_MODULE\b")
_DIRECTIVE = re.compile(r"^\s*#")
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


@dataclass(frozen=True, slots=True)
class Project:
    """Files by name; ``mre.py`` builds them and runs them, under torch and under Paddle alike.

    Attributes:
        files: text by name.
        needle: what the failure must name.
    """

    files: Mapping[str, str]
    needle: str


def chunks(text: str) -> list[str]:
    """Top-level declarations of a C++ source, each with the comments and blank lines before it."""
    found: list[str] = []
    current: list[str] = []
    depth = 0
    continued = False
    for line in text.splitlines(keepends=True):
        current.append(line)
        directive = continued or (depth == 0 and bool(_DIRECTIVE.match(line)))
        continued = directive and line.rstrip().endswith("\\")
        bare = _bare(line)
        if not directive:
            depth += bare.count("{") - bare.count("}")
        if (directive and not continued) or (depth <= 0 and bare.rstrip().endswith((";", "}"))):
            found.append("".join(current))
            current, depth = [], max(depth, 0)
    if current:
        found.append("".join(current))
    return found


def _bare(line: str) -> str:
    """A line without strings, characters and comments."""
    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', '""', line)
    return re.sub(r"/\*.*?\*/|//.*", "", line)


def cuts(text: str, line: int) -> Iterator[str]:
    """A unit cut to its includes and what stands at a line, then with more of it, then whole; entry points go."""
    parts = chunks(text)
    at = _chunk_at(parts, line)
    plain = [p for p in parts if not _ENTRY.search(p) or p is at]
    heads = [p for p in plain if _DIRECTIVE.match(_first_code(p)) or _is_using(p)]
    if at is not None:
        words = set(re.findall(r"\w+", at))
        needed = [p for p in plain if p in heads or p is at or _declares(p) & words]
        least = [p for p in plain if p in heads or p is at]
        yield from dict.fromkeys(("".join(least), "".join(needed)))
    yield "".join(plain)


def _first_code(part: str) -> str:
    return next((x for x in part.splitlines() if x.strip() and not x.strip().startswith(("//", "/*", "*"))), "")


def _is_using(part: str) -> bool:
    return bool(re.match(r"\s*(using|typedef)\b", _first_code(part)))


def _chunk_at(parts: list[str], line: int) -> str | None:
    seen = 0
    for part in parts:
        seen += part.count("\n")
        if line <= seen:
            return part
    return None


def _declares(part: str) -> set[str]:
    """Names that a declaration introduces, as far as its first line says."""
    return set(re.findall(r"(\w+)\s*(?:\(|\{|;|=|:)", _first_code(part)))


def unit_project(unit: str, needle: str, *, own_entry: bool) -> Project:
    """A project of one unit.

    Args:
        unit: its text.
        needle: what the failure must name.
        own_entry: whether the unit has an entry point of its own.
    """
    text = unit.strip("\n") + "\n"
    if not own_entry:
        head = "" if "#include <Python.h>" in text else "#include <Python.h>\n"
        text = head + text + "\n" + render_template("mre_ext/entry.cc.j2", {"name": "mre"}, None)
    files = {
        "setup.py": render_template("mre_ext/setup.py.j2", {"name": "mre", "sources": [UNIT]}, None),
        UNIT: text,
        MAIN: render_template("mre_ext/mre.py.j2", {"lines": ["import mre"]}, None),
    }
    return Project(files, needle)


def library_project(root: Path, probe: Path | None, needle: str, check: str) -> Project | None:
    """A small library as it is, with its probe and a check of the result; None where it is not small."""
    files: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        hidden = any(p.startswith(".") or p in ("build", "__pycache__", "issues") for p in path.relative_to(root).parts)
        if hidden or not path.is_file() or (path.suffix != ".py" and path.suffix not in _NATIVE):
            continue
        if path == probe or "test" in path.name:
            continue
        files[name] = path.read_text(encoding="utf-8", errors="replace")
    lines = probe.read_text(encoding="utf-8").rstrip().splitlines() if probe else [f"import {_package(files)}"]
    if "setup.py" not in files or sum(text.count("\n") for text in files.values()) > SMALL:
        return None
    files[MAIN] = render_template("mre_ext/mre.py.j2", {"lines": [*lines, *([check] if check else [])]}, None)
    return Project(files, needle)


def _package(files: Mapping[str, str]) -> str:
    return next((n.partition("/")[0] for n in files if n.endswith("/__init__.py")), "mre")


def includes(text: str) -> list[str]:
    """Headers that a unit names."""
    return [found[1] for found in map(_INCLUDE.match, text.splitlines()) if found]
