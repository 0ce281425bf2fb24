"""Calls that were made again, each alone, in; lines for a terminal, out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from migrate_lens import media
from migrate_lens.reports import PLAIN, View
from migrate_lens.reports.calls import called, side_by_side
from migrate_lens.runs.replay import Judged, Verdict

_ONE: Final = {
    Verdict.OPERATOR: "it differs on equal inputs",
    Verdict.INPUTS: "the same on equal inputs; a difference in the program came in with its inputs",
    Verdict.NOT_REPRODUCED: "alone, it does not give what was recorded",
    Verdict.CANNOT: "it cannot be made alone",
}
_SEVERAL: Final = {
    Verdict.OPERATOR: "differ on equal inputs",
    Verdict.INPUTS: "are the same on equal inputs",
    Verdict.NOT_REPRODUCED: "do not give what was recorded",
    Verdict.CANNOT: "cannot be made alone",
}


def render(judged: Sequence[Judged], view: View = PLAIN) -> str:
    """What the calls give; of several, those that are the same are only counted."""
    several = len(judged) > 1
    lines: list[str] = []
    for call in judged:
        if not several or call.verdict is not Verdict.INPUTS:
            lines += _call(call)
    if several:
        tally = Counter(call.verdict for call in judged)
        counted = (f"{number} {_SEVERAL[verdict]}" for verdict, number in tally.most_common())
        lines += ["", ", ".join(counted)]
    return "\n".join(lines) + "\n"


def _call(call: Judged) -> Iterator[str]:
    yield f"{called(call.number, call.event)}: {_ONE[call.verdict]}"
    if call.cannot:
        yield f"  {media.line(call.cannot)}"
    for runtime, differs in call.differs:
        yield f"  recorded {media.line(differs.expected)}"
        yield f"  {runtime} {media.line(differs.actual)}"
    if len(call.sides) > 1:
        (_, ours), (_, theirs) = call.sides
        yield from (f"  {line}" for line in side_by_side(ours.ops, theirs.ops))
