"""Findings of one probe in; the same, with the low-level operators below the first that is a difference of values, out.

The call alone is made again on both sides from torch's recorded inputs, so what is shown is not a matter of its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate_lens.model.report import Finding, Runtime, Symptom
from migrate_lens.model.trace import Op, Trace
from migrate_lens.model.value import describe
from migrate_lens.runs.bench import Bench, Setting
from migrate_lens.runs.replay import VALUE, Replayer, alone, odd_one, replayable

_OF_VALUES = (Symptom.VALUE, Symptom.SHAPE, Symptom.DTYPE)
_SHOWN = 6


def beneath(bench: Bench, setting: Setting, trace: Trace, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Look below the first difference of values.

    Args:
        bench: the workers.
        setting: of the diagnosis.
        trace: torch's, with values.
        findings: of the probe.
    """
    for index, finding in enumerate(findings):
        number = _call(trace, finding) if finding.key.symptom in _OF_VALUES else 0
        said = _said(bench, setting, trace, number) if number else ""
        if said:
            found = replace(finding, evidence=(*finding.evidence, said))
            return (*findings[:index], found, *findings[index + 1 :])
    return tuple(findings)


def _call(trace: Trace, finding: Finding) -> int:
    """The number of the call that a finding is about; 0 where no recorded call is."""
    lines = {site.line for site in finding.sites}
    for number, event in enumerate(trace.events, 1):
        if event.api == finding.key.api and event.what == "call" and event.place.line in lines:
            return number
    return 0


def _said(bench: Bench, setting: Setting, trace: Trace, number: int) -> str:
    able, _ = replayable(trace, [number])
    if not able:
        return ""
    replayer = Replayer(bench, alone(setting.library))
    made = [replayer.make(able, side, zoom=True).get(number) for side in (Runtime.TORCH, Runtime.TARGET_GLOBAL)]
    ours, theirs = ((b.ops if b is not None and b.how == VALUE else ()) for b in made)
    if not ours or not theirs:
        return ""
    odd = odd_one(ours, theirs)
    more = f"; {odd.name} gives {describe(odd.value)}, which none of Paddle's does" if odd else ""
    return f"alone on equal inputs torch runs {_names(ours)}, Paddle {_names(theirs)}{more}"


def _names(ops: Sequence[Op]) -> str:
    names = [op.name for op in ops[:_SHOWN]]
    return ", ".join(names) + (f" and {len(ops) - _SHOWN} more" if len(ops) > _SHOWN else "")
