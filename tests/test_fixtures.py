"""The fixture libraries, diagnosed whole: built, imported and run on both sides, with exactly the planted gaps."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from migrate_lens import config
from migrate_lens.commands import diagnose as pipeline
from migrate_lens.model.report import Outcome, Report, Runtime, Stage

pytestmark = [pytest.mark.real, pytest.mark.native]

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def _diagnosed(name: str, state: Path) -> Report:
    given = config.Given(torch_python=sys.executable, paddle_python=sys.executable, state=state)
    options = config.load(FIXTURES / name, given)
    return pipeline.diagnose(options, lambda line: None)


@pytest.mark.parametrize("name", ["muladd", "muladd_gaps", "kernel_gaps"])
def test_a_fixture_has_exactly_its_planted_gaps(name: str, tmp_path: Path) -> None:
    report = _diagnosed(name, tmp_path)
    expected = json.loads((FIXTURES / name / "expected.json").read_text())
    found = sorted((g.api, str(g.symptom), str(g.layer)) for g in report.gaps)
    assert found == sorted((e["api"], e["symptom"], e["layer"]) for e in expected)
    passed = {(s.runtime, s.stage) for s in report.stages if s.outcome is Outcome.PASSED}
    assert {(Runtime.TORCH, stage) for stage in (Stage.BUILD, Stage.IMPORT, Stage.RUN)} <= passed
    if not expected:
        assert {(Runtime.TARGET, stage) for stage in (Stage.BUILD, Stage.IMPORT, Stage.RUN)} <= passed
