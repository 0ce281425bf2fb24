"""Made-up programs, in; which of their differences a diagnosis names, found by trial, out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_world import FakeBench, Step, World
from hypothesis import given
from hypothesis import strategies as st
from sample_events import call, ended, failed, place, tensor

from migrate_lens.classify import classify
from migrate_lens.diagnosis.investigate import Investigation, baseline, investigate
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.model.report import Library, Outcome, Probe, ProbeKind, Runtime, Stage, StageResult
from migrate_lens.runs.bench import RunRequest, Setting

LIBRARY = Library(Path("/lib"), "script", Path("/lib/script.py"), Path("/lib"), (), (), None, (), (), "found")
SETTING = Setting(LIBRARY, dict.fromkeys(Runtime, ()), (), 10.0)
PROBE = Probe(ProbeKind.SCRIPT, "script.py", Path("/lib/script.py"))
T, U = tensor(1.0), tensor(2.0)


def investigated(world: World, folder: Path, *, stop_at_first: bool = False) -> Investigation:
    subject = Subject(FakeBench(world, folder), SETTING, Stage.RUN, PROBE)
    return investigate(subject, baseline(subject), lambda _: None, stop_at_first=stop_at_first)


def named(done: Investigation) -> list[str]:
    return [f"{f.key.api.removeprefix('torch.')}:{f.key.symptom}" for f in done.findings]


def soft(line: int, api: str, **more: Any) -> Step:
    """A difference of a Python type: it counts only where the outcome depends on it."""
    event = call(line, 1, api=f"torch.{api}", **more)
    return Step(event, replace(event, value=2))


def hard(line: int, api: str) -> Step:
    """A difference of tensors."""
    event = call(line, T, api=f"torch.{api}")
    return Step(event, replace(event, value=U))


def raising(line: int, api: str) -> Step:
    """A call that raises under Paddle only."""
    at = place(line)
    return Step(call(at, T, api=f"torch.{api}"), failed(at, api=f"torch.{api}"))


SAME = Step(call(99, T))


def test_nothing_differs(tmp_path: Path) -> None:
    world = World([SAME])
    done = investigated(world, tmp_path)
    assert named(done) == []
    assert [s.outcome for s in done.stages] == [Outcome.PASSED]
    assert [run[:2] for run in world.runs] == [("torch", "none"), ("paddle", "draws")]


def test_a_soft_difference_without_effect_is_no_finding_and_costs_no_run(tmp_path: Path) -> None:
    world = World([soft(1, "a"), SAME])
    assert named(investigated(world, tmp_path)) == []
    assert len(world.runs) == 2


def test_a_soft_difference_that_the_outcome_depends_on(tmp_path: Path) -> None:
    world = World([soft(1, "a"), SAME], lambda left: len(left))
    assert named(investigated(world, tmp_path)) == ["a:value"]


@pytest.mark.parametrize("guilty", ["a", "b", "c", "d"])
def test_of_several_soft_differences_the_guilty_one_is_named(guilty: str, tmp_path: Path) -> None:
    steps = [soft(i, api) for i, api in enumerate("abcd", 1)]
    done = investigated(World(steps, lambda left: f"torch.{guilty}" in left), tmp_path)
    assert named(done) == [f"{guilty}:value"]


@given(st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_all_guilty_ones_are_named_and_no_other(tmp_path_factory: pytest.TempPathFactory, guilty: set[str]) -> None:
    steps = [soft(i, api) for i, api in enumerate("abcdefgh", 1)]
    wanted = {f"torch.{g}" for g in guilty}
    world = World(steps, lambda left: len(left & wanted))
    done = investigated(world, tmp_path_factory.mktemp("world"))
    assert named(done) == [f"{g}:value" for g in sorted(guilty)]
    assert len(world.runs) < 40


def test_a_hard_difference_is_named_though_the_outcome_is_the_same(tmp_path: Path) -> None:
    done = investigated(World([hard(1, "a"), SAME]), tmp_path)
    assert named(done) == ["a:value"]


def test_hard_and_soft_together(tmp_path: Path) -> None:
    done = investigated(World([hard(1, "a"), soft(2, "b"), soft(3, "c")], lambda left: "torch.c" in left), tmp_path)
    assert named(done) == ["a:value", "c:value"]


def test_what_lies_behind_an_exception_is_found(tmp_path: Path) -> None:
    done = investigated(World([raising(1, "a"), hard(2, "b"), raising(3, "c")]), tmp_path)
    assert named(done) == ["a:exception", "b:value", "c:exception"]
    assert done.summary is not None
    assert (done.summary.torch_calls, done.summary.reached) == (3, 3)


def test_the_first_only(tmp_path: Path) -> None:
    done = investigated(World([hard(1, "a"), raising(2, "b"), raising(3, "c")]), tmp_path, stop_at_first=True)
    assert named(done) == ["a:value"]


@pytest.mark.parametrize(("signal", "symptom"), [(11, "crash"), (6, "crash"), (0, "timeout")])
def test_deadly_calls_are_stepped_over(signal: int, symptom: str, tmp_path: Path) -> None:
    deadly = [Step(call(line, T, api=f"torch.{api}"), dies=signal) for line, api in ((1, "a"), (3, "c"))]
    world = World([deadly[0], hard(2, "b"), deadly[1], SAME])
    assert named(investigated(world, tmp_path)) == [f"a:{symptom}", f"c:{symptom}", "b:value"]


def test_trials_step_over_deadly_calls_too(tmp_path: Path) -> None:
    world = World([soft(1, "a"), Step(call(2, T, api="torch.b"), dies=11), SAME])
    assert named(investigated(world, tmp_path)) == ["b:crash"]


def test_a_program_that_dies_again_and_again_comes_to_an_end(tmp_path: Path) -> None:
    world = World([Step(call(line, T, api=f"torch.f{line}"), dies=11) for line in range(1, 20)])
    done = investigated(world, tmp_path)
    assert 1 <= len(done.findings) <= 10
    assert done.summary is not None
    assert done.summary.note == "stopped: dies"


def test_a_boundary_of_the_proxy_is_told_from_a_gap(tmp_path: Path) -> None:
    world = World([raising(1, "a")], everywhere=True)
    done = investigated(world, tmp_path)
    assert named(done)[0] == "paddle.enable_compat:scope"
    assert [str(s.runtime) for s in done.stages] == ["paddle", "paddle-global"]
    assert classify(done.findings)[0].decision == "narrow_scope"


def test_an_outcome_that_no_call_explains_is_never_silent(tmp_path: Path) -> None:
    world = World([SAME])
    world.paddle = lambda heal, spare, skip: (replace(world.torch()[0], ending=ended(value=7)), world.torch()[1])  # type: ignore[method-assign]
    done = investigated(world, tmp_path)
    assert named(done) == ["f:value"]
    assert done.findings[0].key.detail == "outcome"


def test_a_missing_module_is_known_as_one(tmp_path: Path) -> None:
    at = place(1, kind="p")
    step = Step(
        call(at, ("M", "torch.optim"), api="torch.optim"), failed(at, "absent", api="torch.optim", kind="ImportError")
    )
    done = investigated(World([step], kinds={"torch.optim": "module"}), tmp_path)
    assert done.findings[0].facts["missing_module"] is True
    assert done.findings[0].facts["module"] == "torch.optim"
    other = Step(call(at, ("F", "torch.f"), api="torch.f"), failed(at, "absent", api="torch.f", kind="AttributeError"))
    assert investigated(World([other]), tmp_path).findings[0].facts["missing_module"] is False


def test_a_program_that_cannot_be_observed_is_compared_by_its_outcome(tmp_path: Path) -> None:
    bench = FakeBench(World([hard(1, "a")], lambda left: len(left)), tmp_path)
    run = bench.run(RunRequest(SETTING, Runtime.TORCH, PROBE))
    base = Baseline(run, StageResult(Runtime.TORCH, Stage.RUN, PROBE.spec, Outcome.PASSED, 0.0), observed=False)
    subject = Subject(bench, SETTING, Stage.RUN, PROBE)
    done = investigate(subject, base, lambda _: None, stop_at_first=False)
    assert len(done.findings) == 1
    assert done.summary is not None
    assert done.summary.note.startswith("not observed")


def test_a_baseline_that_fails_is_tried_untouched(tmp_path: Path) -> None:
    world = World([SAME], torch_ends=ended("exited", 2))
    base = baseline(Subject(FakeBench(world, tmp_path), SETTING, Stage.RUN, PROBE))
    assert (base.result.outcome, base.result.detail, base.observed) == (Outcome.FAILED, "exits with 2", False)
    assert len(world.runs) == 2
    assert base.run.trace.ending.value == 2
