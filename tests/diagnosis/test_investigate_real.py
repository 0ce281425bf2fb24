"""Tiny programs, in; what real torch and real Paddle make of them, out: each gap is found, and nothing else."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from fake_backend import expected_of, programs
from real_lab import Lab, opened_lab

from migrate_lens.classify import classify
from migrate_lens.compare.divergences import divergences
from migrate_lens.compare.findings import node_name
from migrate_lens.diagnosis.investigate import baseline, investigate
from migrate_lens.diagnosis.subject import Subject
from migrate_lens.model.report import Outcome, Probe, ProbeKind, Runtime, Stage
from migrate_lens.runs import bench as bench_module
from migrate_lens.runs.bench import RunRequest

pytestmark = pytest.mark.real

__all__ = ["opened_lab"]

AGREE = programs("agree.txt")


@pytest.mark.parametrize("name", AGREE)
def test_a_program_that_agrees_gives_no_gap(lab: Lab, name: str) -> None:
    found = lab.diagnose(AGREE[name])
    assert found.baseline.outcome is Outcome.PASSED, found.baseline.detail
    assert found.observed
    assert found.keys == []
    summary = found.investigation.summary
    assert summary is not None
    assert summary.torch_calls == summary.reached
    assert [s.outcome for s in found.investigation.stages] == [Outcome.PASSED]


GAPS = expected_of("gaps.txt")


@pytest.mark.parametrize("name", GAPS)
def test_a_program_with_one_gap_gives_exactly_that_gap(lab: Lab, name: str) -> None:
    source, expected = GAPS[name]
    assert lab.diagnose(source).keys == expected


SEVERAL = expected_of("several.txt")


@pytest.mark.parametrize("name", SEVERAL)
def test_a_program_with_several_gaps_gives_all_of_them(lab: Lab, name: str) -> None:
    source, expected = SEVERAL[name]
    assert lab.diagnose(source).keys == expected


STOPS = expected_of("stops.txt")


@pytest.mark.parametrize("name", STOPS)
def test_what_only_torch_has_stops_no_run(lab: Lab, name: str) -> None:
    source, expected = STOPS[name]
    found = lab.diagnose(source)
    assert found.observed
    assert found.keys == expected
    summary = found.investigation.summary
    assert summary is not None
    assert (summary.reached, summary.note) == (summary.torch_calls, "")


def test_every_name_of_a_gap_is_one_that_torch_has(lab: Lab) -> None:
    expected = [key for programs_ in (GAPS, SEVERAL, STOPS) for _, keys in programs_.values() for key in keys]
    names = sorted({key.partition(":")[0] for key in expected})
    own = [name for name in names if name.startswith("torch.") and not name.startswith("torch.ops.")]
    library = lab.library("import torch")
    known = lab.bench.ask(lab.setting(library), Runtime.TORCH, own)
    unknown = [name for name in own if known.get(name) is None]
    assert unknown == []


def test_memory_is_read_at_the_address_that_the_target_has(lab: Lab) -> None:
    """The address decides as torch's does, and leads to the target's own memory."""
    found = lab.diagnose(
        """
        import ctypes, torch
        x = torch.full((4,), 3.0)
        y = x[1:]
        assert y.data_ptr() - x.data_ptr() == 4
        raw = ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float))
        result = torch.detach(torch.tensor([raw[i] for i in range(4)]))"""
    )
    assert found.keys == ["torch.detach:missing_api"]
    assert found.investigation.stages[0].outcome is not Outcome.CRASHED


def test_lists_of_packages_that_are_not_asked_for_torch_are_left_alone(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import importlib, importlib.metadata, importlib.util, torch
        assert importlib.metadata.version("numpy") and importlib.util.find_spec("json")
        result = importlib.import_module("torch.nn").Linear(2, 2)(torch.ones(1, 2))"""
    )
    assert found.keys == []


LUCK = {
    "time and the system's random numbers": "torch.tensor([time.perf_counter(), int.from_bytes(os.urandom(2), 'big')])",
    "the order of a set of objects": "torch.tensor([things[a] for a in set(things)])",
}
UNEQUAL = """
    import torch, os, time
    class A: ...
    things = {A(): i for i in range(40)}
    """


@pytest.mark.parametrize("name", LUCK)
def test_what_differs_from_itself_is_compared_by_shape_and_dtype_and_said(lab: Lab, name: str) -> None:
    found = lab.diagnose(UNEQUAL + f"result = {LUCK[name]}")
    assert found.keys == []
    (note,) = found.investigation.notes
    assert note == "two runs under torch differ in torch.tensor, the program's result: compared by shape and dtype only"
    assert [s.outcome for s in found.investigation.stages] == [Outcome.PASSED]


