"""A recorded trace, in; JSON for scripts, one object a call, out."""

from __future__ import annotations

from typing import assert_never

from migrate_lens.model.trace import Died, Ending, Event, Exited, Finished, Parts, Raised, Stopped, Trace
from migrate_lens.model.value import describe
from migrate_lens.reports import PLAIN, View, calls
from migrate_lens.reports.scripted import Json, written
from migrate_lens.runs.limits import Limit, limits
from migrate_lens.runs.request import Recorded
from migrate_lens.runs.tracer import Validation


def render(recorded: Recorded, view: View = PLAIN) -> str:
    """The whole trace; values are described, not written out."""
    trace = recorded.trace
    return written(
        {
            "about": trace.about.as_json(),
            "outcome": _outcome(trace.ending),
            "calls": [calls.document(number, event) | _gradients(trace, event) for number, event in _numbered(trace)],
            "limits": [_limit(limit) for limit in limits(trace)],
            "validation": _validation(recorded.validation),
        }
    )


def _numbered(trace: Trace) -> enumerate[Event]:
    return enumerate(trace.events, 1)


def _outcome(ending: Ending) -> Json:
    return {"how": ending.how, "said": _said(ending), "exit_code": _exit_code(ending)}


def _exit_code(ending: Ending) -> int | None:
    """The program's own exit code; None where it was ended from without."""
    match ending:
        case Finished() | Parts():
            return 0
        case Raised():
            return 1
        case Exited(code):
            return code if isinstance(code, int) else int(code is not None)
        case Died() | Stopped():
            return None
        case _:
            assert_never(ending)


def _said(ending: Ending) -> str:
    """What the program raised or gave; empty where it has no result of its own."""
    if isinstance(ending, Raised):
        return ending.failure.type
    return describe(ending.value) if ending.has_value else ""


def _gradients(trace: Trace, event: Event) -> Json:
    reached = trace.gradients.get(event.key, {})
    return {"gradients": {str(index): describe(gradient) for index, gradient in sorted(reached.items())}}


def _limit(limit: Limit) -> Json:
    return {"code": limit.code, "said": limit.said, "remedy": limit.remedy}


def _validation(validation: Validation | None) -> Json | None:
    if validation is None:
        return None
    checks = [{"name": check.name, "standing": str(check.standing), "said": check.said} for check in validation.checks]
    return {"standing": str(validation.standing), "checks": checks}
