"""A native source and a line in it, or a small library, in; the text of a tiny project out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.remedies import templates

MAIN = "mre.py"
UNIT = "csrc/mre.cc"
# Most lines of a whole library that is taken as its own reproduction.
SMALL = 200
_NATIVE = frozenset((".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".cuh"))
_NOT_SOURCES = frozenset(("build", "__pycache__", "issues"))
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
    declarations: list[str] = []
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
        ends = depth <= 0 and bare.rstrip().endswith((";", "}"))
        if ends or (directive and not continued):
            declarations.append("".join(current))
            current, depth = [], max(depth, 0)
    if current:
        declarations.append("".join(current))
    return declarations


def _bare(line: str) -> str:
    """A line without strings, characters and comments."""
    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', '""', line)
    return re.sub(r"/\*.*?\*/|//.*", "", line)


def cuts(text: str, line: int) -> Iterator[str]:
    """A unit cut to its includes and what stands at a line, then with more of it, then whole; entry points go."""
    parts = chunks(text)
    at = _chunk_at(parts, line)
    plain = [part for part in parts if part is at or not _ENTRY.search(part)]
    if at is not None:
        heads = [part for part in plain if _is_head(part)]
        words = set(re.findall(r"\w+", at))
        least = [part for part in plain if part is at or part in heads]
        needed = [part for part in plain if part is at or part in heads or _declares(part) & words]
        yield from dict.fromkeys(("".join(least), "".join(needed)))
    yield "".join(plain)


def _is_head(part: str) -> bool:
    """Whether a declaration is one that a unit begins with: a directive, ``using``, ``typedef``."""
    return bool(_DIRECTIVE.match(_first_code(part))) or _is_using(part)


def _first_code(part: str) -> str:
    code = (line for line in part.splitlines() if line.strip() and not line.strip().startswith(("//", "/*", "*")))
    return next(code, "")


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
        text = head + text + "\n" + templates.render("mre_ext/entry.cc.j2", {"name": "mre"})
    files = {
        "setup.py": templates.render("mre_ext/setup.py.j2", {"name": "mre", "sources": [UNIT]}),
        UNIT: text,
        MAIN: templates.render("mre_ext/mre.py.j2", {"lines": ["import mre"]}),
    }
    return Project(files, needle)


def library_project(root: Path, probe: Path | None, needle: str, check: str) -> Project | None:
    """A small library as it is, with its probe and a check of the result; None where it is not small."""
    files = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(root.rglob("*"))
        if path != probe and _belongs(path, root)
    }
    if "setup.py" not in files or sum(text.count("\n") for text in files.values()) > SMALL:
        return None
    lines = [f"import {_package(files)}"] if probe is None else probe.read_text(encoding="utf-8").rstrip().splitlines()
    if check:
        lines.append(check)
    files[MAIN] = templates.render("mre_ext/mre.py.j2", {"lines": lines})
    return Project(files, needle)


def _belongs(path: Path, root: Path) -> bool:
    """Whether a file is a source of the library itself: nothing that tools put there, and no test."""
    parts = path.relative_to(root).parts
    if any(part.startswith(".") or part in _NOT_SOURCES for part in parts) or "test" in path.name:
        return False
    return path.is_file() and (path.suffix == ".py" or path.suffix in _NATIVE)


def _package(files: Mapping[str, str]) -> str:
    return next((name.partition("/")[0] for name in files if name.endswith("/__init__.py")), "mre")


def includes(text: str) -> list[str]:
    """Headers that a unit names."""
    return [include[1] for include in map(_INCLUDE.match, text.splitlines()) if include]
