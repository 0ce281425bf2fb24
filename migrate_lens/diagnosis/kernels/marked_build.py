"""Two builds and the names of kernels go in; the same libraries with their calls marked, to be run once more, come out.

Only the units that hold the kernels are compiled again, by the build's own commands without optimisation, and linked
in the place of their objects. A mark that does not compile is taken out.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from migrate_lens.diagnosis.kernels.call_marks import Mark, lines_of, marked, marks
from migrate_lens.model.target import TARGET
from migrate_lens.native.build import BuildRun, outside
from migrate_lens.native.compiler import CompilerCall
from migrate_lens.native.pairing import relative
from migrate_lens.native.process import Ran, kill_running, memory_limit, run_bounded
from migrate_lens.native.units import flags

HEADER = Path(__file__).with_name("kernel_trace.h")
UNITS = 4
ROUNDS = 4
_QUICK = ("-O0", "-g0", "-w")
_NAMESPACES = "".join(f', "{name}::"' for name in TARGET.namespaces)
MARKING = (f"-DMIGRATE_LENS_TARGET_NAMESPACES={_NAMESPACES}", "-include", str(HEADER))
_WORDS = 8  # of what is registered under a name
_COMMON = frozenset(
    ("torch", "at", "c10", "dispatch", "DispatchKey", "CPU", "CUDA", "TORCH_FN", "def", "impl", "const")
)


@dataclass(frozen=True, slots=True)
class MarkedBuilds:
    """Both sides, built with marks.

    Attributes:
        torch: the folder that stands for where the torch build was installed.
        target: the same of the other side.
        marks: by number.
        units: what was marked.
    """

    torch: Path
    target: Path
    marks: Mapping[int, Mark]
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """One build, and where its marked units go."""

    build: BuildRun
    folder: Path
    calls: Mapping[str, CompilerCall]

    @property
    def installed(self) -> Path:
        """The folder that stands for where the build was installed."""
        return self.folder / "target"

    def source(self, unit: str) -> Path:
        """The marked copy of a unit."""
        return self.folder / "src" / unit

    def object(self, unit: str) -> Path:
        """What it compiles to."""
        return self.folder / "obj" / (re.sub(r"\W", "_", unit) + ".o")


@dataclass(frozen=True, slots=True)
class Builds:
    """What was built, of which units that hold kernels are built again.

    Attributes:
        torch: the torch build; it must have passed.
        target: the target's build; it must have passed.
    """

    torch: BuildRun
    target: BuildRun

    @property
    def passed(self) -> bool:
        """Whether there are two sides to compare."""
        return self.torch.passed and self.target.passed

    @property
    def kept(self) -> bool:
        """Whether sources and installed files of both are still there."""
        return all(build.target and build.source for build in (self.torch, self.target))


def build_marked(
    builds: Builds, names: Iterable[str], work: Path, known: Callable[[str], str], timeout: float
) -> MarkedBuilds | str:
    """Build the units that hold kernels again, with marks.

    Args:
        builds: both sides.
        names: of the operators and functions as Python calls them.
        work: a private folder.
        known: the full name of a plain one that torch declares.
        timeout: seconds.

    Returns:
        The marked builds, or why there are none.
    """
    if not (builds.passed and builds.kept):
        return "one side was not built"
    end = time.monotonic() + timeout
    torch = _side(builds.torch, work / "torch")
    target = _side(builds.target, work / "target")
    sides = (torch, target)
    texts = _chosen(_common(torch, target), tuple(names))
    if not texts:
        return "no unit holds the kernel"
    all_marks = [mark for unit, text in texts.items() for mark in marks(text, unit, known)]
    if not all_marks:
        return "the kernel holds no call that could be torch's"
    kept = _Compilation(sides, texts, end).until_it_compiles(dict(enumerate(all_marks, 1)))
    if isinstance(kept, str):
        return kept
    for side in sides:
        reason = _linked(side, list(texts), end)
        if reason:
            return reason
    return MarkedBuilds(torch.installed, target.installed, kept, tuple(texts))


def _side(build: BuildRun, folder: Path) -> _Side:
    assert build.source is not None
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "obj").mkdir(parents=True)
    calls = {}
    for call in build.compiles:
        path = relative(call, build.source)
        if path and call.compiles and call.returncode == 0 and not call.device:
            calls[path] = call
    return _Side(build, folder, calls)


def _common(torch: _Side, target: _Side) -> dict[str, str]:
    """The units that both sides compiled from the same text."""
    texts = {}
    for unit in torch.calls.keys() & target.calls.keys():
        ours, theirs = _text(torch.calls[unit].source), _text(target.calls[unit].source)
        if ours and ours == theirs:
            texts[unit] = ours
    return texts


def _text(path: Path | None) -> str:
    try:
        return path.read_text(encoding="utf-8") if path is not None else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _chosen(texts: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The units that name a kernel, or a function that is registered under its name."""
    if len(texts) <= UNITS:
        return dict(sorted(texts.items()))
    words = set(names)
    for text in texts.values():
        for name in names:
            words |= _registered(text, name)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words - _COMMON))})\b")
    times = {unit: len(pattern.findall(text)) for unit, text in texts.items()}
    ranked = sorted((unit for unit in texts if times[unit]), key=lambda unit: (-times[unit], unit))
    return {unit: texts[unit] for unit in ranked[:UNITS]}


