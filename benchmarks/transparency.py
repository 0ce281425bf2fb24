"""Whether observation changes anything: programs in; those that print something else when they are observed, out.

usage: python benchmarks/transparency.py FOLDER [NAME ...] [--cpython] [--diffs FOLDER]

Each program of FOLDER runs under torch three times: by itself in a fresh interpreter, in a worker as it stands, and in
a worker observed. With ``--cpython``, Python's own tests of the language run in the two latter ways too, from the
``test`` package of this interpreter.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting
from migrate_lens.runs.worker import Worker

_SECONDS = 300.0
LANGUAGE = (
    "test_grammar", "test_generators", "test_scope", "test_class", "test_decorators", "test_descr", "test_with",
    "test_coroutines", "test_except_star", "test_exceptions", "test_patma", "test_inspect", "test_traceback",
    "test_warnings", "test_weakref",
)  # fmt: skip
# Runs one module of Python's own tests; prints how many there are, and which do not pass.
TESTS = """
import io, unittest
suite = unittest.defaultTestLoader.loadTestsFromName("test.{module}")
result = unittest.TextTestRunner(io.StringIO()).run(suite)
bad = sorted(test.id() for test, _ in [*result.failures, *result.errors])
print(result.testsRun, bad)
result = None
"""


@dataclass(frozen=True)
class Ways:
    """What a program printed by itself (None where it was not tried), in a worker, and observed in a worker."""

    plain: str | None
    worker: str
    observed: str

    def verdict(self) -> str:
        """What changed it, in a word; empty where nothing did."""
        by_worker = "the worker" if self.plain is not None and self.plain != self.worker else ""
        return " and ".join(filter(None, [by_worker, "observation" if self.worker != self.observed else ""]))

    def diff(self) -> str:
        """What is printed otherwise."""
        pairs = [(self.plain if self.plain is not None else self.worker, self.worker), (self.worker, self.observed)]
        return "".join("".join(difflib.unified_diff(a.splitlines(True), b.splitlines(True))) for a, b in pairs)


def by_itself(program: Path) -> str:
    """What a program prints in an interpreter of its own, from the folder that it is in."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True, text=True, check=False, timeout=_SECONDS, env=environ, cwd=program.parent,
    )  # fmt: skip
    return done.stdout


def in_worker(bench: Bench, program: Path, own: tuple[str, ...], *, observe: bool) -> str:
    """What a program prints in a worker."""
    library = discover(program)
    setting = Setting(library, dict.fromkeys(Runtime, ()), own, _SECONDS)
    run = bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0], observe=observe))
    return run.file.with_suffix(".out").read_text(errors="replace")


def outcomes(bench: Bench, folder: Path, names: list[str], modules: tuple[str, ...]) -> Iterator[tuple[str, Ways]]:
    """Each program, and each module of Python's own tests, in its ways."""
    for program in sorted(folder.glob("*.py")):
        if not names or program.stem in names:
            worker, observed = (in_worker(bench, program, (), observe=observe) for observe in (False, True))
            yield program.stem, Ways(by_itself(program), worker, observed)
    for module in modules:
        program = folder / f"cpython_{module}.py"
        program.write_text(TESTS.format(module=module))
        worker, observed = (in_worker(bench, program, ("test",), observe=observe) for observe in (False, True))
        program.unlink()
        yield module, Ways(None, worker, observed)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cpython", action="store_true")
    parser.add_argument("--diffs", type=Path)
    options = parser.parse_args()
    changed: list[str] = []
    with tempfile.TemporaryDirectory() as name, Worker(Path(sys.executable), "torch") as torch:
        runs, programs = Path(name) / "runs", Path(name) / "programs"
        runs.mkdir()
        shutil.copytree(options.folder, programs)
        bench = Bench(torch, None, runs)
        seen = list(outcomes(bench, programs, options.names, LANGUAGE if options.cpython else ()))
        for subject, ways in seen:
            if not ways.verdict():
                continue
            changed.append(subject)
            print(f"{subject}: changed by {ways.verdict()}", flush=True)
            if options.diffs:
                options.diffs.mkdir(parents=True, exist_ok=True)
                (options.diffs / f"{subject}.diff").write_text(ways.diff())
    print(f"{len(seen) - len(changed)} of {len(seen)} print the same")
    return bool(changed)


if __name__ == "__main__":
    raise SystemExit(main())
