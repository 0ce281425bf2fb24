"""What is installed and what was seen to work, in; JSON for scripts, out."""

from __future__ import annotations

from dataclasses import asdict

from migrate_lens.doctor.cells import Tried
from migrate_lens.doctor.examine import Health, Side
from migrate_lens.reports import PLAIN, View
from migrate_lens.reports.scripted import Json, written


def render(health: Health, view: View = PLAIN) -> str:
    """The system, and each runtime with every check that was tried in it."""
    return written(
        {
            "system": health.system,
            "compiler": health.compiler,
            "sides": [_side(side) for side in health.sides],
        }
    )


def _side(side: Side) -> Json:
    return {
        "runtime": str(side.runtime),
        "environment": asdict(side.environment) if side.environment else None,
        "problem": side.problem,
        "remedy": side.remedy,
        "checks": [_check(tried) for tried in side.tried],
    }


def _check(tried: Tried) -> Json:
    return {
        "capability": str(tried.cell.capability),
        "check": tried.cell.name,
        "claim": tried.claim.standing,
        "code": tried.claim.code,
        "failure": tried.failure,
    }