def _registered(text: str, name: str) -> set[str]:
    """The first words of what a unit registers under a name."""
    words: set[str] = set()
    for registration in re.finditer(rf'"(?:\w+::)?{re.escape(name)}(?:[.(][^"]*)?"([^;]*)', text):
        plain = re.sub(r'"[^"]*"', "", registration[1])
        words.update(re.findall(r"[A-Za-z_]\w+", plain)[:_WORDS])
    return words


class _Job(NamedTuple):
    """One unit of one side, to be compiled."""

    side: int
    unit: str


@dataclass(frozen=True, slots=True)
class _Compilation:
    """Compiles marked units on both sides until a time on the clock of ``time.monotonic``."""

    sides: Sequence[_Side]
    texts: Mapping[str, str]
    end: float

    def until_it_compiles(self, numbered: dict[int, Mark]) -> dict[int, Mark] | str:
        """Compile until the marks that are left compile; all marks, or why it does not come to that.

        A mark that only one side has says nothing, and nothing is compiled again for its sake.
        """
        kept = dict(numbered)
        compiled: set[_Job] = set()
        for _ in range(ROUNDS):
            jobs = [_Job(side, unit) for unit in self.texts for side in range(len(self.sides))]
            jobs = [job for job in jobs if job not in compiled]
            bad: set[int] = set()
            for job, output in zip(jobs, self._all(jobs, kept), strict=True):
                if output is None:
                    compiled.add(job)
                    continue
                name = self.sides[job.side].source(job.unit).name
                complained_of = _culprits(output, name, self.texts[job.unit], _in_unit(kept, job.unit))
                if not complained_of:
                    return f"{job.unit} does not compile with marks"
                bad |= complained_of
            if not bad:
                return numbered
            kept = {number: mark for number, mark in kept.items() if number not in bad}
        return "the marked units do not compile"

    def _all(self, jobs: Sequence[_Job], kept: Mapping[int, Mark]) -> list[str | None]:
        """What the compiler said of each job; None where it was content."""
        with ThreadPoolExecutor(len(self.sides)) as pool:
            try:
                return list(pool.map(partial(self._one, kept), jobs))
            except BaseException:  # Ctrl-C above all: the pool waits for its compilers, so they have to end first
                pool.shutdown(wait=False, cancel_futures=True)
                kill_running()
                raise

    def _one(self, kept: Mapping[int, Mark], job: _Job) -> str | None:
        side, unit = self.sides[job.side], job.unit
        call = side.calls[unit]
        assert call.source is not None
        source = side.source(unit)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(marked(self.texts[unit], _in_unit(kept, unit).items()), encoding="utf-8")
        near = ("-iquote", str(call.source.parent))
        options = (*near, *_QUICK, "-fdiagnostics-color=never", *MARKING)
        argv = [*call.command, *flags(call), *options, "-c", str(source), "-o", str(side.object(unit))]
        ran = _run(argv, call, self.end)
        return None if ran.ok else ran.output or "no time left"


