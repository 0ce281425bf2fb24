"""How much of a library's public API one diagnosis reaches, and what it costs: a table of libraries out.

usage: python benchmarks/libraries.py CACHE WORK [--programs FOLDER] [--only NAME] [--limit SECONDS] [--json FILE]

For each library of ``libraries.toml`` its program is run plainly under torch, then diagnosed through the command line.
Calls reached are torch calls of the program that Paddle's run came to; CPU is that of the diagnosis, and of observing
the program under torch (``trace``), each over the plain run's. WORK keeps each report. Exit code 1 if one gave none.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pypi import Distribution, needed, unpacked

HERE = Path(__file__).resolve().parent
PRODUCT = [sys.executable, "-c", "import sys; from migrate_lens.cli import main; sys.exit(main())"]


@dataclass(frozen=True, slots=True)
class Library:
    """One library of libraries.toml; its program is a file of the folder that is given, or a text."""

    distribution: Distribution
    program: str = ""
    text: str = ""

    def source(self, programs: Path) -> str:
        """The program."""
        return self.text or (programs / self.program).read_text()


@dataclass(frozen=True, slots=True)
class Measured:
    """One diagnosis.

    Attributes:
        calls: of the program under torch.
        reached: of them under Paddle.
        gaps: ids of the gaps.
        note: why no more was reached; empty where the run came to its end.
        code: exit code of the diagnosis.
        traced: CPU time of a traced run over that of a plain one.
        diagnosed: CPU time of the whole diagnosis over that of a plain run.
    """

    name: str
    calls: int
    reached: int
    gaps: tuple[str, ...]
    note: str
    code: int
    traced: float
    diagnosed: float

    @property
    def row(self) -> str:
        """A line of the table."""
        share = 100 * self.reached / max(self.calls, 1)
        figures = f"{self.reached:7,} of {self.calls:7,} {share:6.1f} %  {len(self.gaps):4} gaps"
        return f"{self.name:22} {figures}  traced {self.traced:5.1f}x  diagnosed {self.diagnosed:6.1f}x  {self.note}"


def libraries(text: str) -> list[Library]:
    """The libraries that a TOML text names."""
    rows = tomllib.loads(text)["library"]
    return [
        Library(
            Distribution(row["name"], row["version"], tuple(row.get("needs", ())), row.get("source", False)),
            row.get("program", ""),
            row.get("text", ""),
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended: its exit code, its output, and the CPU seconds of it and of what it waited for."""

    code: int
    output: str
    seconds: float


def ended(command: Sequence[str], paths: Sequence[Path], folder: Path, limit: float) -> Ended:
    """Run a command with a search path, in a folder; what it says on stderr is kept in a file beside."""
    path = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "stderr.txt").open("ab") as errors:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=limit,
            check=False,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ended(done.returncode, done.stdout.decode(errors="replace"), seconds)


def measured(library: Library, options: argparse.Namespace) -> Measured:
    """Diagnose one library, and what a plain run costs.

    Raises:
        SystemExit: the program fails under torch by itself.
    """
    name, folder = library.distribution.name, options.work / library.distribution.name
    folder.mkdir(parents=True, exist_ok=True)
    needs = needed(library.distribution, options.cache)
    upstream = unpacked(library.distribution, options.cache, folder / "lib")
    probe = folder / "probe.py"
    probe.write_text(library.source(options.programs))
    paths = [*needs] if library.distribution.source else [upstream, *needs]
    diagnosis = [*PRODUCT, "diagnose", str(upstream), "--probe", str(probe), "--state", str(folder / "state")]
    document = ended([*diagnosis, "--format", "json"], needs, folder, options.limit)
    (folder / "report.json").write_text(document.output)
    report: dict[str, Any] = json.loads(document.output or "{}")
    trace = next((trace for trace in report.get("traces", ()) if Path(trace["probe"]).name == probe.name), {})
    plain = traced = None
    if not library.distribution.source:
        plain = ended([sys.executable, str(probe)], paths, folder, options.limit)
        if plain.code:
            raise SystemExit(f"{name}: the program fails under torch; see {folder / 'stderr.txt'}")
        out = str(folder / "torch.trace")
        traced = ended([*PRODUCT, "trace", str(probe), "--output", out], paths, folder, options.limit)
    base = plain.seconds if plain is not None else float("nan")
    return Measured(
        name,
        trace.get("torch_calls", 0),
        trace.get("reached", 0),
        tuple(gap["id"] for gap in report.get("gaps", ())),
        trace.get("note", "no report"),
        document.code,
        (traced.seconds if traced is not None else float("nan")) / base,
        document.seconds / base,
    )


def all_measured(options: argparse.Namespace) -> Iterator[Measured]:
    """Each library, one after the other."""
    for library in libraries((HERE / "libraries.toml").read_text()):
        if options.only and options.only not in library.distribution.name:
            continue
        if library.program and options.programs is None:
            print(f"{library.distribution.name:22} not measured: --programs FOLDER has its program", flush=True)
            continue
        figures = measured(library, options)
        print(figures.row, flush=True)
        yield figures


def main() -> int:
    """Measure, print the table, and say by the exit code whether every library was diagnosed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--programs", type=Path, help="folder of the programs that are named by a file")
    parser.add_argument("--only", default="", help="libraries whose name has this in it")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for one command")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    for folder in (options.cache, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    options.cache, options.work = options.cache.resolve(), options.work.resolve()
    figures = list(all_measured(options))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in figures], indent=1))
    return int(any(one.note == "no report" for one in figures))


if __name__ == "__main__":
    sys.exit(main())
