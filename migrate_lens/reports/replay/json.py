"""Calls that were made again, each alone, in; JSON for scripts, out."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_lens.model.value import Difference
from migrate_lens.reports import PLAIN, View, calls
from migrate_lens.reports.scripted import Json, written
from migrate_lens.runs.replay import Judged


def render(judged: Sequence[Judged], view: View = PLAIN) -> str:
    """One object a call: the recording, the verdict, and what each side gave."""
    return written({"calls": [_call(call) for call in judged]})


def _call(call: Judged) -> Json:
    return calls.document(call.number, call.event) | {
        "verdict": call.verdict,
        "cannot": call.cannot,
        "differs": {str(runtime): _difference(differs) for runtime, differs in call.differs},
        "ops": {str(runtime): calls.operator_pairs(became.ops) for runtime, became in call.sides},
    }


def _difference(differs: Difference) -> Json:
    return {"aspect": differs.aspect, "expected": differs.expected, "actual": differs.actual}
