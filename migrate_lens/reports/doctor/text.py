"""What is installed and what was seen to work, in; lines for a terminal with a scorecard, out."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens import media
from migrate_lens.doctor.examine import Health, Mark, Score, Side
from migrate_lens.reports import PLAIN, View
from migrate_lens.reports.tables import columns
from migrate_lens.reports.wording import environment
from migrate_lens.runs.tracer import Capability

LABEL = 13


def render(health: Health, view: View = PLAIN) -> str:
    """The system, each runtime, the scorecard, and every claim that did not hold."""
    lines = [_labelled("system", health.system), _labelled("compiler", health.compiler)]
    for side in health.sides:
        lines += _side(side)
    lines += ["", *columns(scorecard(health))]
    for side in health.sides:
        lines += _failures(side)
    return "\n".join(lines) + "\n"


def _labelled(label: str, value: str) -> str:
    return f"{label:<{LABEL}} {value}"


def _side(side: Side) -> Iterator[str]:
    if side.environment is not None:
        yield _labelled(side.runtime, environment(side.environment))
    else:
        yield _labelled(side.runtime, media.line(side.problem))
        yield _labelled("", f"try: {media.line(side.remedy)}")


def scorecard(health: Health) -> list[tuple[str, ...]]:
    """A row per capability, a column per runtime that is there."""
    present = [side for side in health.sides if side.environment]
    head = ("capability", *(str(side.runtime) for side in present))
    rows = [(str(capability), *(_score(side.score(capability)) for side in present)) for capability in Capability]
    return [head, *rows]


def _score(score: Score) -> str:
    match score.mark:
        case Mark.UNTRIED:
            return ""
        case Mark.FAILS:
            return "FAILS"
        case Mark.SUPPORTED | Mark.UNSUPPORTED | Mark.UNPROVEN:
            return f"{score.mark} ({score.code})" if score.code else score.mark


def _failures(side: Side) -> Iterator[str]:
    """Checks that failed although something else is claimed."""
    for tried in side.tried:
        if not tried.honest and tried.failure:
            yield f"{side.runtime}: {tried.cell.name}: {media.line(tried.failure)}"
