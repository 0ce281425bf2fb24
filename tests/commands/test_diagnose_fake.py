"""A made-up pair of runtimes, in; the whole way from the command line to the report, without a framework, out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_world import FakeBench, FakeWorker, Step, World
from sample_events import SCRIPT, call, ended, failed, failure, handed_at, place, tensor, trace

from migrate_lens.cli.app import main
from migrate_lens.commands import diagnose as pipeline
from migrate_lens.config import Options
from migrate_lens.diagnosis import ladder
from migrate_lens.model.report import Report
from migrate_lens.model.trace import Frame, Trace
from migrate_lens.reports import DIAGNOSIS
from migrate_lens.runs.worker import Fate

Diagnose = Callable[[World], Report]
T, U = tensor(1.0), tensor(2.0)
AGREES = World([Step(call(1, T))])
GAPS = World([
    Step(call(1, T, api="torch.full"), call(1, U, api="torch.full")),
    Step(call(place(2), T, api="torch.add"), failed(place(2), api="torch.add")),
    Step(call(place(3), ("F", "f"), api="torch.f"), failed(place(3), "absent", api="torch.f", kind="AttributeError")),
    Step(call(4, T, api="torch.g"), dies=11),
])  # fmt: skip
FAILS = World([Step(call(1, T))], torch_ends=ended("exited", 3))


@pytest.fixture
def options(tmp_path: Path) -> Options:
    script = tmp_path / "script.py"
    script.write_text("import torch\n")
    state = tmp_path / "state"
    state.mkdir()
    python = Path(sys.executable)
    return Options(script, (), python, python, (), False, 10.0, False, False, state)


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], None]:
    """Put a world in place of both runtimes."""

    def put(world: World) -> None:
        monkeypatch.setattr(pipeline, "Worker", FakeWorker)
        monkeypatch.setattr(pipeline, "Bench", lambda torch, paddle, folder: FakeBench(world, folder))

    return put


@pytest.fixture
def diagnose(within: Callable[[World], None], options: Options) -> Diagnose:
    def run(world: World) -> Report:
        within(world)
        return pipeline.diagnose(options, lambda _: None)

    return run


def test_a_program_that_agrees(diagnose: Diagnose) -> None:
    report = diagnose(AGREES)
    assert (report.verdict, report.gaps, report.first) == ("no_gaps", (), None)
    assert [(str(s.runtime), str(s.stage), str(s.outcome)) for s in report.stages] == [
        ("torch", "run", "passed"), ("paddle", "run", "passed"),
    ]  # fmt: skip
    assert (report.traces[0].torch_calls, report.traces[0].reached) == (1, 1)


class Withheld(World):
    """Paddle's object is no API object, so that nothing sees its missing attribute unless it is handed over."""

    def paddle(self, heal: str, spare: Sequence[str], skip: Sequence[str]) -> tuple[Trace, Fate]:
        first, second = (step.torch for step in self.steps)
        raised = failure("AttributeError", missing="_schema")
        ending = ended("raised", raised, Frame(SCRIPT, 2, 2, 0, 9, "__main__"))
        if heal == "all":
            return trace([first, handed_at(second.place)], ended(value=0, has=True)), Fate(0, False, 0.01, 1000)
        return trace([first], ending), Fate(0, False, 0.01, 1000)


def test_what_was_only_handed_over_is_named_by_the_run_that_lacked_it(diagnose: Diagnose) -> None:
    api = "torch._ops.OpOverload._schema"
    steps = [Step(call(1, ("O", "x"), api="torch.ops.default")), Step(call(place(2, kind="a"), 1, api=api))]
    assert [(gap.id, str(gap.layer), str(gap.category)) for gap in diagnose(Withheld(steps)).gaps] == [
        (f"{api}:missing_api", "python_interface", "B")
    ]


def test_a_program_with_gaps(diagnose: Diagnose) -> None:
    report = diagnose(GAPS)
    assert report.verdict == "gaps"
    assert [gap.id for gap in report.gaps] == [
        "torch.g:crash",
        "torch.full:value",
        "torch.add:exception",
        "torch.f:missing_api",
    ]
    assert all(gap.rule for gap in report.gaps)
    assert report.first is not None
    assert report.first.torch_path == "torch.full (f1())"
    assert [str(s.runtime) for s in report.stages] == ["torch", "paddle", "paddle-global"]


def test_a_baseline_that_fails_ends_it(diagnose: Diagnose) -> None:
    report = diagnose(FAILS)
    assert (report.verdict, report.gaps, len(report.stages)) == ("baseline_failed", (), 1)
    assert report.stages[0].detail == "exits with 3"


def test_a_program_without_a_torch_call_is_no_pass(diagnose: Diagnose) -> None:
    report = diagnose(World([]))
    assert (report.verdict, report.gaps) == ("not_exercised", ())
    assert "No gaps" not in DIAGNOSIS.render(report, "text")
    assert "Nothing was exercised" in DIAGNOSIS.render(report, "text")


def test_a_failed_baseline_names_the_line(diagnose: Diagnose) -> None:
    raised = ended("raised", failure("KeyError", "k"), Frame(SCRIPT, 7, 7, 0, 9, "__main__"))
    (stage,) = diagnose(World([Step(call(1, T))], torch_ends=raised)).stages
    assert f"{SCRIPT}:7" in stage.detail


def test_a_run_that_reaches_less_says_so_in_the_verdict(diagnose: Diagnose) -> None:
    report = diagnose(World([Step(call(line, T), dies=11) for line in range(1, 60)]))  # more than a run goes on past
    assert report.shortfalls
    for short in report.shortfalls:
        assert short.reason.startswith("reached ")
        assert short.reason in DIAGNOSIS.render(report, "markdown").replace("\\", "")


@pytest.mark.parametrize("world", [AGREES, GAPS, FAILS], ids=["agrees", "gaps", "fails"])
@pytest.mark.parametrize("name", DIAGNOSIS.formats())
def test_every_format_shows_it(name: str, world: World, diagnose: Diagnose) -> None:
    report = diagnose(world)
    shown = DIAGNOSIS.render(report, name)
    for gap in report.gaps:
        assert gap.api in shown.replace("\\", "")


@pytest.mark.parametrize(("world", "code"), [(AGREES, 0), (GAPS, 1), (FAILS, 3)], ids=["agrees", "gaps", "fails"])
def test_the_command_line(
    world: World, code: int, within: Callable[[World], None], options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    within(world)
    state = options.state.parent / "fresh"
    assert main(["diagnose", str(options.path), "--state", str(state), "--format", "json"]) == code
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["verdict"] == {0: "no_gaps", 1: "gaps", 3: "baseline_failed"}[code]
    assert len(report["gaps"]) == (4 if code == 1 else 0)
    assert {path.name for path in state.iterdir()} >= {".gitignore"}


def test_the_same_world_gives_the_same_report(diagnose: Diagnose) -> None:
    assert diagnose(GAPS).gaps == diagnose(GAPS).gaps


def test_a_program_that_observation_changes_is_named_in_the_verdict_and_its_gaps_are_marked(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "changed_by_observation", lambda subject, base: "line 1 of its output is other")
    report = diagnose(GAPS)
    said = " ".join(DIAGNOSIS.render(report, "text").split())
    assert "observation changes it: line 1 of its output is other" in said
    assert report.gaps
    assert all(any("may come of observation" in line for line in gap.evidence) for gap in report.gaps)
