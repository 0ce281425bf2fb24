"""Runs of a program that nobody looks at, in; what observation changed of it, if anything, out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from fake_world import FakeBench, World
from sample_events import call, ended, failure, tensor, trace

from migrate_lens.diagnosis.plain import changed_by_observation
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Outcome, Probe, ProbeKind, Runtime, Stage, StageResult
from migrate_lens.model.trace import Ending
from migrate_lens.runs.bench import Run, RunRequest, Setting
from migrate_lens.runs.worker import Fate

FINISHED = ended(value=1, has=True)


@dataclass
class Plain(FakeBench):
    """A bench on which a program does one thing after the other when nobody looks."""

    folder: Path
    does: Iterator[tuple[str, Ending]]
    numbers: Iterator[int] = field(default_factory=count)
    world: World = field(default_factory=lambda: World([]))

    def run(self, request: RunRequest) -> Run:
        assert not request.observe
        return self.ran(*next(self.does))

    def ran(self, printed: str, ending: Ending) -> Run:
        file = self.folder / f"{next(self.numbers)}.trace"
        file.with_suffix(".out").write_text(printed)
        return Run(Runtime.TORCH, trace([call(1, tensor(1.0))], ending), file, Fate(0, False, 0.01, 1000), "")


def changed(
    folder: Path, observed: tuple[str, Ending], *plain: tuple[str, Ending], kind: ProbeKind = ProbeKind.SCRIPT
) -> str:
    script = folder / "prog.py"
    script.write_text("import torch\n")
    bench = Plain(folder, iter(plain))
    setting = Setting(discover(script), dict.fromkeys(Runtime, ()), (), 10.0)
    result = StageResult(Runtime.TORCH, Stage.RUN, "prog.py", Outcome.PASSED, 0.0)
    subject = Subject(bench, setting, Stage.RUN, Probe(kind, "prog.py", script))
    return changed_by_observation(subject, Baseline(bench.ran(*observed), result, observed=True))


def test_a_program_that_does_the_same_is_run_once_more_and_nothing_is_said(tmp_path: Path) -> None:
    assert not changed(tmp_path, ("a\n", FINISHED), ("a\n", FINISHED))


def test_the_first_line_that_is_printed_otherwise_is_named(tmp_path: Path) -> None:
    plain = ("a\nb\nc\n", FINISHED)
    said = changed(tmp_path, ("a\nx\ny\n", FINISHED), plain, plain)
    assert said == "line 2 of its output is 'b' when nobody looks, 'x' when it is observed"
    said = changed(tmp_path, ("a\nb\n", FINISHED), plain, plain)
    assert said == "line 3 of its output is 'c' when nobody looks, missing when it is observed"


@pytest.mark.parametrize("other", [ended(value=2, has=True), ended("exited", 3), ended("raised", failure("KeyError"))])
def test_another_outcome_is_named(tmp_path: Path, other: Ending) -> None:
    plain = ("", FINISHED)
    assert "when nobody looks" in changed(tmp_path, ("", other), plain, plain)


OWN = {
    "lines that no two runs share": ("1\nsame\n", "2\nsame\n", "3\nsame\n"),
    "addresses": ("<f at 0x7f01>\n", "<f at 0x7f02>\n", "<f at 0x7f02>\n"),
    "how long it took": ("0.7s of 12 ms\n", "0.1s of 3 ms\n", "0.1s of 3 ms\n"),
}


@pytest.mark.parametrize("what", OWN)
def test_what_two_plain_runs_differ_in_says_nothing(tmp_path: Path, what: str) -> None:
    observed, *plain = ((printed, FINISHED) for printed in OWN[what])
    assert not changed(tmp_path, observed, *plain)


def test_an_outcome_that_plain_runs_do_not_share_says_nothing(tmp_path: Path) -> None:
    observed, *plain = (("", ended(value=value, has=True)) for value in (1, 2, 3))
    assert not changed(tmp_path, observed, *plain)


def test_what_a_test_run_prints_is_not_compared(tmp_path: Path) -> None:
    plain = ("1 passed in a while", FINISHED)
    assert not changed(tmp_path, ("1 passed in no time", FINISHED), plain, plain, kind=ProbeKind.PYTEST)
