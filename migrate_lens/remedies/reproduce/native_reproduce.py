"""A gap of a library with native code in; a tiny project that builds and passes under torch and fails under Paddle out.

Compiling is slow, so few candidates are tried, the smallest first: the unit cut to its includes and the declaration at
fault, then with what that needs, then whole; then the library itself, narrowed to what its program reaches. What fails
as it should is cut down further as long as the time for it lasts. Paddle is asked first.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.report import Gap, Layer, Stage, Symptom
from migrate_lens.model.trace import Ending
from migrate_lens.model.value import DICT, DictValue, Encoded, tag
from migrate_lens.programs.literals import Unwritable, literal
from migrate_lens.remedies.publish.verify import (
    TIMES,
    CleanRun,
    Verdict,
    runs_under_paddle,
    runs_under_torch,
)
from migrate_lens.remedies.reproduce.expect import checks
from migrate_lens.remedies.reproduce.native import (
    MAIN,
    SETUP,
    Project,
    cuts,
    fewer_parts,
    library_projects,
    set_up,
    unit_project,
)
from migrate_lens.remedies.reproduce.reduce import Budget, reduce

NATIVE_LAYERS = frozenset((Layer.CPP_API, Layer.OP_REGISTRY, Layer.BUILD))
_SOURCES = (".cc", ".cpp", ".cxx")
_HEADER = re.compile(r"[\w./-]+\.(?:h|hpp|cuh)\b")
_RAISED = re.compile(r"(\w+(?:Error|Exception))\b")
_EVERYWHERE = frozenset(
    ("char", "const", "int", "long", "unsigned", "short", "bool", "float", "double", "void", "signed")
)
_BUDGET = (16, 60.0)  # builds on both sides, seconds
_BEFORE_A_RUN = (Stage.BUILD, Stage.IMPORT)


@dataclass(frozen=True, slots=True)
class Native:
    """A verified project."""

    project: Project
    verdict: Verdict
    failure: str


def projects(gap: Gap, root: Path, probe: Path | None, ending: Ending | None) -> Iterator[Project]:
    """Candidates, smallest first.

    Args:
        gap: what is to be reproduced.
        root: the library.
        probe: the script that exercises it.
        ending: how that script ends under torch.
    """
    needle = "|".join((needle_of(gap), *_headers_behind(gap, root)))
    if gap.stage is Stage.BUILD and any(site.path == SETUP for site in gap.sites):
        yield from set_up(root, _whole_needle(gap, needle))
    if gap.stage in _BEFORE_A_RUN:
        yield from _units(gap, root, needle)
    for check in checks_of(gap, ending) if gap.stage not in _BEFORE_A_RUN else ("",):
        yield from library_projects(root, probe, "" if check else _whole_needle(gap, needle), check)


def _headers_behind(gap: Gap, root: Path) -> list[str]:
    """Headers of others that the evidence names: what is missing may be missing for one of them."""
    named = dict.fromkeys(_HEADER.findall("\n".join(gap.evidence)))
    others = [header for header in named if "/" in header and not (root / header).exists()]
    return [header for header in others if header != needle_of(gap)]


def _units(gap: Gap, root: Path, needle: str) -> Iterator[Project]:
    """The unit at fault, cut to what stands there."""
    for path, line in _places(gap, root, needle):
        if path.suffix in _SOURCES:
            text = path.read_text(encoding="utf-8", errors="replace")
            for cut in cuts(text, line):
                yield unit_project(cut, needle, own_entry="PyInit" in cut)


def _whole_needle(gap: Gap, needle: str) -> str:
    """What a build of the whole library must name: what setup raised, or the library that the linker misses."""
    missed = re.search(r"cannot find (-l\w+)", gap.actual)
    if missed:
        return missed[1]
    raised = _RAISED.match(gap.exception or gap.actual)
    return raised[1] if raised and gap.stage is Stage.BUILD else needle


def needle_of(gap: Gap) -> str:
    """What a failure must name: the header, or the last part of the construct's name.

    Where a symbol is undefined, what the source calls may be another name than the symbol's: either is named.
    """
    if gap.symptom is Symptom.MISSING_HEADER:
        return gap.api
    words = re.findall(r"[A-Za-z_]\w+", re.sub(r"\(.*|<.*", "", gap.api))
    return "|".join(dict.fromkeys((*words[-1:], *_undefined(gap.actual))))


def _undefined(loader: str) -> list[str]:
    """The name that tells an undefined symbol from others, as it stands in the mangled one too.

    That is the function's own, or for an operator those of the types that it takes.
    """
    symbol = re.search(r"undefined symbol: (.*)", loader)
    if symbol is None:
        return []
    name, _, parameters = symbol[1].partition("(")
    if "operator" not in name:
        return [max(re.findall(r"\w+", re.sub(r"<.*", "", name))[-2:], key=len)]
    types = re.sub(r"std::\w+(<[^()]*?>)?", "", parameters)
    return [word for word in re.findall(r"\b[A-Za-z_]\w*(?=[ &*,>)]|$)", types) if word not in _EVERYWHERE]


def _places(gap: Gap, root: Path, needle: str) -> list[tuple[Path, int]]:
    """Where the construct stands: at the sites, else where a source names it."""
    sites = [(root / site.path, site.line) for site in gap.sites if (root / site.path).is_file()]
    if any(path.suffix in _SOURCES for path, _ in sites):
        return sites[:2]
    name = needle.partition("|")[0]
    named = re.compile(rf"\b{re.escape(name)}\b")
    for path in sorted(p for p in root.rglob("*") if p.suffix in _SOURCES):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if name and named.search(line):
                return [(path, number)]
    return sites


def checks_of(gap: Gap, ending: Ending | None) -> list[str]:
    """Assertions on the outcome of the probe: on the part of it that the gap speaks of, then on all of it."""
    if ending is None or not ending.has_value:
        return [""]
    made = [*_of_parts(gap, ending.value), _of_all(ending.value)]
    return [check for check in dict.fromkeys(made) if check] or [""]


def _of_parts(gap: Gap, result: Encoded) -> Iterator[str]:
    """An assertion on each plain value in a dictionary that is what the gap expects."""
    for key, value in DictValue._make(result).pairs if tag(result) == DICT else ():
        with contextlib.suppress(Unwritable):
            if not _has_tensors(value) and literal(value) in gap.expected:
                yield f"assert result[{literal(key)}] == {literal(value)}, result[{literal(key)}]"


def _of_all(result: Encoded) -> str:
    try:
        return _first(result) if _has_tensors(result) else f"assert result == {literal(result)}, result"
    except Unwritable:
        return ""


def _first(result: Encoded) -> str:
    return "\n".join(next(iter(checks("result", result)), ()))


def _has_tensors(value: Encoded) -> bool:
    return "('T'," in repr(value)


def narrower(project: Project, torch: Path, paddle: Path) -> Project:
    """A project that was verified, with as little as still fails in the same way, in the time that there is."""
    failure = next(runs_under_paddle(project.files, MAIN, paddle)).failure
    tried: list[Project] = []

    def untried(one: Project) -> Iterator[Project]:
        for smaller in fewer_parts(one):
            if smaller not in tried:
                tried.append(smaller)
                yield smaller

    def same(smaller: Project) -> bool:
        theirs = next(runs_under_paddle(smaller.files, MAIN, paddle))
        if theirs.failure != failure or not named(smaller, theirs):
            return False
        return next(runs_under_torch(smaller.files, MAIN, torch)).passed

    return reduce(project, (untried,), same, Budget(*_BUDGET))


def verified(project: Project, torch: Path, paddle: Path) -> Native | None:
    """Build and run a project on both sides, Paddle first; three times where the first time shows it."""
    failed = _wanted(runs_under_paddle(project.files, MAIN, paddle), lambda run: not run.passed and named(project, run))
    if not failed:
        return None
    passed = _wanted(runs_under_torch(project.files, MAIN, torch), lambda run: run.passed)
    # What corrupts memory does not end by the same signal each time.
    ways = {"a signal" if run.failure.startswith("SIG") else run.failure for run in failed}
    if not passed or len(ways) > 1:
        return None
    return Native(project, Verdict(passed, failed), failed[0].failure)


def _wanted(runs: Iterator[CleanRun], wanted: Callable[[CleanRun], bool]) -> tuple[CleanRun, ...]:
    """So many runs, each as wanted; none where one is not."""
    kept: list[CleanRun] = []
    for run in runs:
        if not wanted(run):
            return ()
        kept.append(run)
        if len(kept) == TIMES:
            return tuple(kept)
    return ()


def named(project: Project, run: CleanRun) -> bool:
    """Whether a failure is the one that a project is about."""
    return names(project.needle, run.output)


def names(needle: str, output: str) -> bool:
    """Whether an error names what it should, and no error names something else alone."""
    if not needle:
        return True
    errors = [line for line in output.splitlines() if re.search(r"error:|undefined symbol|cannot find|Error\b", line)]
    return any(word in line for word in needle.split("|") for line in errors)