def test_gaps_behind_what_differs_from_itself_are_found(lab: Lab) -> None:
    found = lab.diagnose(
        UNEQUAL
        + """
    x = torch.tensor([float(os.urandom(1)[0]) + 1.0 for _ in range(16)]).reshape(1, 1, 4, 4)
    y = torch.nn.functional.avg_pool2d(x, 3, 1, 1)
    z = torch.full((2,), 1)
    result = y, z, isinstance(z.numel(), int)"""
    )
    assert found.keys == ["torch.Tensor.numel:value", "torch.full:dtype", "torch.nn.functional.avg_pool2d:value"]


def test_a_seed_that_is_another_each_time_is_replayed(lab: Lab) -> None:
    found = lab.diagnose("import torch, os\ntorch.manual_seed(os.urandom(1)[0])\nresult = torch.rand(3) * 2.0")
    assert found.keys == []


def test_one_gap_at_several_places_is_one_gap_with_its_places(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch
        x = torch.add(torch.zeros(2), 1)
        for _ in range(3):
            x = torch.add(x, 1)
        result = x"""
    )
    assert found.keys == ["torch.add:exception"]
    assert [site.line for site in found.gaps[0].sites] == [3, 5]


def test_one_run_finds_every_gap(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch
        from torch.optim.lr_scheduler import StepLR
        x = torch.ones(2)
        a = torch.full((2,), 1)
        b = torch.add(a, 1)
        c = torch.segment_reduce(x, 'sum', lengths=torch.tensor([2]))
        d = torch.nn.functional.relu(x, inplace=True)
        e = torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4), 3, 1, 1)
        m = torch.nn.BatchNorm2d(3)(torch.ones(1, 3, 2, 2))
        result = a.sum() + b.sum() + c.sum() + d.sum() + e.sum() + m.sum()"""
    )
    assert found.keys == [
        "torch.add:exception", "torch.full:dtype", "torch.nn.BatchNorm2d:missing_api",
        "torch.nn.functional.avg_pool2d:value", "torch.nn.functional.relu:missing_argument",
        "torch.optim.lr_scheduler.StepLR:missing_api",
        "torch.segment_reduce:missing_api",
    ]  # fmt: skip
    summary = found.investigation.summary
    assert summary is not None
    assert summary.reached == summary.torch_calls
    assert any("handed over" in line for line in found.gap("torch.segment_reduce:missing_api").evidence)


def test_what_reaches_the_result_of_the_program_is_said(lab: Lab) -> None:
    """A number type that the result shows, and one that it does not."""
    found = lab.diagnose(
        """
        import torch
        a = torch.full((2,), 1)
        b = torch.nn.functional.one_hot(torch.tensor([0, 1]), 3)
        result = a * 2, int(b.sum())"""
    )
    facts = {f.key.api: f.facts.get("reaches_result") for f in found.investigation.findings}
    assert facts == {"torch.full": True, "torch.nn.functional.one_hot": False}


def test_a_value_that_differs_reaches_the_result_through_the_calls_after_it(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch
        import torch.nn.functional as F
        a = F.avg_pool2d(torch.ones(1, 1, 2, 2), 3, padding=1)
        b = torch.full((2,), 1)
        c = F.avg_pool2d(torch.ones(1, 1, 4, 4), 3, padding=1) * 0.0
        result = torch.relu(a + 1.0), int(b.sum()), c"""
    )
    facts = {f.key.api: f.facts.get("reaches_result") for f in found.investigation.findings}
    assert facts == {"torch.nn.functional.avg_pool2d": True, "torch.full": False}


def test_a_copy_where_torch_shares_memory_is_not_blamed_for_a_later_call_that_differs_on_equal_values(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch
        e = torch.ones(1, 1, 1, 2).expand(1, 1, 2, 2)
        result = torch.nn.functional.avg_pool2d(e, 3, padding=1)"""
    )
    assert found.keys == ["torch.nn.functional.avg_pool2d:value"]


