"""Programs that use torch's own machinery, in; observed, they print what they print unobserved, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from observed_programs import check_prints_the_same, torch_bench

from migrate_lens.runs.bench import Bench

pytestmark = pytest.mark.real

__all__ = ["torch_bench"]

PROGRAMS = {
    # the module tree
    "a hook before the gradient of a container": """
import torch
seen = []
net = torch.nn.Sequential(torch.nn.Linear(1, 1))
net.register_full_backward_pre_hook(lambda m, g: seen.append(type(m).__name__))
net(torch.ones(1, 1)).sum().backward()
print(seen)
""",
    "another entry for all layers": """
import torch
plain, seen = torch.nn.Module.__call__, []
def entry(self, *args):
    seen.append(type(self).__name__)
    return plain(self, *args)
torch.nn.Module.__call__ = entry
torch.nn.Sequential(torch.nn.ReLU())(torch.ones(1))
print(seen)
""",
    "another way in below the entry": """
import torch
class Doubled(torch.nn.Sequential):
    def _call_impl(self, *args):
        return 2 * super()._call_impl(*args)
print(Doubled(torch.nn.ReLU())(torch.ones(1)))
""",
    # graphs
    "a scripted layer and a scripted function": """
import torch
@torch.jit.script
def twice(x):
    return x + x
layer = torch.jit.script(torch.nn.Linear(2, 1, bias=False))
print(twice(torch.ones(1)), layer(torch.ones(3, 2)).shape, layer.code)
""",
    "a traced container": """
import torch
net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
traced = torch.jit.trace(lambda x: net(x) + x.shape[0], torch.ones(2))
print([node.kind() for node in traced.graph.nodes()], traced(torch.ones(1)))
""",
    "a graph of operators": """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
def f(x):
    return (torch.sigmoid(x) * 2).mean()
print(make_fx(f)(torch.ones(3)).code)
print(make_fx(torch.func.grad(f))(torch.ones(3)).code)
""",
    "an exported program": """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Tanh())
    def forward(self, x):
        return self.body(x).sum(0) * x.shape[1]
program = torch.export.export(Net(), (torch.ones(2, 3),))
print(program.graph_module.code, program.module()(torch.ones(2, 3)))
""",
    "a container in a symbolic trace": """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())
    def forward(self, x):
        return self.body(x) + 1
print(torch.fx.symbolic_trace(Net()).code)
""",
    # looks
    "a mode that counts operators": """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class Names(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func)
        return func(*args, **(kwargs or {}))
with Names():
    torch.nn.Linear(2, 2).requires_grad_(False)(torch.ones(1, 2)).bfloat16().conj()
""",
    "a mode that sees functions": """
import torch
from torch.overrides import TorchFunctionMode
class Names(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(getattr(func, "__name__", func))
        return func(*args, **(kwargs or {}))
with Names():
    print(torch.dropout((torch.ones(2) + 1).T, 0.5, False).shape)
""",
    "a tensor class that sees functions": """
import torch
class Told(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(getattr(func, "__name__", func))
        return super().__torch_function__(func, types, args, kwargs or {})
x = torch.ones(2).as_subclass(Told)
y = x * 2
print(type(y).__name__, y.sum().item())
""",
    "what a profiler counts": """
import torch
with torch.profiler.profile() as profile:
    x = torch.ones(2, 2, dtype=torch.complex64).conj()
    torch.nn.functional.dropout((x @ x).real.bfloat16())
print(sorted((event.key, event.count) for event in profile.key_averages()))
""",
    "containers that tell when they are read": """
import torch
class Row(tuple):
    def __iter__(self):
        print("row")
        return super().__iter__()
class Table(dict):
    def values(self):
        print("values")
        return super().values()
    def items(self):
        print("items")
        return super().items()
class Stack(list):
    def __iter__(self):
        print("stack")
        return super().__iter__()
for values in (Row([torch.ones(1)]), Table(a=torch.ones(1)), Stack([torch.ones(1)])):
    torch.nn.Identity()(values)
torch.cat(Row([torch.ones(1)]))
""",
    "storage that is resized": """
import torch
x = torch.ones(2)
y = x + 1
y.resize_(40)
y.untyped_storage().resize_(0)
print(y.shape, y.untyped_storage().nbytes())
""",
    "callables that make up their attributes": """
import torch
class Any:
    def __init__(self, path):
        self.path = path
    def __getattr__(self, name):
        print("asked", name)
        return Any(self.path + [name])
    def __call__(self, *args):
        return len(args)
value = Any([])
print(value.a.b(torch.ones(1)), torch.nn.Identity()(value).path)
print(torch.fx.symbolic_trace(lambda x: torch.cat([x.relu(), x.exp()], dim=1)[:, 0].sum() + x.shape[0]).code)
""",
    # lifetimes
    "what runs at the end": """
import atexit
import threading
import time
import torch
def late():
    time.sleep(0.2)
    print("thread", torch.ones(1) + 1)
threading.Thread(target=late).start()
atexit.register(lambda: print("exit", torch.ones(1) * 2))
print("main")
""",
    "the iterators of a data loader": """
import torch
from torch.utils.data import DataLoader
for workers in (0, 1):
    iterator = iter(DataLoader([1, 2, 3], num_workers=workers))
    known = torch.utils.data.dataloader._BaseDataLoaderIter
    print(type(iterator).__name__, isinstance(iterator, known), list(iterator))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_observed_program_prints_what_it_prints_plainly(bench: Bench, tmp_path: Path, name: str) -> None:
    check_prints_the_same(bench, tmp_path, PROGRAMS[name])
