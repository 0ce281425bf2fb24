"""Libraries' own test suites under diagnosis: what is explained, proven and named right, and its cost; a table out.

usage: python benchmarks/suites.py CACHE WORK [--only NAME] [--limit SECONDS] [--no-proof] [--json FILE]

For each library of ``suites.toml`` it is diagnosed with its own tests through the command line; then ``issue --emit
--all`` makes a reproduction of each gap and runs it on both sides. A gap is proven if its reproduction was, or that of
the gap whose issue covers it; it is named right if torch has that name (asked in a plain interpreter), or if it is one
of C++. Time is the diagnosis' wall time over that of the suite under torch and under Paddle as they are, which the
diagnosis itself measures with nobody looking; memory is the largest resident set of the driver's own process; disk is
the most that lay in the temporary folder. Exit code 1 if a library gave no table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pypi import Distribution, needed, unpacked

HERE = Path(__file__).resolve().parent
# The product, which says at its end what its own process needed.
_MAIN = """
import resource, sys
from migrate_lens.cli import main
code = main()
print("driver kB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""
PRODUCT = [sys.executable, "-c", _MAIN]
_ASK = """
import importlib, json, sys
import torch

def there(name):
    value, parts = torch, name.split(".")[1:]
    for index, part in enumerate(parts, 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(["torch", *parts][:index]))
            except ImportError:
                return part in getattr(value, "__annotations__", {}) or part.startswith("__")
    return True

print(json.dumps([name for name in json.load(sys.stdin) if not (name.startswith("torch") and there(name))]))
"""


@dataclass(frozen=True, slots=True)
class Suite:
    """A library of suites.toml: its source, which of its tests are run (all for none), and pytest's ``-k``."""

    distribution: Distribution
    paths: tuple[str, ...] = ()
    select: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """One suite.

    Attributes:
        tests: that pass under torch.
        as_it_is: of them under Paddle as they are.
        healed: of them in the run that goes on past each gap.
        unexplained: of them, which no gap explains.
        gaps: ids.
        proven: ids of those whose reproduction ran on both sides.
        misnamed: names that torch does not have.
        seconds: wall time of the diagnosis.
        ratio: that over the suite's under torch and under Paddle as they are.
        driver: MB of the driver's largest resident set.
        disk: MB of temporary files at most.
        note: why there is no report; empty where there is.
    """

    name: str
    tests: int = 0
    as_it_is: int = 0
    healed: int = 0
    unexplained: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    misnamed: tuple[str, ...] = ()
    seconds: float = 0.0
    ratio: float = 0.0
    driver: int = 0
    disk: int = 0
    note: str = ""

    @property
    def row(self) -> str:
        """A line of the table."""
        if self.note:
            return f"{self.name:18} {self.note}"
        counts = f"{self.tests:5} tests, {self.as_it_is:4} as they are, {self.healed:5} healed"
        counts += f", {len(self.unexplained):3} unexplained"
        named = f"{len(self.gaps):3} gaps, {len(self.proven):3} proven, {len(self.misnamed):2} misnamed"
        cost = f"{self.seconds:6.0f} s {self.ratio:6.1f}x, driver {self.driver:5} MB, disk {self.disk:5} MB"
        return f"{self.name:18} {counts};  {named};  {cost}"


def suites(text: str) -> list[Suite]:
    """The suites that a TOML text names."""
    rows = tomllib.loads(text)["suite"]
    return [
        Suite(
            Distribution(row["name"], row["version"], tuple(row.get("needs", ())), source=True),
            tuple(row.get("paths", ())),
            row.get("select", ""),
        )
        for row in rows
    ]


class Folder:
    """Watches how much lies in a folder while something runs; a context manager, ``most`` in bytes."""

    def __init__(self, path: Path) -> None:
        self.most = 0
        self._path = path
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Folder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self.most = max(self.most, sum(_size(path) for path in self._path.rglob("*")))


def _size(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0  # gone since it was listed


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended: its exit code, output, what it said last, wall seconds."""

    code: int
    output: str
    errors: str
    seconds: float


def ended(command: Sequence[str], folder: Path, paths: Sequence[Path], limit: float) -> Ended:
    """Run a command in a folder with a search path and a temporary folder of its own."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    search = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": search, "TMPDIR": str(temporary)}
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=limit,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(124, "", "did not end", time.monotonic() - began)
    seconds = time.monotonic() - began
    return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), seconds)


