"""A library that compiles when it runs goes in; the variables for its runs, and later what its compilers met, come out.

``load`` and ``load_inline`` call the compilers on PATH. There a shim records them, as it does in a build, and when the
runs are over the records of both sides are compared as those of two builds are. Sources that a call was given as text
are looked up in the Python files again, so that a site is a line that a person wrote.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from migrate_lens.model.report import Finding, Library, Outcome, Runtime, Site, Stage, StageResult
from migrate_lens.native import reuse, standins
from migrate_lens.native.build import BuildRun
from migrate_lens.native.comparing import NativeReport, compare_builds
from migrate_lens.native.compiler import CompilerCall, Limits, ObjectStore, ShimOptions, install_shims, read_calls
from migrate_lens.native.process import memory_limit
from migrate_lens.native.shelf import Shelf
from migrate_lens.native.workplace import describe

LOADERS = frozenset(f"torch.utils.cpp_extension.{name}" for name in ("load", "load_inline"))
GENERATED = "generated"
SIDES = (Runtime.TORCH, Runtime.TARGET)
NEAR = 3
_AROUND = re.compile(
    r"#include <torch/(?:extension|types)\.h>$|PYBIND11_MODULE\(TORCH_EXTENSION_NAME, m\) \{$"
    r"|m\.def\(.*torch::wrap_pybind_function\("
)


@dataclass(frozen=True)
class JustInTime:
    """The compilers of a library's runs, on both sides.

    Attributes:
        library: what is diagnosed; its tree is only read.
        pythons: the interpreter of each side.
        work: a private folder.
        timeout: seconds that one compiler call, and checking units, may take.
        shelf: where objects are kept.
    """

    library: Library
    pythons: Mapping[Runtime, Path]
    work: Path
    timeout: float
    shelf: Shelf

    @cached_property
    def environ(self) -> dict[Runtime, dict[str, str]]:
        """The variables of a run, by runtime: compilers that are recorded, and a private place for what they make."""
        sides = {side: self._environ(side) for side in SIDES}
        return {**sides, Runtime.TARGET_GLOBAL: sides[Runtime.TARGET]}

    def _environ(self, side: Runtime) -> dict[str, str]:
        place = self.work / f"jit-{side}"
        made = self.made(side)
        made.mkdir(parents=True)
        python = self.pythons[side]
        about = describe(python, place)
        basis = reuse.jit_basis(self.library, side, python, about)
        objects = ObjectStore(self.shelf.folder, self.shelf.fresh, self.work, basis) if basis else None
        options = ShimOptions(objects=objects, limits=Limits(self.timeout, memory_limit()))
        env = dict(os.environ, PATH=os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]))
        shims = install_shims(place / "bin", place / "calls", env, about.known, options)
        return shims | {"TORCH_EXTENSIONS_DIR": str(made), "PADDLE_EXTENSION_DIR": str(made), "MAX_JOBS": "2"}

    def made(self, side: Runtime) -> Path:
        """Where the extensions of one side are made."""
        return self.work / f"jit-{side}" / "made"

    def report(self) -> NativeReport:
        """What the compilers met under Paddle and not under torch; to be asked when all runs are over."""
        calls = {side: read_calls(self.work / f"jit-{side}" / "calls") for side in SIDES}
        if not any(call.compiles and call.returncode == 0 for call in calls[Runtime.TORCH]):
            return NativeReport(())
        root = self.work / "jit-src"
        self._copy(root, calls[Runtime.TORCH])
        moves = {str(self.made(side)): str(root / GENERATED) for side in SIDES} | {str(self.library.root): str(root)}
        torch, paddle = (_as_build(side, [_moved(call, moves) for call in calls[side]], root) for side in SIDES)
        python = self.pythons[Runtime.TARGET]
        report = compare_builds(torch, paddle, python, self.work / "jit-checks", self.timeout)
        own = [finding for finding in report.findings if not _of_the_loader(finding, root)]
        return replace(report, findings=tuple(self._in_python(finding, root) for finding in own))

    def _copy(self, root: Path, calls: Sequence[CompilerCall]) -> None:
        """The native files of the library, and those that were made from text."""
        for path in self._native(calls):
            _copy_file(path, root / path.relative_to(self.library.root))
        for side in SIDES:
            made = self.made(side)
            for path in standins.native_files(made):
                _copy_file(path, root / GENERATED / path.relative_to(made))

    def _native(self, calls: Sequence[CompilerCall]) -> list[Path]:
        """All of a library's; of a lone script's, whose folder may hold anything, those beside what it compiled."""
        root = self.library.root
        if self.library.script is None:
            return standins.native_files(root)
        folders = {call.source.parent for call in calls if call.source and call.source.is_relative_to(root)}
        return [path for folder in sorted(folders) for path in folder.iterdir() if path.suffix in standins.NATIVE]

    def _in_python(self, finding: Finding, root: Path) -> Finding:
        """A finding whose sites in generated files are those of the text that they were made from."""
        sites: list[Site] = []
        evidence = list(finding.evidence)
        for site in finding.sites:
            if site.path.split("/")[0] != GENERATED:
                sites.append(site)
            elif (place := _origin(root / site.path, site.line, self._python_files())) is not None:
                path, line = place
                mine = Site(str(path.relative_to(self.library.root)), line)
                sites.append(mine)
                generated, own = f"{site.path}:{site.line}:", f"{mine.path}:{mine.line}:"
                evidence = [text.replace(generated, own) for text in evidence]
        return replace(finding, sites=tuple(dict.fromkeys(sites)), evidence=tuple(evidence))

    def _python_files(self) -> Iterator[Path]:
        if self.library.script is not None:
            yield self.library.script
        else:
            yield from sorted(self.library.root.rglob("*.py"))


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _of_the_loader(finding: Finding, root: Path) -> bool:
    """Whether all of its sites are lines that ``load_inline`` puts around what it is given."""
    return bool(finding.sites) and all(
        site.path.startswith(f"{GENERATED}/") and _AROUND.match(_at(_lines(root / site.path), site.line - 1) or "")
        for site in finding.sites
    )


def _as_build(side: Runtime, calls: Sequence[CompilerCall], root: Path) -> BuildRun:
    compiled = any(call.compiles for call in calls) and all(call.returncode == 0 for call in calls)
    outcome = Outcome.PASSED if compiled or side is Runtime.TORCH else Outcome.FAILED
    return BuildRun(StageResult(side, Stage.RUN, "jit", outcome, 0.0), None, root, compiles=tuple(calls))


def _moved(call: CompilerCall, moves: Mapping[str, str]) -> CompilerCall:
    """A call whose paths lie in the copy, as far as they have a copy."""

    def moved(text: str) -> str:
        for old, new in moves.items():
            text = re.sub(re.escape(old) + r"(?P<rest>(?:/[^\s:'\",;]*)?)(?=$|[\s:'\",;])", _copied(new), text)
        return text

    return replace(
        call,
        args=tuple(moved(arg) for arg in call.args),
        cwd=Path(moved(str(call.cwd))),
        stderr=moved(call.stderr),
        source=Path(moved(str(call.source))) if call.source else None,
        output=Path(moved(str(call.output))) if call.output else None,
    )


def _copied(new: str) -> Callable[[re.Match[str]], str]:
    return lambda match: new + match["rest"] if os.path.exists(new + match["rest"]) else match[0]


def _origin(generated: Path, number: int, files: Iterator[Path]) -> tuple[Path, int] | None:
    """The line of a Python file that a generated line was made from: the one with the most equal neighbours."""
    made = _lines(generated)
    if not 0 < number <= len(made) or not made[number - 1]:
        return None
    best: tuple[Path, int] | None = None
    most_equal = -1
    for path in files:
        lines = _lines(path)
        for index, line in enumerate(lines):
            if made[number - 1] not in line:
                continue
            equal = sum(_at(lines, index + step) == _at(made, number - 1 + step) for step in range(-NEAR, NEAR + 1))
            if equal > most_equal:
                best, most_equal = (path, index + 1), equal
    return best


def _at(lines: Sequence[str], index: int) -> str | None:
    return lines[index] if 0 <= index < len(lines) else None


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return []
