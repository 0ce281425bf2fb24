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

from migrate_lens.diagnosis.kernels.mark import Mark, lines_of, marked, marks
from migrate_lens.native.build import BuildRun, outside
from migrate_lens.native.compiler import CompilerCall
from migrate_lens.native.pairing import relative
from migrate_lens.native.process import kill_running, memory_limit, run_bounded
from migrate_lens.native.units import flags

HEADER = Path(__file__).with_name("kernel_trace.h")
UNITS = 4
ROUNDS = 4
CHEAP = ("-O0", "-g0", "-w", "-fdiagnostics-color=never", "-include", str(HEADER))


@dataclass(frozen=True, slots=True)
class Marked:
    """Both sides, built with marks.

    Attributes:
        torch: the folder that stands for the torch build's target.
        paddle: the same of the other side.
        marks: by number.
        units: what was marked.
    """

    torch: Path
    paddle: Path
    marks: Mapping[int, Mark]
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """One build, and where its marked units go."""

    build: BuildRun
    folder: Path
    calls: Mapping[str, CompilerCall]

    def source(self, unit: str) -> Path:
        """The marked copy of a unit."""
        return self.folder / "src" / unit

    def object(self, unit: str) -> Path:
        """What it compiles to."""
        return self.folder / "obj" / (re.sub(r"\W", "_", unit) + ".o")


def build_marked(torch: BuildRun, paddle: BuildRun, names: Iterable[str], work: Path, known: Callable[[str], str],
                 timeout: float) -> Marked | str:  # fmt: skip
    """Build the units that hold kernels again, with marks.

    Args:
        torch: the torch build; it must have passed.
        paddle: the Paddle build; it must have passed.
        names: of the operators and functions as Python calls them.
        work: a private folder.
        known: the full name of a plain one that torch declares.
        timeout: seconds.

    Returns:
        The marked builds, or why there are none.
    """
    if not (torch.passed and paddle.passed and torch.target and paddle.target and torch.source and paddle.source):
        return "one side was not built"
    end = time.monotonic() + timeout
    sides = [_side(build, work / name) for build, name in ((torch, "torch"), (paddle, "paddle"))]
    texts = _chosen(_common(sides), tuple(names))
    if not texts:
        return "no unit holds the kernel"
    found = [mark for unit, text in texts.items() for mark in marks(text, unit, known)]
    numbered = dict(enumerate(found, 1))
    if not numbered:
        return "the kernel holds no call that could be torch's"
    kept = _compiled(sides, texts, numbered, end)
    if isinstance(kept, str):
        return kept
    for side in sides:
        if reason := _linked(side, list(texts), end):
            return reason
    return Marked(sides[0].folder / "target", sides[1].folder / "target", kept, tuple(texts))


def _side(build: BuildRun, folder: Path) -> _Side:
    assert build.source is not None
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "obj").mkdir(parents=True)
    calls = {}
    for call in build.compiles:
        if call.compiles and call.returncode == 0 and not call.device and (path := relative(call, build.source)):
            calls[path] = call
    return _Side(build, folder, calls)


def _common(sides: Sequence[_Side]) -> dict[str, str]:
    """The units that both sides compiled from the same text."""
    texts = {}
    for unit in sides[0].calls.keys() & sides[1].calls.keys():
        ours, theirs = (_text(side.calls[unit].source) for side in sides)
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
    words = set(names)
    for text in texts.values():
        for name in names:
            for found in re.finditer(rf'"(?:\w+::)?{re.escape(name)}(?:[.(][^"]*)?"([^;]*)', text):
                words.update(re.findall(r"[A-Za-z_]\w+", re.sub(r'"[^"]*"', "", found[1]))[:8])
    if len(texts) <= UNITS:
        return dict(sorted(texts.items()))
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words - _COMMON))})\b")
    ranked = sorted((u for u in texts if pattern.search(texts[u])), key=lambda u: (-len(pattern.findall(texts[u])), u))
    return {unit: texts[unit] for unit in ranked[:UNITS]}


_COMMON = frozenset(
    ("torch", "at", "c10", "dispatch", "DispatchKey", "CPU", "CUDA", "TORCH_FN", "def", "impl", "const")
)


def _compiled(sides: Sequence[_Side], texts: Mapping[str, str], numbered: dict[int, Mark],
              end: float) -> dict[int, Mark] | str:  # fmt: skip
    """Compile until the marks that are left compile; the marks, or why it does not come to that.

    A mark that only one side has says nothing, and nothing is compiled again for its sake.
    """
    kept = dict(numbered)
    done: set[tuple[int, str]] = set()
    for _ in range(ROUNDS):
        jobs = [(n, unit) for unit in texts for n in range(len(sides)) if (n, unit) not in done]
        outputs = _all_compiled(partial(_compile_job, sides, texts, kept, end), jobs, len(sides))
        bad: set[int] = set()
        for (number, unit), output in zip(jobs, outputs, strict=True):
            if output is None:
                done.add((number, unit))
                continue
            fresh = _culprits(output, sides[number].source(unit).name, unit, texts[unit], kept)
            if not fresh:
                return f"{unit} does not compile with marks"
            bad |= fresh
        if not bad:
            return numbered
        kept = {number: mark for number, mark in kept.items() if number not in bad}
    return "the marked units do not compile"


