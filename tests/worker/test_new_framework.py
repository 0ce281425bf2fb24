"""A made-up framework in a folder of its own, in; a worker that runs programs in it through the same entry, out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.protocol import frames
from migrate_lens.protocol.journal import read
from migrate_lens.worker import backends

# The whole of a target: what a folder under worker/backends/ holds.
TINY = '''
"""A framework that is one class and one function; it answers for torch by putting itself there."""

import os, sys
import types

from migrate_lens.model.value import LIST, TENSOR
from migrate_lens.worker.backends.framework import About, Backend, Framework


class Tensor:
    __module__ = "tiny"

    def __init__(self, values):
        self.values = values
        self.writes = 0

    def double(self):
        return Tensor([2 * v for v in self.values])


def tensor(values):
    return Tensor(values)


class Layer:
    __module__ = "tiny"

    def forward(self):
        return None


class TinyBackend(Backend):
    name = "tiny"
    tops = frozenset(("tiny",))

    def __init__(self):
        super().__init__(Tensor, Layer, ())

    def look(self, value):
        return (TENSOR, "int64", (len(value.values),), None, "cpu", False)

    def special(self, value, kind):
        return None

    def differentiable(self, value):
        return False

    def version(self, value):
        return value.writes

    def held(self, layer):
        return []

    def extent(self, value):
        return None

    def random_state(self):
        return b""

    def build_tensor(self, encoded):
        return Tensor([0] * encoded[2][0])

    def fill(self, tensor, dtype, shape, data):
        return False

    def dtype_of(self, name):
        raise AttributeError(name)

    def can_differentiate(self, value):
        return False

    def leaf_of(self, value):
        return value

    def as_torch(self, name):
        return name.replace("tiny.", "torch.", 1)


class TinyFramework(Framework):
    name = "tiny"

    def start(self, *, keep_torch):
        module = types.ModuleType("tiny")
        space = {"__name__": "tiny", "Tensor": Tensor}
        module.tensor = types.FunctionType(tensor.__code__, space, "tensor")
        module.Tensor = Tensor
        # Methods have the globals of the framework's own module, as those of a framework in a package have.
        Tensor.double = types.FunctionType(Tensor.double.__code__, space, "double")
        sys.modules["tiny"] = module
        return About("1.0", "", "cpu")

    def make_backend(self):
        return TinyBackend()

    def seed(self, number):
        sys.modules["tiny"].seeded = number

    def zoom(self, note):
        raise NotImplementedError

    def answer_torch(self, scope):
        sys.modules["torch"] = sys.modules["tiny"]

    def admit(self, module):
        module.admitted = True


FRAMEWORK = TinyFramework()
'''

# One entry, and a place where the folder is found: for a framework that comes with the tool both are in the package.
SERVE = """
import os, sys
from migrate_lens.worker import backends
backends.__path__.append(sys.argv[1])
backends.FRAMEWORKS = (*backends.FRAMEWORKS, "tiny")
from migrate_lens.worker.run.zygote import main
sys.exit(main(["tiny", "hide", str(os.dup(1))]))
"""

PROGRAM = """
import torch
x = torch.tensor([1, 2])
y = x.double()
try:
    torch.nothing(y)
except AttributeError:
    result = [admitted, torch.seeded, y]
"""


def job(folder: Path) -> dict[str, Any]:
    """A script under observation, as the driver asks for it."""
    texts = dict.fromkeys(("spec", "reference", "kernel_log"), "")
    lists: dict[str, list[str]] = {name: [] for name in ("modules", "sys_path", "own", "scope", "spare", "skip")}
    more: dict[str, list[str]] = {"copy": [], "unbuilt": []}
    switches = dict.fromkeys(("hashable", "gradients", "values", "backward", "finish"), False)
    return {
        **texts, **lists, **more, **switches,
        "runtime": "tiny", "probe": "script", "path": str(folder / "program.py"), "cwd": str(folder), "seed": 7,
        "observe": True, "trace": str(folder / "trace"), "heal": "none", "about": {}, "steer": None, "environ": {},
        "most_output": 1 << 20, "most_trace": 1 << 20, "timeout": 60.0,
        "stdout": str(folder / "stdout"), "stderr": str(folder / "stderr"),
    }  # fmt: skip


@pytest.fixture
def answers(tmp_path: Path) -> list[dict[str, Any]]:
    """What a worker of the made-up framework says: what it is, and the fate of one job."""
    package = tmp_path / "backends" / "tiny" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text(TINY)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-c", SERVE, str(tmp_path / "backends")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps(job(tmp_path)).encode() + b"\n")
        worker.stdin.flush()  # the pipe stays open: at its end the worker ends too, and its job
        return [json.loads(worker.stdout.readline()) for _ in ("about", "fate")]


def test_a_framework_is_one_folder_and_one_entry(answers: list[dict[str, Any]], tmp_path: Path) -> None:
    about, fate = answers
    assert (about["framework"], about["version"], about["device"]) == ("tiny", "1.0", "cpu")
    assert (fate["code"], fate["timed_out"]) == (0, False), (tmp_path / "stderr").read_text()
    trace = [frames.typed(frame) for frame in read(tmp_path / "trace")[1]]
    calls = [frame.api for frame in trace if isinstance(frame, frames.Called)]
    assert calls == ["torch", "torch.tensor", "torch.Tensor.double", "torch.seeded"]
    assert [frame.api for frame in trace if isinstance(frame, frames.Absent)] == ["torch.nothing"]
    (outcome,) = (frame for frame in trace if isinstance(frame, frames.Outcome))
    assert outcome.how == "finished"
    assert outcome.value == ("L", [True, 7, ("T", "int64", (2,), None, "cpu", False)])


def test_a_framework_that_has_no_entry() -> None:
    with pytest.raises(ValueError, match="'tiny' is none of torch, paddle"):
        backends.load("tiny")


@pytest.mark.parametrize("name", backends.FRAMEWORKS)
def test_choosing_a_framework_imports_nothing_of_it(name: str) -> None:
    check = f"""
import os, sys
from migrate_lens.worker import backends
assert backends.load({name!r}).name == {name!r}
assert not [m for m in sys.modules if m.partition(".")[0] in backends.FRAMEWORKS]
"""
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
