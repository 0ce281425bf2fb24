"""The commands trace, diff and doctor, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate_lens.cli.app import main
from migrate_lens.compare.comparison import compare
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Level, Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting, Steering
from migrate_lens.runs.store import load
from migrate_lens.runs.worker import Worker

pytestmark = pytest.mark.real

PROGRAM = """
import torch
import torch.nn.functional as F
bn = torch.nn.BatchNorm1d(2)
x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
for step in range(20):
    x = F.softmax(x, -1)
y = bn(x)
m = x.max(1)
result = y.sum()
"""
Ran = tuple[int, str, str]


class Shell:
    """Runs the tool in a folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *arguments: str) -> tuple[int, Any]:
        code, out, _ = self(*arguments, "--format", "json")
        return code, json.loads(out)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    return Shell(capsys)


def test_a_trace_lists_its_calls_with_loops_folded_and_is_left_where_it_was_asked_for(shell: Shell) -> None:
    code, out, err = shell("trace", "program.py", "-o", "t.trace")
    assert (code, err) == (0, "")
    assert "program.py under torch" in out
    assert "torch.nn.functional.softmax -> tensor[2, 2] float32" in out
    assert "^ this call 20 times, up to 24" in out
    assert out.count("softmax") == 1
    assert "outcome: finishes with tensor[] float32" in out
    code, again, _ = shell("trace", "t.trace")
    assert code == 0
    assert again.splitlines()[2:] == out.splitlines()[2:]
    assert sorted(p.name for p in Path().iterdir()) == ["program.py", "t.trace"]
    assert Path("t.trace").stat().st_mode == Path("program.py").stat().st_mode


def test_two_runtimes_are_held_against_each_other(shell: Shell) -> None:
    shell("trace", "program.py", "-o", "a.trace")
    shell("trace", "program.py", "--runtime", "paddle", "-o", "b.trace", "--like", "a.trace")
    code, found = shell.json("diff", "a.trace", "b.trace")
    assert code == 1
    assert not found["same"]
    first = found["divergences"][0]
    assert (first["api"], first["symptom"], first["line"]) == ("torch.nn.BatchNorm1d", "missing_api", 4)
    code, out, _ = shell("diff", "a.trace", "b.trace")
    assert "first divergence, missing_api in torch.nn.BatchNorm1d" in out
    assert "They differ." in out
    code, out, _ = shell("diff", "a.trace", "a.trace")
    assert (code, out.splitlines()[-1]) == (0, "They are the same.")


def test_one_call_is_made_again_alone_on_both_sides_with_its_operators(shell: Shell) -> None:
    shell("trace", "program.py", "-o", "t.trace", "--record", "values")
    code, out, _ = shell("trace", "t.trace", "--replay", "torch.Tensor.max")
    assert code == 1
    assert "it differs on equal inputs" in out
    assert "aten.max.dim" in out
    code, out, _ = shell("trace", "t.trace", "--replay", "program.py:7#3")
    assert code == 0
    assert "the same on equal inputs" in out
    code, found = shell.json("trace", "program.py", "--replay", "all")
    verdicts = {(c["api"], c["verdict"]) for c in found["calls"]}
    assert ("torch.nn.BatchNorm1d", "operator") in verdicts
    assert ("torch.Tensor.sum", "inputs") in verdicts
    assert not any(verdict == "not reproduced" for _, verdict in verdicts)


def test_operators_below_calls_are_recorded_where_they_are_asked_for(shell: Shell) -> None:
    _, found = shell.json("trace", "program.py", "--zoom", "torch.nn.BatchNorm1d#2")
    below = {c["call"]: [name for name, _ in c["ops"]] for c in found["calls"] if c["ops"]}
    assert len(below) == 1
    assert "aten.native_batch_norm.default" in next(iter(below.values()))
    only = ["--runtime", "paddle", "--stop-at", "program.py:7", "--substitute", "torch.nn.BatchNorm1d=None"]
    _, found = shell.json("trace", "program.py", "--zoom", "all", *only)
    assert found["calls"][-1]["ops"][0][0] == "softmax"


