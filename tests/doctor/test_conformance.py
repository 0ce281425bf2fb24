"""Real tracers against every cell, and tracers with planted defects: a claim that nothing proves fails here."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from defects import DEFECTS, Defective

from migrate_lens.doctor.cells import CELLS, Asker, asking, failure_of, run
from migrate_lens.model.report import Runtime
from migrate_lens.model.trace import Ending, Trace
from migrate_lens.runs.bench import Bench, Steering
from migrate_lens.runs.tracer import Capability, Seam, Tracer, Validation
from migrate_lens.runs.worker import Worker

pytestmark = pytest.mark.real

FLOOR = 22  # cells that are tried on each tracer; a suite that shrinks unseen proves less


class Remembering:
    """A tracer that is asked each question once, whatever is made of its answers."""

    def __init__(self, seam: Seam) -> None:
        self._seam = seam
        self._known: dict[object, object] = {}
        self.describe = seam.describe

    def _once(self, key: object, ask: object) -> object:
        if key not in self._known:
            self._known[key] = ask() if callable(ask) else ask
        return self._known[key]

    def reference_output(self, program: Path) -> Ending:
        found = self._once(("outcome", program.read_text()), lambda: self._seam.reference_output(program))
        assert isinstance(found, Ending)
        return found

    def capture(self, program: Path, steering: Steering) -> Trace:
        found = self._once((steering, program.read_text()), lambda: self._seam.capture(program, steering))
        assert isinstance(found, Trace)
        return found

    def validate(self, program: Path, trace: Trace) -> Validation:
        return self._seam.validate(program, trace)


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """Both frameworks."""
    python = Path(sys.executable)
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker(python, "torch") as torch,
        Worker(python, "paddle") as paddle,
    ):
        yield Bench(torch, paddle, Path(folder))


def tracer(bench: Bench, runtime: Runtime) -> Tracer:
    return Tracer(bench, runtime, ("program",), 60.0)


@pytest.mark.parametrize("runtime", list(Runtime))
def test_each_claim_of_a_tracer_is_proven_and_each_unproven_one_is_not_claimed(bench: Bench, runtime: Runtime) -> None:
    with asking(tracer(bench, runtime)) as ask:
        done = run(tracer(bench, runtime), ask)
    assert len(done) >= FLOOR
    assert [(t.cell.name, t.claim.standing, t.failure) for t in done if not t.honest] == []


def test_every_capability_has_a_cell() -> None:
    assert {cell.capability for cell in CELLS} == set(Capability)


@pytest.fixture(scope="module")
def remembered(bench: Bench) -> Remembering:
    return Remembering(tracer(bench, Runtime.TORCH))


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_caught(remembered: Remembering, tmp_path: Path, name: str) -> None:
    defect, capability = DEFECTS[name]
    ask = Asker(Defective(remembered, defect), tmp_path)
    failures = [failure_of(cell, ask) for cell in CELLS if cell.capability is capability]
    assert any(failures), f"no cell of {capability} sees {name}"


def test_without_a_defect_nothing_fails(remembered: Remembering, tmp_path: Path) -> None:
    ask = Asker(Defective(remembered, lambda trace: trace), tmp_path)
    assert [failure for cell in CELLS if (failure := failure_of(cell, ask))] == []