def test_what_a_framework_serialised_is_read_back_by_itself_past_other_gaps(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import pickle
        import torch
        a = torch.segment_reduce(torch.ones(2), "sum", lengths=torch.tensor([2]))
        result = a, pickle.loads(pickle.dumps(torch.arange(3)))"""
    )
    assert found.keys == ["torch.segment_reduce:missing_api"]


def test_what_is_done_with_the_items_of_a_data_loader_that_is_missing_is_seen(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        total = torch.zeros(1)
        for number, (x, y) in enumerate(DataLoader(TensorDataset(torch.arange(4.0), torch.arange(4)), batch_size=2)):
            total = total + torch.segment_reduce(x, "sum", lengths=torch.tensor([2])) + float(y.sum()) + number
        first = next(iter(DataLoader([1.0, 2.0], batch_size=2)))
        result = total, torch.nn.functional.avg_pool2d(first.reshape(1, 1, 1, 2).expand(1, 1, 2, 2), 3, padding=1)"""
    )
    assert found.keys == [
        "torch.nn.functional.avg_pool2d:value", "torch.segment_reduce:missing_api",
        "torch.utils.data.DataLoader:missing_api", "torch.utils.data.TensorDataset:missing_api",
    ]  # fmt: skip


def test_a_program_that_stops_has_no_result_that_could_be_another(lab: Lab) -> None:
    found = lab.diagnose("import torch\nresult = torch.segment_reduce(torch.ones(2), 'sum', lengths=torch.tensor([2]))")
    (finding,) = found.investigation.findings
    assert "reaches_result" not in finding.facts
    assert finding.facts["counterpart"] == ""