def test_a_program_goes_on_with_what_it_is_handed(shell: Shell) -> None:
    np.save("x.npy", np.zeros((2, 2), "float32"))
    code, found = shell.json("trace", "program.py", "--substitute", "torch.nn.BatchNorm1d#2=x.npy")
    assert code == 0
    call = next(c for c in found["calls"] if c["handed"])
    assert (call["api"], call["handed"]) == ("torch.nn.BatchNorm1d", "substituted")
    assert found["outcome"]["said"] == "tensor[] float32 0."
    assert shell("trace", "program.py", "--substitute", "torch.nn.BatchNorm1d=int", "--runtime", "paddle")[0] == 2
    Path("other.py").write_text("import torch\nx = torch.full([2, 2], 3.0)\nresult = x.sum()\n")
    shell("trace", "other.py", "-o", "t.trace", "--record", "values")
    Path("third.py").write_text("import torch\nx = torch.full([2, 2], 5.0)\nresult = x.sum()\n")
    _, found = shell.json("trace", "third.py", "--substitute", "torch.full=t.trace")
    assert found["outcome"]["said"] == "tensor[] float32 12."
    missing = "torch.nn.BatchNorm1d=None"
    _, found = shell.json("trace", "program.py", "--runtime", "paddle", "--substitute", missing)
    assert found["outcome"]["said"] == "TypeError"


def test_a_structure_trace_is_small_and_a_trace_of_values_is_whole(shell: Shell) -> None:
    Path("large.py").write_text("import torch\nx = torch.ones(200, 200)\nfor i in range(50):\n    x = torch.relu(x)\n")
    sizes = {}
    for level in ("structure", "digests", "values"):
        shell("trace", "large.py", "-o", f"{level}.trace", "--record", level)
        sizes[level] = Path(f"{level}.trace").stat().st_size
    assert sizes["structure"] < 52 * 1000
    assert sizes["structure"] < sizes["digests"] < sizes["values"]
    assert sizes["values"] > 50 * 160_000
    _, out, _ = shell("trace", "digests.trace")
    assert "values-sampled" in out


def test_a_trace_of_values_streams_to_disk_and_does_not_fill_the_memory(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text("import torch\nx = torch.ones(256, 1024)\nfor i in range(400):\n    x = torch.relu(x)\n")
    python, library = Path(sys.executable), discover(script)
    setting = Setting(library, dict.fromkeys(Runtime, ()), (), 120.0)
    with Worker(python, "torch") as torch:
        bench = Bench(torch, None, tmp_path)
        request = RunRequest(setting, Runtime.TORCH, library.probes[0])
        plain = bench.run(replace(request, observe=False))
        whole = bench.run(replace(request, steering=Steering(Level.VALUES)))
    assert whole.file.stat().st_size > 400 << 20
    assert len(whole.trace.events) == 402
    assert whole.fate.rss_kb - plain.fate.rss_kb < 100 << 10


def test_a_trace_is_tried_before_it_is_believed(shell: Shell) -> None:
    Path("plain.py").write_text("import torch\nx = torch.ones(3)\ny = torch.relu(x) + 2.0\nresult = y\n")
    code, found = shell.json("trace", "plain.py", "--validate")
    assert code == 0
    assert found["validation"]["standing"] == "verified"
    assert [c["name"] for c in found["validation"]["checks"]] == ["outcome", "replay", "completeness"]
    Path("odd.py").write_text("import torch, time\nx = torch.ones(3) * float(time.time_ns() % 1000003)\nresult = x\n")
    _, found = shell.json("trace", "odd.py", "--validate")
    assert found["validation"]["standing"] == "unverified"
    assert "each time" in found["validation"]["checks"][0]["said"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trace", "nothing.py"], "no such program: nothing.py"),
        (["trace", "program.py", "--stop-at", "a b"], "names no call"),
        (["trace", "program.py", "--substitute", "torch.ones"], "not CALL=VALUE"),
        (["trace", "program.py", "--substitute", "torch.ones=x.npy"], "cannot read x.npy"),
        (["trace", "program.py", "--like", "program.py"], "is no trace"),
        (["trace", "program.py", "-o", "nowhere/t.trace"], "no such folder"),
        (["trace", "empty.py"], "nothing-recorded"),
        (["trace", "gone.trace"], "cannot read gone.trace"),
        (["diff", "program.py", "program.py"], "is no trace"),
        (["trace", "program.py", "--format", "yaml"], "no format 'yaml'"),
        (["trace", "empty.py", "-o", "program.py"], "it is not overwritten"),
        (["trace", "program.py", "--stop-at", "torch.rleu"], "no call torch.rleu came by"),
        (["trace", "program.py", "--validate", "--stop-at", "torch.ones"], "tries a program as it is"),
        (["trace", "damaged.trace"], "is damaged"),
    ],
)
def test_a_mistake_is_said_in_one_line_with_a_remedy(shell: Shell, arguments: list[str], said: str) -> None:
    Path("empty.py").write_text("print('no torch here')\n")
    frame = b"\x02\x00\x00\x00\xff\xff"
    Path("damaged.trace").write_bytes(b"\0\0\0\0MLTRACE1\0\0\0\0" + frame)
    code, out, err = shell(*arguments)
    assert code == 2
    assert out == ""
    assert said in err.splitlines()[0]
    assert err.splitlines()[1].startswith("  try: ")


