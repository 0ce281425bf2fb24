"""Cost of traces as ratios within one run: models in, traced against plain time and bytes a call out.

usage: python benchmarks/trace.py MODELS.jsonl [--rounds N] [--torchlens-python P]

Each model of MODELS.jsonl, and the three larger ones of benchmarks/cost.py, runs plain and traced in turns, in forks
of warm workers: the whole program (import, making the model, one pass; wall seconds), and its forward passes alone,
repeated (CPU seconds). With an interpreter that has TorchLens (benchmarks/requirements-torchlens.txt), the same forward
passes are traced with it too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cost import LARGER, PROGRAM

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Level, Probe, ProbeKind, Runtime
from migrate_lens.runs.bench import Bench, Run, RunRequest, Setting, Steering
from migrate_lens.runs.worker import Worker

TORCHLENS = """
import sys, time
sys.path.insert(0, {folder!r})
import torch, torchlens
from {module} import make
model, inputs = make()
inputs = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
def seconds(run, times):
    run()
    start = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - start) / times
plain = seconds(lambda: model(*inputs), {repeats})
logged = seconds(lambda: torchlens.trace(model, inputs), 3)
print(logged / plain)
"""


@dataclass(frozen=True)
class Subject:
    """A model's module, the folder that it is in, and how often its pass is repeated."""

    name: str
    module: str
    folder: Path
    repeats: int


def subjects(models: Path, folder: Path) -> Iterator[Subject]:
    for row in map(json.loads, models.read_text().splitlines()):
        file = models.parent / row["file"]
        yield Subject(row["id"], file.stem, file.parent.resolve(), 30)
    for name, body in LARGER.items():
        (folder / f"large_{name}.py").write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(body))
        yield Subject(f"{name} (larger)", f"large_{name}", folder, 5)


def run(bench: Bench, subject: Subject, folder: Path, runtime: Runtime, level: Level | None) -> Run:
    script = folder / f"time_{subject.module}.py"
    script.write_text(textwrap.dedent(PROGRAM).format(module=subject.module, repeats=subject.repeats))
    setting = Setting(discover(script), dict.fromkeys(Runtime, (subject.folder,)), (subject.module,), 300.0)
    probe = Probe(ProbeKind.SCRIPT, script.name, script)
    steering = Steering(level) if level else None
    return bench.run(RunRequest(setting, runtime, probe, observe=level is not None, steering=steering))


def whole_run(bench: Bench, subject: Subject, runtime: Runtime, level: Level | None) -> Run:
    """The model's module as a probe: imported, made, run once."""
    library = discover(subject.folder / f"{subject.module}.py", [f"{subject.module}:make"])
    setting = Setting(library, dict.fromkeys(Runtime, (subject.folder,)), (subject.module,), 300.0)
    steering = Steering(level) if level else None
    return bench.run(RunRequest(setting, runtime, library.probes[0], observe=level is not None, steering=steering))


def row(bench: Bench, subject: Subject, folder: Path, runtime: Runtime, rounds: int) -> str:
    """Ratios of the whole run and of the forward passes, for each level; bytes a call of a structure trace."""
    whole: dict[Level | None, list[float]] = {level: [] for level in (None, *Level)}
    forward: dict[Level | None, list[float]] = {level: [] for level in (None, *Level)}
    size = 0.0
    for _ in range(rounds):
        for level in whole:
            done = run(bench, subject, folder, runtime, level)
            if not done.trace.ending.has_value:
                return "it stops at a gap"
            once = whole_run(bench, subject, runtime, level)
            whole[level].append(once.fate.seconds)
            forward[level].append(float(done.trace.ending.value))
            if level is Level.STRUCTURE:
                size = done.file.stat().st_size / len(done.trace.events)
            for file in (done.file, once.file):
                file.unlink()  # what is on its way to the disk is not the next run's cost
    cells = [f"{ratio(whole, level)}, {ratio(forward, level)}" for level in Level]
    return " | ".join([*cells, f"{size:.0f} B"])


def ratio(times: dict[Level | None, list[float]], level: Level) -> str:
    return f"{statistics.median(times[level]) / statistics.median(times[None]):.2f}x"


def torchlens(python: str, subject: Subject) -> str:
    source = TORCHLENS.format(folder=str(subject.folder), module=subject.module, repeats=subject.repeats)
    done = subprocess.run([python, "-c", source], capture_output=True, text=True, check=False, timeout=600)
    return f"{float(done.stdout):.1f}x" if done.returncode == 0 else done.stderr.strip().splitlines()[-1][:60]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torchlens-python", default="")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # idle threads that spin are nobody's cost
    python = Path(sys.executable)
    with (
        tempfile.TemporaryDirectory() as name,
        Worker(python, "torch") as torch,
        Worker(python, "paddle") as paddle,
    ):
        folder = Path(name)
        bench = Bench(torch, paddle, folder)
        print("whole run, forward passes alone: | structure | digests | values | structure, bytes a call")
        for subject in subjects(options.models, folder):
            for runtime in (Runtime.TORCH, Runtime.TARGET):
                print(
                    f"{subject.name:20} {runtime:7} {row(bench, subject, folder, runtime, options.rounds)}", flush=True
                )
            if options.torchlens_python:
                print(
                    f"{subject.name:20} TorchLens, forward pass: {torchlens(options.torchlens_python, subject)}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