def test_gaps_behind_a_deadly_call_are_found(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch, sys, os, signal
        def die(layer):
            if 'paddle' in sys.modules: os.kill(os.getpid(), signal.SIGSEGV)
        torch.nn.Linear(2, 2).apply(die)
        torch.nn.Linear(2, 2).apply(die)
        result = torch.full((2,), 1)"""
    )
    findings = found.investigation.findings
    assert [(f.key.api, str(f.key.symptom), f.sites[0].line) for f in findings] == [
        ("torch.nn.Module.apply", "crash", 5), ("torch.nn.Module.apply", "crash", 6), ("torch.full", "dtype", 7),
    ]  # fmt: skip
    crash = found.gap("torch.nn.Module.apply:crash")
    assert crash.actual == "kills the process: SIGSEGV"


def test_stopping_at_the_first_gap(lab: Lab) -> None:
    found = lab.diagnose(
        "import torch\na = torch.full((2,), 1)\nb = torch.segment_reduce(a, 'sum')\nresult = a", stop_at_first=True
    )
    assert found.baseline.outcome is Outcome.FAILED
    both = """
        import torch
        a = torch.full((2,), 1)
        try:
            b = torch.add(a, 1)
        except RuntimeError:
            b = 0
        result = a + b"""
    assert lab.diagnose(both, stop_at_first=True).keys == ["torch.full:dtype"]
    assert lab.diagnose(both).keys == ["torch.add:exception", "torch.full:dtype"]


STAND_INS = expected_of("stand_ins.txt")


@pytest.mark.parametrize("name", STAND_INS)
def test_what_is_missing_has_a_stand_in_and_the_program_goes_on(lab: Lab, name: str) -> None:
    source, expected = STAND_INS[name]
    found = lab.diagnose(source)
    assert found.keys == expected
    summary = found.investigation.summary
    assert summary is not None
    assert summary.note == ""


def test_what_a_stand_in_cannot_do_is_said_and_is_no_gap_of_its_own(lab: Lab) -> None:
    found = lab.diagnose(
        """
        import torch
        from torch.utils.data import BatchSampler
        x = torch.arange(4.0)
        result = [x[batch].sum() for batch in BatchSampler(range(4), 2, False)]"""
    )
    assert found.keys == ["torch.utils.data.BatchSampler:missing_api"]
    summary = found.investigation.summary
    assert summary is not None
    assert summary.reached < summary.torch_calls
    assert summary.note.startswith("the outcome differs still: list of 2")


BASELINES = {
    "an exit": ("import torch, sys\nsys.exit(3)", Outcome.FAILED, "exits with 3"),
    "os._exit": ("import torch, os\nos._exit(0)", Outcome.CRASHED, "exit status 0 without a word"),
    "a segmentation fault": ("import torch, os\nos.kill(os.getpid(), 11)", Outcome.CRASHED, "SIGSEGV"),
    "a kill": ("import torch, os\nos.kill(os.getpid(), 9)", Outcome.CRASHED, "SIGKILL"),
    "an exception": ("import torch\nraise KeyError('k')", Outcome.FAILED, "raises KeyError: 'k'"),
    "an interrupt": ("import torch\nraise KeyboardInterrupt", Outcome.FAILED, "raises KeyboardInterrupt"),
    "a syntax error in a module": (
        "import other",
        Outcome.FAILED,
        "raises SyntaxError: '(' was never closed (other.py, line 1)",
    ),
}


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_that_does_not_run_is_an_outcome(lab: Lab, name: str) -> None:
    source, outcome, detail = BASELINES[name]
    found = lab.diagnose(source, other="x = (1\n")
    assert (found.baseline.outcome, found.baseline.detail) == (outcome, detail)
    assert found.done is None


def test_a_hang_is_an_outcome_that_names_the_call(lab: Lab) -> None:
    source = "import torch, time\nx = torch.ones(1)\nx.apply_(lambda v: time.sleep(600))"
    for limit in (0.5, 5.0, 50.0):  # until it is long enough for the program to have come there
        run = lab.run(source, timeout=limit)
        if run.in_flight_api.startswith("x.apply_"):
            break
    assert run.fate.timed_out
    assert run.fate.signal_name == "SIGKILL"
    assert run.in_flight_api == "x.apply_(lambda v: time.sleep(600))"
    assert [event.api for event in run.trace.events] == ["torch", "torch.ones"]


def test_a_call_that_hangs_under_paddle_is_stepped_over(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "_GRACE", 3.0)
    monkeypatch.setattr(bench_module, "_FACTOR", 1)
    found = lab.diagnose(
        """
        import torch, sys, time
        def wait(layer):
            if 'paddle' in sys.modules: time.sleep(600)
        torch.nn.Linear(2, 2).apply(wait)
        result = torch.full((2,), 1)"""
    )
    assert found.keys == ["torch.full:dtype", "torch.nn.Module.apply:timeout"]


def test_events_before_a_crash_are_kept(lab: Lab) -> None:
    run = lab.run("import torch, os\nfor i in range(1000):\n    x = torch.ones(1)\nos.kill(os.getpid(), 11)")
    assert run.died
    assert run.fate.code == -signal.SIGSEGV
    assert len(run.trace.events) == 1001


def test_a_third_party_module_that_imports_torch_is_observed_and_comes_into_scope(lab: Lab) -> None:
    found = lab.diagnose(
        "import torch, helper, plain\nresult = helper.f(torch.ones(2)) + plain.one()", helper=HELPER, plain=PLAIN
    )
    assert found.base.trace.users == ("__main__", "helper")
    assert found.keys == ["torch.add:exception"]
    assert [(site.path, site.line) for site in found.gaps[0].sites] == [("helper.py", 3)]


HELPER = "import torch\ndef f(x):\n    return torch.add(x, 1)\n"
PLAIN = "def one():\n    return 1\n"


def test_a_scope_that_is_too_small_is_told_from_a_gap(lab: Lab) -> None:
    library = replace(lab.library("x = 1", helper="import torch\nx = torch.ones(1)\n"), packages=("helper",))
    setting, probe = lab.setting(library), Probe(ProbeKind.IMPORTS, "imports", None, ("helper",))
    subject = Subject(lab.bench, setting, Stage.RUN, probe)
    base = baseline(subject)
    natural = lab.bench.run(RunRequest(setting, Runtime.TARGET, probe))
    assert natural.trace.ending.value["helper"].startswith("ModuleNotFoundError")
    done = investigate(subject, base, lambda _: None, stop_at_first=False)
    assert [(str(f.key.symptom), f.key.api) for f in done.findings][:1] == [("scope", "paddle.enable_compat")]
    assert classify(done.findings)[0].decision == "narrow_scope"


def test_a_callable_that_returns_a_model_and_its_inputs(lab: Lab) -> None:
    source = """
        import torch
        class M(torch.nn.Module):
            def forward(self, x): return torch.add(x, 1)
        def make():
            return M(), INPUTS"""
    for inputs in ("torch.ones(2)", "(torch.ones(2),)", "{'x': torch.ones(2)}"):
        assert lab.diagnose_call(source.replace("INPUTS", inputs)).keys == ["torch.add:exception"]


def test_a_callable_that_simply_runs(lab: Lab) -> None:
    found = lab.diagnose_call("import torch\ndef make():\n    return torch.full((2,), 1)")
    assert found.keys == ["torch.full:dtype"]


def test_imports_as_a_probe_tell_of_each_module(lab: Lab) -> None:
    library = replace(
        lab.library(
            "x = 1", good="import torch\nx = torch.ones(1)\n", bad="import torch.optim\n", worse="raise OSError('no')\n"
        ),
        packages=("good", "bad", "worse"),
    )
    found = lab.of(library, Probe(ProbeKind.IMPORTS, "imports", None, ("good", "bad", "worse")))
    assert found.keys == ["torch.optim:missing_api"]
    fates = found.base.trace.ending.value
    assert (fates["good"], fates["bad"]) == ("passed", "passed")
    assert fates["worse"].startswith("OSError")


def test_tests_as_a_probe(lab: Lab) -> None:
    source = (
        "import torch\nimport pytest\ndef test_good():\n    assert torch.ones(1).sum() == 1\ndef test_bad():\n"
        "    assert torch.full((1,), 1).dtype is torch.int64\n"
    )
    library = lab.library("x = 1", test_it=source)
    probe = Probe(ProbeKind.PYTEST, "test_it.py", library.root / "test_it.py")
    found = lab.of(replace(library, packages=("test_it",)), probe)
    assert list(found.base.trace.ending.value.values()) == ["passed", "passed"]
    assert found.keys == ["torch.full:dtype"]


# -- what is handed over, and what is not ---------------------------------------------------------------------------

CHAIN = "import torch\nx = torch.ones(2)\nresult = torch.full((2,), 1).to(torch.float32).add(x)\n"


def test_calls_of_one_chain_can_be_spared_one_by_one(lab: Lab) -> None:
    base, healed = lab.again(CHAIN)
    places = {e.place.text: e.place for e in base.trace.events}
    name = next(text for text in places if text == "torch.full((2,), 1)")
    _, spared = lab.again(CHAIN, spare=[node_name(places[name])])
    assert [e.healed for e in healed.trace.events if e.api == "torch.full"] == ["differs"]
    assert [e.healed for e in spared.trace.events if e.api == "torch.full"] == [""]
    _, skipped = lab.again(CHAIN, skip=[node_name(places[name])])
    assert [e.place.text for e in skipped.trace.events if e.what == "handed"] == [name]


def test_a_draw_is_replayed_in_a_natural_run(lab: Lab) -> None:
    source = "import torch\nx = torch.rand(3)\nl = torch.nn.Linear(3, 2)\nresult = x.sum(), l.weight.sum()"
    base, natural = lab.again(source, heal="draws")
    assert [e.healed for e in natural.trace.events if e.api == "torch.rand"] == ["draw"]
    assert [e.healed for e in natural.trace.events if e.api == "torch.nn.Linear"] == ["state"]
    assert len(base.trace.events) == len(natural.trace.events)


def test_nothing_is_healed_where_nothing_differs(lab: Lab) -> None:
    _, run = lab.again("import torch\nx = torch.ones(2, 3)\ny = x.reshape(3, 2) + 1.0\nresult = y.sum()")
    assert {e.healed for e in run.trace.events} == {""}


def test_a_planted_difference_is_seen(lab: Lab) -> None:
    same = "import torch\nx = torch.ones(2)\nresult = x * 2.0"
    base, run = lab.again(same.replace("*", "-"), same)
    assert [(d.want.api, str(d.symptom)) for d in divergences(base.trace, run.trace)] == [("torch.Tensor.mul", "value")]


def test_what_a_name_is_in_each_runtime(lab: Lab) -> None:
    setting = lab.setting(lab.library("x = 1"))
    names = ["torch.optim", "torch.nn.Linear", "torch.add", "torch.float32", "torch.no_such_name", "torch.no.such.name"]
    ours = lab.bench.ask(setting, Runtime.TORCH, names)
    assert list(ours.values()) == ["module", "class", "function", "other", "", ""]
    theirs = lab.bench.ask(setting, Runtime.TARGET_GLOBAL, names)
    assert (theirs["torch.optim"], theirs["torch.nn.Linear"], theirs["torch.no_such_name"]) == ("", "class", "")
    assert lab.bench.ask(setting, Runtime.TORCH, []) == {}


def test_real_torch_is_hidden_from_a_paddle_process(lab: Lab) -> None:
    run = lab.run(
        """
        import importlib.util, importlib.metadata, sys
        result = [importlib.util.find_spec(name) for name in ("functorch", "torchgen")]
        for name in ("torch", "paddlepaddle"):
            try:
                result.append(bool(importlib.metadata.version(name)))
            except importlib.metadata.PackageNotFoundError:
                result.append("hidden")
        import torch
        result.append(torch.__file__ == sys.modules["paddle"].__file__)""",
        Runtime.TARGET,
    )
    assert run.trace.ending.value == ("L", [None, None, "hidden", True, True])
