"""A trace, a comparison of two, or calls made again, in; JSON for scripts, out (``docs/traces.md`` has the fields)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from migrate_lens.compare.comparison import Comparison
from migrate_lens.compare.divergences import Divergence
from migrate_lens.doctor.examine import Health
from migrate_lens.model.trace import Event, Raised, Trace
from migrate_lens.model.value import describe, tag
from migrate_lens.runs.limits import Limit
from migrate_lens.runs.replay import Judged
from migrate_lens.runs.tracer import Validation

SCHEMA = 1


def trace(found: Trace, limits: Sequence[Limit], validation: Validation | None) -> str:
    """A whole trace, one object a call; values are described, not written out."""
    document = {
        "schema": SCHEMA, "about": found.about.as_json(), "outcome": _outcome(found),
        "calls": [_call(n, e) | _gradients(found, e) for n, e in enumerate(found.events, 1)],
        "limits": [{"code": x.code, "said": x.said, "remedy": x.remedy} for x in limits],
        "validation": _validation(validation),
    }  # fmt: skip
    return _written(document)


def comparison(found: Comparison) -> str:
    """Two traces side by side."""
    ours, theirs = ({id(e): n for n, e in enumerate(t.events, 1)} for t in (found.left, found.right))
    fault = found.backward_at_fault
    document = {
        "schema": SCHEMA, "left": found.left.about.as_json(), "right": found.right.about.as_json(), "same": found.same,
        "calls": [len(found.left.events), len(found.right.events)], "aligned": len(found.aligned),
        "by": "place" if found.by_place else "sequence",
        "divergences": [_divergence(d, ours[id(d.want)], theirs[id(d.got)]) for d in found.divergences],
        "only_left": [ours[id(e)] for e in found.only_left], "only_right": [theirs[id(e)] for e in found.only_right],
        "outcome": {"expected": found.outcome.expected, "actual": found.outcome.actual} if found.outcome else None,
        "backward_at_fault": ours[id(fault)] if fault else None,
        "random_apart": found.random_apart, "values_compared": found.values_compared,
    }  # fmt: skip
    return _written(document)


def replayed(judged: Sequence[Judged]) -> str:
    """Calls that were made again."""
    return _written({"schema": SCHEMA, "calls": [_judged(j) for j in judged]})


def _judged(judged: Judged) -> dict[str, Any]:
    differs = {str(r): {"aspect": d.aspect, "expected": d.expected, "actual": d.actual} for r, d in judged.differs}
    return {
        **_call(judged.number, judged.event), "verdict": judged.verdict, "cannot": judged.cannot,
        "differs": differs,
        "ops": {str(r): [[op.name, describe(op.value)] for op in b.ops] for r, b in judged.sides},
    }  # fmt: skip


def _validation(validation: Validation | None) -> dict[str, Any] | None:
    if validation is None:
        return None
    checks = [{"name": c.name, "standing": str(c.standing), "said": c.said} for c in validation.checks]
    return {"standing": str(validation.standing), "checks": checks}


def _outcome(found: Trace) -> dict[str, Any]:
    ending = found.ending
    if isinstance(ending, Raised):
        return {"how": ending.how, "said": ending.failure.type}
    said = describe(ending.value) if ending.has_value else ""
    return {"how": ending.how, "said": said}


def _call(number: int, event: Event) -> dict[str, Any]:
    value = event.value
    tensor = {"dtype": value[1], "shape": list(value[2])} if event.what == "call" and tag(value) == "T" else {}
    result = describe(value) if event.returned else event.failure and event.failure.type
    return {
        "call": number, "api": event.api, "what": event.what, "path": event.place.path, "line": event.place.line,
        "visit": event.visit, "text": event.place.text, **tensor,
        "result": result, "handed": event.healed,
        "ops": [[op.name, describe(op.value)] for op in event.ops],
    }  # fmt: skip


def _gradients(found: Trace, event: Event) -> dict[str, Any]:
    return {"gradients": {str(index): describe(g) for index, g in sorted(found.gradients.get(event.key, {}).items())}}


def _divergence(found: Divergence, left: int, right: int) -> dict[str, Any]:
    return {
        "calls": [left, right], "api": found.want.api, "symptom": str(found.symptom), "counts": found.hard,
        "path": found.got.place.path, "line": found.got.place.line,
        "expected": found.expected, "actual": found.actual,
    }  # fmt: skip


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, default=str) + "\n"


def health(found: Health) -> str:
    """What is installed, and the scorecard."""
    sides = [
        {
            "runtime": str(s.runtime), "environment": asdict(s.environment) if s.environment else None,
            "problem": s.problem, "remedy": s.remedy,
            "checks": [
                {"capability": str(t.cell.capability), "check": t.cell.name, "claim": t.claim.standing,
                 "code": t.claim.code, "failure": t.failure}
                for t in s.tried
            ],
        }
        for s in found.sides
    ]  # fmt: skip
    return _written({"schema": SCHEMA, "system": found.system, "compiler": found.compiler, "sides": sides})
