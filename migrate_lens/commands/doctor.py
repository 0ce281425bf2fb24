"""Interpreters in; what is installed in them, and what a tracer of each runtime was seen to be able to do, out."""

from __future__ import annotations

from pathlib import Path

from migrate_lens.config import Options
from migrate_lens.doctor.examine import Health, examine
from migrate_lens.model.progress import Progress
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.request import TraceRequest

CELL_TIMEOUT = 60.0  # seconds


def doctor(options: Options, progress: Progress) -> Health:
    """Try every cell of the conformance suite in each runtime; a runtime that is not there is said."""
    asked = TraceRequest(
        program="",
        folder=Path(),
        runtime=Runtime.TORCH,
        torch_python=options.torch_python,
        paddle_python=options.paddle_python,
        scope=(),
        timeout=CELL_TIMEOUT,
        steering=Steering(),
    )
    return examine(asked, progress)