def test_a_node_of_a_test_file_is_that_test_alone(shell: Shell) -> None:
    Path("test_two.py").write_text(
        "import torch\ndef test_one():\n    assert torch.relu(torch.ones(1)) == 1\n"
        "def test_two():\n    assert torch.exp(torch.zeros(1)) == 1\n"
    )
    _, found = shell.json("trace", "test_two.py::test_one")
    apis = [c["api"] for c in found["calls"]]
    assert "torch.relu" in apis
    assert "torch.exp" not in apis
    _, found = shell.json("trace", "test_two.py::test_one", "--stop-at", "torch.relu")
    assert (found["calls"][-1]["api"], found["outcome"]["how"]) == ("torch.relu", "stopped")


def test_processes_that_a_program_forks_do_not_write_into_its_trace(shell: Shell) -> None:
    Path("forks.py").write_text(
        "import os\nimport torch\nx = torch.ones(2)\nchild = os.fork()\n"
        "for i in range(40):\n    x = torch.tanh(x) if child == 0 else torch.relu(x)\n"
        "if child == 0:\n    os._exit(0)\nos.waitpid(child, 0)\nresult = x\n"
    )
    _, found = shell.json("trace", "forks.py")
    apis = [c["api"] for c in found["calls"]]
    assert (apis.count("torch.relu"), apis.count("torch.tanh")) == (40, 0)
    assert found["outcome"]["how"] == "finished"
    assert [x["code"] for x in found["limits"]] == ["child-process-not-observed"]


def test_a_training_loop_is_not_called_wrong(shell: Shell) -> None:
    Path("train.py").write_text(
        "import torch\ntorch.manual_seed(0)\nlayer = torch.nn.Linear(2, 1)\nlayer.train()\n"
        "steps = torch.optim.SGD(layer.parameters(), lr=0.1)\nw = torch.ones(2, requires_grad=True)\n"
        "for _ in range(2):\n    y = w * 2.0\n    y.add_(1.0)\n    loss = layer(y).sum()\n"
        "    steps.zero_grad()\n    loss.backward()\n    steps.step()\nresult = loss\n"
    )
    code, found = shell.json("trace", "train.py", "--validate")
    assert code == 0
    assert found["validation"]["standing"] in ("verified", "unverified")
    _, found = shell.json("trace", "train.py", "--replay", "all")
    assert not [c for c in found["calls"] if c["verdict"] == "not reproduced"]


def test_traces_without_values_are_the_same_in_structure_only(shell: Shell) -> None:
    for level in ("structure", "values"):
        shell("trace", "program.py", "-o", f"{level}.trace", "--record", level)
    code, out, _ = shell("diff", "structure.trace", "values.trace")
    assert (code, out.splitlines()[-1]) == (0, "They are the same in structure; values were not compared.")


