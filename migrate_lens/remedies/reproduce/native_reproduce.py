"""A gap of a library with native code in; a tiny project that builds and passes under torch and fails under Paddle out.

Compiling is slow, so few candidates are tried, the smallest first: the unit cut to its includes and the declaration at
fault, then with what that needs, then whole; then the library itself where it is small. Paddle is asked first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_lens.model.value import Encoded
from migrate_lens.programs.literals import Unwritable, literal
from migrate_lens.remedies.publish.verify import (
    TIMES,
    CleanRun,
    Verdict,
    runs_under_paddle,
    runs_under_torch,
)
from migrate_lens.remedies.reproduce.expect import checks
from migrate_lens.remedies.reproduce.native import MAIN, Project, cuts, library_project, unit_project

NATIVE_LAYERS = ("cpp_api", "op_registry", "build")
_SOURCES = (".cc", ".cpp", ".cxx")
_EVERYWHERE = frozenset(
    ("char", "const", "int", "long", "unsigned", "short", "bool", "float", "double", "void", "signed")
)
_COMPILED = ("compile_error", "missing_header", "link_error", "import_error", "op_not_found", "schema", "dispatch")


@dataclass(frozen=True, slots=True)
class Native:
    """A verified project."""

    project: Project
    verdict: Verdict
    failure: str


def projects(
    gap: Mapping[str, Any], root: Path, probe: Path | None, result: Encoded, has_result: bool
) -> Iterator[Project]:
    """Candidates, smallest first.

    Args:
        gap: the gap.
        root: the library.
        probe: the script that exercises it.
        result: torch's outcome of that script.
        has_result: whether it has one.
    """
    needle = needle_of(gap)
    behind = re.findall(r"[\w./-]+\.(?:h|hpp|cuh)\b", "\n".join(gap["evidence"]))
    needle = (
        "|".join(dict.fromkeys((needle, *(h for h in behind if "/" in h and not (root / h).exists()))))
        if behind
        else needle
    )
    if gap["stage"] in ("build", "import"):
        for path, line in _places(gap, root, needle):
            if path.suffix in _SOURCES:
                text = path.read_text(encoding="utf-8", errors="replace")
                yield from (unit_project(cut, needle, own_entry="PyInit" in cut) for cut in cuts(text, line))
    check = _check(result) if has_result and gap["stage"] not in ("build", "import") else ""
    said = _said(gap, needle)
    whole = library_project(root, probe, "" if check else said, check)
    if whole is not None:
        yield whole


def _said(gap: Mapping[str, Any], needle: str) -> str:
    """What a build of the whole library must name: what setup raised, or the library that the linker misses."""
    raised = re.match(r"(?:raises )?(\w+(?:Error|Exception))\b", gap["actual"])
    missed = re.search(r"cannot find (-l\w+)", gap["actual"])
    if missed:
        return missed[1]
    return raised[1] if raised and gap["stage"] == "build" else needle


def needle_of(gap: Mapping[str, Any]) -> str:
    """What a failure must name: the header, or the last part of the construct's name.

    Where a symbol is undefined, what the source calls may be another name than the symbol's: either is named.
    """
    if gap["symptom"] == "missing_header":
        return str(gap["api"])
    words = re.findall(r"[A-Za-z_]\w+", re.sub(r"\(.*|<.*", "", gap["api"]))
    return "|".join(dict.fromkeys((*words[-1:], *_undefined(gap.get("actual", "")))))


def _undefined(actual: str) -> list[str]:
    """The name that tells an undefined symbol from others, as it stands in the mangled one too.

    That is the function's own, or for an operator those of the types that it takes.
    """
    found = re.search(r"undefined symbol: (.*)", actual)
    if not found:
        return []
    name, _, parameters = found[1].partition("(")
    if "operator" not in name:
        return [max(re.findall(r"\w+", re.sub(r"<.*", "", name))[-2:], key=len)]
    return [
        w
        for w in re.findall(r"\b[A-Za-z_]\w*(?=[ &*,>)]|$)", re.sub(r"std::\w+(<[^()]*?>)?", "", parameters))
        if w not in _EVERYWHERE
    ]


def _places(gap: Mapping[str, Any], root: Path, needle: str) -> list[tuple[Path, int]]:
    """Where the construct stands: at the sites, else where a source names it."""
    found = [(root / s["path"], s["line"]) for s in gap["sites"] if (root / s["path"]).is_file()]
    if any(path.suffix in _SOURCES for path, _ in found):
        return found[:2]
    for path in sorted(p for p in root.rglob("*") if p.suffix in _SOURCES):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if needle and re.search(rf"\b{re.escape(needle.partition('|')[0])}\b", line):
                return [(path, number)]
    return found


def _check(result: Encoded) -> str:
    """An assertion on the outcome of the probe."""
    try:
        return f"assert result == {literal(result)}, result" if not _has_tensors(result) else _first(result)
    except Unwritable:
        return ""


def _first(result: Encoded) -> str:
    return "\n".join(next(iter(checks("result", result)), ()))


def _has_tensors(value: Encoded) -> bool:
    return "('T'," in repr(value)


def verified(project: Project, torch: Path, paddle: Path) -> Native | None:
    """Build and run a project on both sides, Paddle first; three times where the first time shows it."""
    theirs = _wanted(runs_under_paddle(project.files, MAIN, paddle), lambda run: not run.passed and named(project, run))
    if not theirs:
        return None
    ours = _wanted(runs_under_torch(project.files, MAIN, torch), lambda run: run.passed)
    # What corrupts memory does not end by the same signal each time.
    if not ours or len({"a signal" if run.failure.startswith("SIG") else run.failure for run in theirs}) > 1:
        return None
    return Native(project, Verdict(ours, theirs), theirs[0].failure)


def _wanted(runs: Iterator[CleanRun], wanted: Callable[[CleanRun], bool]) -> tuple[CleanRun, ...]:
    """So many runs, each as wanted; none where one is not."""
    done: list[CleanRun] = []
    for run in runs:
        if not wanted(run):
            return ()
        done.append(run)
        if len(done) == TIMES:
            return tuple(done)
    return ()


def named(project: Project, run: CleanRun) -> bool:
    """Whether a failure is the one that a project is about."""
    return names(project.needle, run.output)


def names(needle: str, output: str) -> bool:
    """Whether an error names what it should, and no error names something else alone."""
    if not needle:
        return True
    errors = [x for x in output.splitlines() if re.search(r"error:|undefined symbol|cannot find|Error\b", x)]
    return any(one in line for one in needle.split("|") for line in errors)
