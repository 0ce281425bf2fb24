"""Interpreters of which one cannot be started, in; an error, and no process of the other, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import marked_with

from migrate_lens.config import DEFAULT_TIMEOUT
from migrate_lens.model.errors import RuntimeUnavailable
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.request import TraceRequest, workers


def test_a_worker_whose_partner_cannot_be_started_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATE_LENS_TEST", str(tmp_path))
    waits = tmp_path / "python"
    waits.write_text("#!/bin/sh\nexec sleep 600\n")
    waits.chmod(0o755)
    missing = tmp_path / "missing"
    asked = TraceRequest("x.py", tmp_path, Runtime.TARGET, waits, missing, (), DEFAULT_TIMEOUT, Steering())
    with pytest.raises(RuntimeUnavailable, match="cannot start"), workers(asked, tuple(Runtime)):
        pass
    assert marked_with(str(tmp_path)) == set()