def measured(suite: Suite, options: argparse.Namespace) -> Measured:
    """Diagnose one library with its tests."""
    name, folder = suite.distribution.name, options.work / suite.distribution.name
    folder.mkdir(parents=True, exist_ok=True)
    needs = needed(suite.distribution, options.cache)
    source = unpacked(suite.distribution, options.cache, folder / "lib")
    probes = [part for path in suite.paths for file in _files(source / path) for part in ("--probe", str(file))]
    chosen = [*(probes or ["--tests"]), *(["--test-select", suite.select] if suite.select else [])]
    state = folder / "state"
    with Folder(folder / "tmp") as disk:
        command = [*PRODUCT, "diagnose", str(source), *chosen, "--state", str(state), "--format", "json"]
        done = ended(command, folder, needs, options.limit)
    (folder / "report.json").write_text(done.output)
    (folder / "stderr.txt").write_text(done.errors)
    if not done.output or "tests" not in (report := json.loads(done.output)):
        return Measured(name, note=f"no table of tests: exit code {done.code}, see {folder / 'stderr.txt'}")
    proven: tuple[str, ...] = ()
    if not options.no_proof:
        emit = [*PRODUCT, "issue", "--emit", "--all", "--state", str(state), "--output", str(folder / "issues")]
        issued = ended([*emit, "--format", "json"], folder, needs, options.limit)
        (folder / "issues.json").write_text(issued.output)
        proven = tuple(_proven(json.loads(issued.output or '{"issues": []}')))
    return _figures(name, report, proven, done, disk.most >> 20)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted([*path.rglob("test_*.py"), *path.rglob("*_test.py")])


def _proven(issued: dict[str, Any]) -> Iterator[str]:
    """Gaps whose reproduction was run on both sides, their own or that of the gap whose issue covers theirs."""
    for one in issued["issues"]:
        if one["outcome"] in ("written", "already emitted", "covered"):
            yield one["gap"]


def _figures(name: str, report: dict[str, Any], proven: tuple[str, ...], done: Ended, disk: int) -> Measured:
    table, gaps = report["tests"], report["gaps"]
    apis = sorted({gap["api"] for gap in gaps if gap["layer"] not in ("cpp_api", "build")})
    asked = subprocess.run(
        [sys.executable, "-c", _ASK], input=json.dumps(apis), capture_output=True, text=True, check=True
    )
    plain = sum(stage["seconds"] for stage in report["stages"] if stage["stage"] == "test")
    driver = [line.split()[-1] for line in done.errors.splitlines() if line.startswith("driver kB")]
    return Measured(
        name,
        table["pass"]["torch"],
        table["pass"]["paddle"],
        table["pass"]["healed"],
        tuple(table["unexplained"]),
        tuple(gap["id"] for gap in gaps),
        proven,
        tuple(json.loads(asked.stdout)),
        done.seconds,
        done.seconds / max(plain, 1e-9),
        int(driver[0]) >> 10 if driver else 0,
        disk,
    )


def main() -> int:
    """Measure, print the table, and say by the exit code whether every library was diagnosed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", default="", help="suites whose name has this in it")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for one command")
    parser.add_argument("--no-proof", action="store_true", help="make no reproductions")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    for folder in (options.cache, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    options.cache, options.work = options.cache.resolve(), options.work.resolve()
    figures = []
    for suite in suites((HERE / "suites.toml").read_text()):
        if options.only in suite.distribution.name:
            figures.append(measured(suite, options))
            print(figures[-1].row, flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in figures], indent=1))
    return int(any(one.note for one in figures))


if __name__ == "__main__":
    sys.exit(main())
