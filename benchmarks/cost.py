"""Cost as ratios within one run: models and a script in, traced against plain time and a diagnosis against its parts.

usage: python benchmarks/cost.py MODELS.jsonl [--rounds N]

Each model of MODELS.jsonl is run plain and traced under torch and under Paddle, in turns, in forks of warm workers; the
figure is the ratio of the medians of the CPU seconds that the model's own calls take (its import and rewriting apart).
A whole diagnosis of a small script is held against importing both frameworks and running the script once on each.
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
import time
from pathlib import Path

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Probe, ProbeKind, Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting
from migrate_lens.runs.worker import Worker

# The program under measurement repeats the model's forward pass and says how long that took.
PROGRAM = """
import time
from {module} import make
model, inputs = make()
inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
for _ in range(3):
    model(*inputs)
start = time.process_time()
for _ in range({repeats}):
    model(*inputs)
result = (time.process_time() - start) / {repeats}
"""
LARGER = {
    "mlp50": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(512, 512) for _ in range(50)])
            def forward(self, x):
                for layer in self.layers:
                    x = torch.relu(layer(x))
                return x
        def make():
            return Net().eval(), (torch.ones(64, 512),)
        """,
    "resnet": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Conv2d(32, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)
            def forward(self, x):
                return torch.relu(x + self.b(torch.relu(self.a(x))))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.stem, self.blocks = nn.Conv2d(3, 32, 3, padding=1), nn.ModuleList([Block() for _ in range(8)])
            def forward(self, x):
                x = self.stem(x)
                for block in self.blocks:
                    x = block(x)
                return x
        def make():
            return Net().eval(), (torch.ones(4, 3, 32, 32),)
        """,
    "encoder6": """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k, self.v, self.o = (nn.Linear(256, 256) for _ in range(4))
                self.up, self.down, self.norm = nn.Linear(256, 1024), nn.Linear(1024, 256), nn.LayerNorm(256)
            def forward(self, x):
                q, k, v = (f(x).reshape([8, 64, 4, 64]).transpose(1, 2) for f in (self.q, self.k, self.v))
                w = torch.nn.functional.softmax(q @ k.transpose(2, 3) * 0.125, -1)
                x = self.norm(x + self.o((w @ v).transpose(1, 2).reshape([8, 64, 256])))
                return x + self.down(torch.relu(self.up(x)))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer() for _ in range(6)])
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        def make():
            return Net().eval(), (torch.ones(8, 64, 256),)
        """,
}
SCRIPT = "import torch\nx = torch.ones(3, 4)\nresult = torch.relu(x * 2.0 - 1.0).sum()\n"
PLAIN = {"torch": "import runpy, sys; runpy.run_path(sys.argv[1])",
         "paddle": "import paddle; paddle.enable_compat(); import runpy, sys; runpy.run_path(sys.argv[1])"}  # fmt: skip


def seconds(bench: Bench, setting: Setting, runtime: Runtime, probe: Probe, observe: bool) -> float | None:
    run = bench.run(RunRequest(setting, runtime, probe, observe=observe))
    return float(run.trace.ending.value) if run.trace.ending.has_value else None


def ratio(bench: Bench, setting: Setting, runtime: Runtime, probe: Probe, rounds: int) -> str:
    plain, traced = [], []
    for _ in range(rounds):
        plain.append(seconds(bench, setting, runtime, probe, False))
        traced.append(seconds(bench, setting, runtime, probe, True))
    one, other = [t for t in plain if t], [t for t in traced if t]
    if not one or not other:
        return "does not run"
    low, high = statistics.median(one), statistics.median(other)
    return f"{high / low:.2f}x ({low * 1e3:.2f} -> {high * 1e3:.2f} ms)"


def models(bench: Bench, path: Path, folder: Path, rounds: int) -> None:
    print(f"{'model':14} {'torch traced / plain':28} paddle traced / plain")
    for row in map(json.loads, path.read_text().splitlines()):
        module = Path(row["file"]).stem
        script = folder / f"time_{module}.py"
        script.write_text(textwrap.dedent(PROGRAM).format(module=module, repeats=30))
        library = discover(script)
        paths = dict.fromkeys(Runtime, (path.parent.resolve(),))
        setting = Setting(library, paths, (module,), 120.0)
        probe = Probe(ProbeKind.SCRIPT, script.name, script)
        cells = [ratio(bench, setting, runtime, probe, rounds) for runtime in (Runtime.TORCH, Runtime.TARGET)]
        print(f"{row['id']:14} {cells[0]:28} {cells[1]}", flush=True)


def whole_programs(bench: Bench, path: Path, rounds: int) -> None:
    """The run of each model's whole program (its import, making the model, one pass), traced against plain."""
    print(f"{'program':14} {'torch traced / plain':28} paddle traced / plain")
    for row in map(json.loads, path.read_text().splitlines()):
        file = path.parent / row["file"]
        library = discover(file, [f"{file.stem}:make"])
        setting = Setting(library, dict.fromkeys(Runtime, ()), (file.stem,), 120.0)
        cells = [program(bench, setting, runtime, rounds) for runtime in (Runtime.TORCH, Runtime.TARGET)]
        print(f"{row['id']:14} {cells[0]:28} {cells[1]}", flush=True)


def program(bench: Bench, setting: Setting, runtime: Runtime, rounds: int) -> str:
    probe, took = setting.library.probes[0], {True: list[float](), False: list[float]()}
    for _ in range(rounds):
        for observe in (False, True):
            took[observe].append(bench.run(RunRequest(setting, runtime, probe, observe=observe)).fate.seconds)
    low, high = statistics.median(took[False]), statistics.median(took[True])
    return f"{high / low:.2f}x ({low * 1e3:.0f} -> {high * 1e3:.0f} ms)"


def larger(bench: Bench, folder: Path, rounds: int) -> None:
    """Programs of the sizes that people run: a 50-layer perceptron, a residual network, a 6-layer encoder."""
    for name, body in LARGER.items():
        (folder / f"{name}.py").write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(body))
        script = folder / f"time_{name}.py"
        script.write_text(textwrap.dedent(PROGRAM).format(module=name, repeats=5))
        setting = Setting(discover(script), dict.fromkeys(Runtime, (folder,)), (name,), 300.0)
        probe = Probe(ProbeKind.SCRIPT, script.name, script)
        cells = [ratio(bench, setting, runtime, probe, rounds) for runtime in (Runtime.TORCH, Runtime.TARGET)]
        print(f"{name:14} {cells[0]:28} {cells[1]}", flush=True)


def timed(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


def whole(folder: Path, rounds: int) -> None:
    script = folder / "small.py"
    script.write_text(SCRIPT)
    parts: list[float] = []
    diagnoses: list[float] = []
    lens = str(Path(sys.executable).with_name("migrate-lens"))
    for _ in range(rounds):
        parts.append(sum(timed([sys.executable, "-c", code, str(script)], folder) for code in PLAIN.values()))
        diagnoses.append(timed([lens, "diagnose", str(script)], folder))
    low, high = statistics.median(parts), statistics.median(diagnoses)
    print(f"whole diagnosis of a small script: {high:.2f} s, both frameworks once each: {low:.2f} s, {high / low:.2f}x")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    python = Path(sys.executable)
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # idle threads that spin are nobody's cost
    with tempfile.TemporaryDirectory() as name:
        whole(Path(name), options.rounds)
        with Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
            bench = Bench(torch, paddle, Path(name))
            whole_programs(bench, options.models.resolve(), options.rounds + 2)
            models(bench, options.models, Path(name), options.rounds)
            larger(bench, Path(name), options.rounds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
