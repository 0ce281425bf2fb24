"""Two traces held against each other, in; JSON for scripts, out. Calls are named by their numbers."""

from __future__ import annotations

from migrate_lens.compare.comparison import Comparison
from migrate_lens.compare.divergences import Divergence
from migrate_lens.reports import PLAIN, View
from migrate_lens.reports.calls import Numbers
from migrate_lens.reports.scripted import Json, written


def render(comparison: Comparison, view: View = PLAIN) -> str:
    """What both are of, what differs, and what only one of them has."""
    left, right = comparison.left, comparison.right
    ours, theirs = Numbers(left), Numbers(right)
    fault = comparison.backward_at_fault
    return written(
        {
            "left": left.about.as_json(),
            "right": right.about.as_json(),
            "same": comparison.same,
            "calls": [len(left.events), len(right.events)],
            "aligned": len(comparison.aligned),
            "by": "place" if comparison.by_place else "sequence",
            "divergences": [_divergence(divergence, ours, theirs) for divergence in comparison.divergences],
            "only_left": [ours.of(event) for event in comparison.only_left],
            "only_right": [theirs.of(event) for event in comparison.only_right],
            "outcome": _outcome(comparison),
            "backward_at_fault": ours.of(fault) if fault else None,
            "random_apart": comparison.random_apart,
            "values_compared": comparison.values_compared,
        }
    )


def _divergence(divergence: Divergence, ours: Numbers, theirs: Numbers) -> Json:
    want, got = divergence.want, divergence.got
    return {
        "calls": [ours.of(want), theirs.of(got)],
        "api": want.api,
        "symptom": str(divergence.symptom),
        "counts": divergence.hard,
        "path": got.place.path,
        "line": got.place.line,
        "expected": divergence.expected,
        "actual": divergence.actual,
    }


def _outcome(comparison: Comparison) -> Json | None:
    outcome = comparison.outcome
    return {"expected": outcome.expected, "actual": outcome.actual} if outcome else None
