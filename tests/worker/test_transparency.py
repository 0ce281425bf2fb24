"""Programs, in; observed, they print what they print unobserved, out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting
from migrate_lens.runs.worker import Worker

pytestmark = pytest.mark.real

PROGRAMS = {
    "a container that is called in its own way": """
import torch
class Twice(torch.nn.Sequential):
    def __call__(self, x):
        return super().__call__(super().__call__(x))
print(Twice(torch.nn.Linear(2, 2, bias=False)).forward is not None, Twice(torch.nn.ReLU())(torch.ones(1)))
""",
    "a container with another forward of its class": """
import torch
class Negated(torch.nn.Sequential):
    def forward(self, x):
        return -super().forward(x)
print(Negated(torch.nn.ReLU())(torch.ones(2)))
""",
    "a container with another forward of its own": """
import torch
net = torch.nn.Sequential(torch.nn.ReLU())
net.forward = lambda x: x * 7
print(net(torch.ones(2)))
""",
    "a hook on the container": """
import torch
seen = []
net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Tanh()))
net[1].register_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
net(torch.ones(1))
print(seen)
""",
    "a hook on all layers": """
import torch
seen = []
from torch.nn.modules.module import register_module_forward_hook
handle = register_module_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(torch.ones(1))
handle.remove()
print(seen)
""",
    "builtins of the program's own": """
import builtins, torch
plain = builtins.isinstance
builtins.isinstance = lambda value, kind: plain(value, kind)
builtins.len = lambda value: 0
print(torch.ones(2) + 1)
""",
    "the names of the main module": """
import torch
print(sorted(name for name in globals() if not name.startswith("_")))
print(__annotations__, type(__builtins__).__name__, type(__loader__).__name__, __spec__)
""",
    "a tensor's methods of the program's own": """
import torch
torch.Tensor.detach = lambda tensor: print("detach")
print((torch.ones(2) + 1).sum().item())
""",
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Worker(Path(sys.executable), "torch") as worker:
        yield Bench(worker, None, tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_observed_program_prints_what_it_prints_plainly(bench: Bench, tmp_path: Path, name: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[name])
    library = discover(program)
    setting = Setting(library, dict.fromkeys(Runtime, ()), (), 120.0)
    run = bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0]))
    plain = subprocess.run([sys.executable, str(program)], check=True, capture_output=True, text=True)
    assert run.file.with_suffix(".out").read_text() == plain.stdout
    assert run.trace.ending.how == "finished"