def _all_compiled(
    compile_one: Callable[[tuple[int, str]], str | None], jobs: Sequence[tuple[int, str]], workers: int
) -> list[str | None]:
    with ThreadPoolExecutor(workers) as pool:
        try:
            return list(pool.map(compile_one, jobs))
        except BaseException:  # Ctrl-C above all: the pool waits for its compilers, so they have to end first
            pool.shutdown(wait=False, cancel_futures=True)
            kill_running()
            raise


def _compile_job(sides: Sequence[_Side], texts: Mapping[str, str], kept: Mapping[int, Mark], end: float,
                 job: tuple[int, str]) -> str | None:  # fmt: skip
    number, unit = job
    return _compile(sides[number], unit, texts[unit], kept, end)


def _compile(side: _Side, unit: str, text: str, kept: Mapping[int, Mark], end: float) -> str | None:
    """What the compiler said; None where it was content."""
    call = side.calls[unit]
    source = side.source(unit)
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(marked(text, [(n, m) for n, m in kept.items() if m.path == unit]), encoding="utf-8")
    assert call.source is not None
    near = ("-iquote", str(call.source.parent))
    argv = [*call.command, *flags(call), *near, *CHEAP, "-c", str(source), "-o", str(side.object(unit))]
    ran = run_bounded(
        argv, cwd=call.cwd, env=outside(os.environ), timeout=max(1.0, end - time.monotonic()), memory=memory_limit()
    )
    return None if ran.ok else ran.output or "no time left"


def _culprits(output: str, name: str, unit: str, text: str, kept: Mapping[int, Mark]) -> set[int]:
    """The marks on lines that the compiler complains of: first what is returned or entered, then the calls."""
    pattern = rf"{re.escape(name)}:(\d+):(?:\d+:)? +(?:error|fatal error|required from)"
    lines = {int(number) for number in re.findall(pattern, output)}
    there = {n: m for n, m in kept.items() if m.path == unit and lines & set(lines_of(text, m))}
    edges = {n for n, m in there.items() if m.kind in ("return", "entry")}
    return edges or set(there)


def _linked(side: _Side, units: Sequence[str], end: float) -> str:
    """Link what the marked objects go into, in a copy of the target; why not, or an empty text."""
    assert side.build.target is not None
    target = side.folder / "target"
    shutil.copytree(side.build.target, target, symlinks=True)
    objects = {side.calls[unit].output: side.object(unit) for unit in units}
    linked = 0
    for call in side.build.compiles:
        inputs = {Path(os.path.normpath(call.cwd / arg)): arg for arg in call.args if arg.endswith((".o", ".obj"))}
        mine = {arg: str(objects[path]) for path, arg in inputs.items() if path in objects}
        if not call.links or not mine or call.output is None or call.returncode != 0:
            continue
        place = _installed(call.output, target)
        if place is None:
            continue
        for path, arg in inputs.items():
            if arg not in mine and not path.exists() and (again := _again(side, path, end)) is not None:
                mine[arg] = str(again)
        args = [mine.get(arg, arg) for arg in call.args]
        args[args.index("-o") + 1] = str(place)
        ran = run_bounded([*call.command, *args], cwd=call.cwd, env=outside(os.environ),
                          timeout=max(1.0, end - time.monotonic()),
                          memory=memory_limit())  # fmt: skip
        if not ran.ok:
            return f"{place.name} does not link with marks"
        linked += 1
    return "" if linked else "no library that was linked of the marked units is installed"


def _again(side: _Side, output: Path, end: float) -> Path | None:
    """An object of the build that is not kept, compiled once more as it is; None if it cannot be."""
    call = next((c for c in side.calls.values() if c.output == output and c.source is not None), None)
    if call is None:
        return None
    made = side.object(str(output))
    argv = [*call.command, *flags(call), "-O0", "-g0", "-w", "-c", str(call.source), "-o", str(made)]
    ran = run_bounded(
        argv, cwd=call.cwd, env=outside(os.environ), timeout=max(1.0, end - time.monotonic()), memory=memory_limit()
    )
    return made if ran.ok else None


def _installed(output: Path, target: Path) -> Path | None:
    """Where the target has what a link made."""
    there = [path for path in sorted(target.rglob("*.so")) if path.is_file()]
    if output.is_file():
        size = output.stat().st_size
        same = [p for p in there if p.stat().st_size == size and p.read_bytes() == output.read_bytes()]
        if same:
            return same[0]
    same = [p for p in there if p.name == output.name] or [p for p in there if _stem(p) == _stem(output)]
    return same[0] if len(same) == 1 or (same and same[0].name == output.name) else None


def _stem(path: Path) -> str:
    return path.name.partition(".")[0].removesuffix("_pd_")