def test_a_crash_keeps_the_calls_before_it_and_names_the_one_in_flight(shell: Shell) -> None:
    Path("dies.py").write_text(
        "import os, signal, torch\nclass T(torch.Tensor):\n    pass\nx = torch.exp(torch.ones(2))\n"
        "layer = torch.nn.Linear(2, 2)\nlayer.register_forward_hook(lambda *_: os.kill(os.getpid(), 9))\nlayer(x)\n"
    )
    code, out, _ = shell("trace", "dies.py")
    assert code == 0
    assert "torch.exp" in out
    assert "outcome: dies" in out
    assert "in flight: layer(x)" in out


@pytest.mark.native
def test_doctor_says_what_is_installed_and_what_was_proven(shell: Shell) -> None:
    code, found = shell.json("doctor")
    assert code == 0
    assert [s["runtime"] for s in found["sides"]] == ["torch", "paddle", "paddle-global"]
    assert all(len(s["checks"]) >= 22 for s in found["sides"])
    code, out, _ = shell("doctor", "--torch-python", "/usr/bin/python3")
    assert code == 1
    assert "has no usable torch" in out


def test_a_block_is_recorded_in_ones_own_process_and_leaves_no_mark(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "import torch\ndef step(x):\n    return torch.relu(x) + 1.0\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return step(x).sum()\n"
    )
    (tmp_path / "use.py").write_text(
        "import json, steps\nfrom migrate_lens import api\n"
        "net, x, code = steps.Net(), steps.torch.ones(2), steps.step.__code__\n"
        "with api.record() as done:\n    net(x)\n"
        "clean = steps.step.__code__ is code and not any(n.startswith('__ml_') for n in vars(steps))\n"
        "with api.record() as again:\n    net(x)\n    steps.torch.exp(x)\n"
        "same = api.compare(done.trace, again.trace).same\n"
        "print(json.dumps([[e.api for e in done.trace.events], clean, same,"
        " [l.code for l in done.limits], [l.code for l in again.limits]]))\n"
    )
    (tmp_path / "odd.py").write_text(
        "import torch\nf, g = (lambda x: torch.relu(x)), (lambda x: torch.exp(x))\n"
        "def make():\n    def inner(x):\n        return torch.exp(x)\n    return inner\n"
        "def many(x):\n    for i in range(2):\n        yield torch.relu(x)\n"
    )
    (tmp_path / "use_odd.py").write_text(
        "import odd\nfrom migrate_lens import api\nzero = odd.torch.zeros(1)\n"
        "with api.record() as done:\n    a, b = odd.f(zero), odd.g(zero)\n"
        "    inner, left = odd.make(), odd.many(zero)\n    next(left)\n"
        "    try:\n        with api.record():\n            pass\n"
        "    except Exception as error:\n        said = str(error)\n"
        "print(a.item(), b.item(), inner(zero).item(), next(left).item(), said)\n"
        "print([e.api for e in done.trace.events])\n"
    )
    odd = subprocess.run(
        [sys.executable, "use_odd.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert odd.stdout.splitlines() == [
        "0.0 1.0 1.0 0.0 a block of this process is being recorded already",
        "['torch.relu', 'torch.exp', 'torch.relu']",
    ]
    done = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    calls, clean, same, limits, others = json.loads(done.stdout)
    assert calls == ["torch.relu", "torch.Tensor.add", "torch.Tensor.sum"]
    assert clean
    assert same
    assert (limits, others) == ([], ["body-not-observed"])


def test_a_layers_state_is_written_once_and_known_at_each_call(shell: Shell) -> None:
    """Made, put into evaluation mode, changed between two calls: each call has the state that it ran with."""
    Path("layers.py").write_text(
        "import torch\n"
        "layer = torch.nn.Linear(300, 200)\n"
        "x = torch.ones(1, 300)\n"
        "layer(x)\n"
        "layer.eval()\n"
        "layer(x)\n"
        "with torch.no_grad():\n"
        "    layer.weight.mul_(2.0)\n"
        "result = layer(x)\n"
    )
    shell("trace", "layers.py", "--record", "values", "-o", "t.trace")
    assert Path("t.trace").stat().st_size < 4.2 * 240_000  # made, read, multiplied in place, read by the layer
    calls = [e for e in load(Path("t.trace")).events if e.api == "torch.nn.Linear" and e.place.line > 2]
    assert [(e.state is not None and e.state[1]) for e in calls] == [True, False, False]
    weights = [np.frombuffer(e.state[0][0][3], "float32") for e in calls if e.state]
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(2 * weights[1], weights[2])
    _, found = shell.json("trace", "layers.py", "--replay", "all")
    assert [c["verdict"] for c in found["calls"] if c["text"] == "layer(x)"] == [
        "inputs"
    ] * 3  # alike, given the same weights


BACKWARD = """
import torch
x = torch.tensor([[0.0, 2.0, 3.0], [1.0, 4.0, 5.0]], requires_grad=True)
y = x.exp().log()
z = y.prod(1)
result = z.sum()
result.backward()
"""


def test_gradients_are_recorded_shown_and_compared(shell: Shell) -> None:
    """Torch gives the product of the others where one factor is zero; Paddle 3.3.1 divides by it."""
    Path("product.py").write_text(BACKWARD)
    _, out, _ = shell("trace", "product.py", "--gradients", "-o", "a.trace")
    assert "gradient: tensor[2] float32 [1., 1.]" in out
    shell("trace", "product.py", "--gradients", "--runtime", "paddle", "-o", "b.trace")
    code, found = shell.json("diff", "a.trace", "b.trace")
    gradients = [d for d in found["divergences"] if d["symptom"] == "gradient"]
    assert code == 1
    assert [d["api"] for d in gradients] == ["torch.Tensor.log", "torch.Tensor.exp", "torch.tensor"]
    assert "[[ 6.,  0.,  0.]," in gradients[0]["expected"]
    assert "[[nan," in gradients[0]["actual"]
    assert (
        "The backward of torch.Tensor.prod makes it: call 5 at product.py:5" in shell("diff", "a.trace", "b.trace")[1]
    )
    assert found["backward_at_fault"] == 5
    assert shell("diff", "a.trace", "a.trace")[0] == 0


def test_a_program_without_a_backward_pass_gets_one_where_it_is_asked_for(shell: Shell) -> None:
    Path("product.py").write_text(BACKWARD.replace("result.backward()\n", ""))
    _, found = shell.json("trace", "product.py", "--gradients", "--backward")
    reached = {c["api"]: c["gradients"] for c in found["calls"]}
    assert "tensor[2] float32" in reached["torch.Tensor.prod"]["0"]
    assert "tensor[2, 3] float32" in reached["torch.Tensor.exp"]["0"]


def test_one_planted_gradient_is_one_difference(shell: Shell) -> None:
    Path("product.py").write_text(BACKWARD)
    shell("trace", "product.py", "--gradients", "-o", "a.trace")
    whole = load(Path("a.trace"))
    assert len(whole.gradients) >= 4
    for key, reached in whole.gradients.items():
        data = np.frombuffer(reached[0][3], "float32") + np.float32(0.01)
        planted = {**whole.gradients, key: {0: (*reached[0][:3], data.tobytes(), *reached[0][4:])}}
        found = compare(whole, replace(whole, gradients=planted))
        assert [(d.want.key, d.symptom) for d in found.hard] == [(key, "gradient")]
        lost = compare(whole, replace(whole, gradients={k: v for k, v in whole.gradients.items() if k != key}))
        assert [(d.want.key, d.hard, d.actual) for d in lost.divergences] == [
            (key, False, "the gradient that reached it: no gradient")
        ]


def test_what_a_program_prints_is_kept_and_its_exit_code_is_said(shell: Shell) -> None:
    Path("exits.py").write_text("import sys, torch\nprint('own', torch.ones(1))\nsys.exit(3)\n")
    _, found = shell.json("trace", "exits.py", "--program-output", "said.txt")
    assert Path("said.txt").read_text() == "own tensor([1.])\n"
    assert (found["outcome"]["how"], found["outcome"]["exit_code"]) == ("exited", 3)
    Path("raises.py").write_text("import torch\nprint('before')\ntorch.ones(2).view(3)\n")
    _, found = shell.json("trace", "raises.py", "--program-output", "said.txt")
    assert Path("said.txt").read_text() == "before\n"
    assert (found["outcome"]["how"], found["outcome"]["exit_code"]) == ("raised", 1)