def _run(argv: Sequence[str], call: CompilerCall, end: float) -> Ran:
    """Run a compiler where one of the build's ran, for the time that is left."""
    return run_bounded(
        argv,
        cwd=call.cwd,
        env=outside(os.environ),
        timeout=max(1.0, end - time.monotonic()),
        memory=memory_limit(),
    )


def _in_unit(kept: Mapping[int, Mark], unit: str) -> dict[int, Mark]:
    return {number: mark for number, mark in kept.items() if mark.path == unit}


def _culprits(output: str, name: str, text: str, there: Mapping[int, Mark]) -> set[int]:
    """The marks on lines that the compiler complains of: first what is returned or entered, then the calls."""
    pattern = rf"{re.escape(name)}:(\d+):(?:\d+:)? +(?:error|fatal error|required from)"
    lines = {int(number) for number in re.findall(pattern, output)}
    on_lines = {number: mark for number, mark in there.items() if lines & set(lines_of(text, mark))}
    edges = {number for number, mark in on_lines.items() if not mark.kind.is_call}
    return edges or set(on_lines)


def _linked(side: _Side, units: Sequence[str], end: float) -> str:
    """Link what the marked objects go into, in a copy of what is installed; why not, or an empty text."""
    assert side.build.target is not None
    shutil.copytree(side.build.target, side.installed, symlinks=True)
    objects = {side.calls[unit].output: side.object(unit) for unit in units}
    linked = 0
    for call in side.build.compiles:
        if not call.links or call.output is None or call.returncode != 0:
            continue
        inputs = {Path(os.path.normpath(call.cwd / arg)): arg for arg in call.args if arg.endswith((".o", ".obj"))}
        mine = {arg: str(objects[path]) for path, arg in inputs.items() if path in objects}
        place = _installed(call.output, side.installed) if mine else None
        if place is None:
            continue
        gone = {path: arg for path, arg in inputs.items() if arg not in mine and not path.exists()}
        replaced = mine | _made_again(side, gone, end)
        args = [replaced.get(arg, arg) for arg in call.args]
        args[args.index("-o") + 1] = str(place)
        if not _run([*call.command, *args], call, end).ok:
            return f"{place.name} does not link with marks"
        linked += 1
    return "" if linked else "no library that was linked of the marked units is installed"


def _made_again(side: _Side, gone: Mapping[Path, str], end: float) -> dict[str, str]:
    """Objects of the build that are not kept, compiled once more where they can be."""
    made = {arg: _again(side, path, end) for path, arg in gone.items()}
    return {arg: str(path) for arg, path in made.items() if path is not None}


def _again(side: _Side, output: Path, end: float) -> Path | None:
    """An object of the build that is not kept, compiled once more as it is; None if it cannot be."""
    call = next((c for c in side.calls.values() if c.output == output and c.source is not None), None)
    if call is None:
        return None
    made = side.object(str(output))
    argv = [*call.command, *flags(call), *_QUICK, "-c", str(call.source), "-o", str(made)]
    return made if _run(argv, call, end).ok else None


def _installed(output: Path, target: Path) -> Path | None:
    """Where the installed files have what a link made."""
    there = [path for path in sorted(target.rglob("*.so")) if path.is_file()]
    if output.is_file():
        copies = [path for path in there if _same_file(path, output)]
        if copies:
            return copies[0]
    by_name = [path for path in there if path.name == output.name]
    if by_name:
        return by_name[0]
    by_stem = [path for path in there if _stem(path) == _stem(output)]
    return by_stem[0] if len(by_stem) == 1 else None


def _same_file(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()


def _stem(path: Path) -> str:
    return path.name.partition(".")[0].removesuffix("_pd_")
