"""Measures what native code costs: folders of libraries in; ratios within one run out.

python benchmarks/native.py LIBRARY...

For each library: a diagnosis with an empty cache and the same one again; then, on the builds that these left, one plain
``-fsyntax-only`` of every unit on both sides, one after the other, and the compile-time part of the diagnosis, which is
all that it asks of compilers beside the two builds that the program needs to run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Library, Runtime
from migrate_lens.native import BuildRun, Shelf, build_library, compare_builds
from migrate_lens.native.pairing import paired_units
from migrate_lens.native.units import flags

PYTHON = Path(sys.executable)
LIMIT = 3000.0


@dataclass(frozen=True)
class Cost:
    """Wall and CPU seconds, children included."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} s wall, {self.cpu:.1f} s CPU"

    def over(self, other: Cost) -> str:
        return f"{self.wall / other.wall:.2f}x wall, {self.cpu / other.cpu:.2f}x CPU"


def cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def cost(work: Callable[[], object]) -> Cost:
    wall, used = time.perf_counter(), cpu()
    work()
    return Cost(time.perf_counter() - wall, cpu() - used)


def diagnosis(library: Path, folder: Path) -> tuple[Cost, dict[str, float]]:
    """One diagnosis from the command line; its cost, and the seconds of its two builds."""
    report = folder / "report.json"
    lens = str(PYTHON.with_name("migrate-lens"))
    options = ["--format", "json", "--output", str(report), "--state", str(folder / "state"), "--timeout", str(LIMIT)]
    spent = cost(lambda: subprocess.run([lens, "diagnose", str(library), *options], check=False, capture_output=True))
    stages = json.loads(report.read_text())["stages"]
    return spent, {stage["runtime"]: stage["seconds"] for stage in stages if stage["stage"] == "build"}


@contextmanager
def builds(library: Library, shelf: Shelf) -> Iterator[tuple[BuildRun, BuildRun, Path]]:
    """Both builds, as the diagnosis left them on the shelf."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        torch = build_library(library, Runtime.TORCH, PYTHON, work, timeout=LIMIT, shelf=shelf)
        paddle = build_library(library, Runtime.TARGET, PYTHON, work, timeout=LIMIT, shelf=shelf)
        yield torch, paddle, work


def plain_checks(torch: BuildRun, paddle: BuildRun, work: Path) -> None:
    """Every unit through ``g++ -fsyntax-only`` with the flags of both builds, one after the other."""
    calls = [call for call in torch.compiles if call.compiles and call.source]
    lines = [([*call.command, *flags(call), "-fsyntax-only", str(call.source)], call.cwd) for call in calls]
    units = paired_units(torch, paddle, PYTHON, work)
    lines += [([*unit.command, "-fsyntax-only", str(unit.source)], unit.cwd) for unit in units]
    for line, cwd in lines:
        subprocess.run(line, cwd=cwd, check=False, capture_output=True)


def measure(path: Path) -> None:
    library = discover(path)
    with tempfile.TemporaryDirectory() as name:
        os.environ["MIGRATE_LENS_CACHE"] = str(Path(name) / "cache")
        first, built = diagnosis(path, Path(name))
        second, _ = diagnosis(path, Path(name))
        with builds(library, Shelf(Path(name) / "cache" / "builds")) as (torch, paddle, work):
            units = sum(call.compiles for call in torch.compiles)
            plain = cost(lambda: plain_checks(torch, paddle, work))
            ours = cost(lambda: compare_builds(torch, paddle, PYTHON, work, LIMIT))
    print(f"{library.name}: {units} units")
    print(f"  one build                   torch {built['torch']:.1f} s, paddle {built['paddle']:.1f} s wall")
    print(f"  plain checks on both sides  {plain}")
    print(
        f"  compile-time part           {ours}: {ours.over(plain)}, {ours.wall / built['torch']:.2f}x of torch's build"
    )
    print(f"  first diagnosis             {first}")
    print(f"  second diagnosis            {second}: {second.over(first)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path, nargs="+")
    for path in parser.parse_args().library:
        measure(path.resolve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
