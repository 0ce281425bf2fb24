"""Findings of one probe in; the same, with the low-level operators below the first that is a difference of values, out.

The call alone is made again on both sides from torch's recorded inputs, so what is shown is not a matter of its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate_lens.model.report import Finding, Runtime, Symptom
from migrate_lens.model.target import TARGET
from migrate_lens.model.trace import Op, Trace
from migrate_lens.model.value import describe
from migrate_lens.runs.bench import Bench, Setting
from migrate_lens.runs.replay import Again, Remade, Replayer, alone, odd_one, replayable

_OF_VALUES = (Symptom.VALUE, Symptom.SHAPE, Symptom.DTYPE)
_SHOWN = 6


def with_lower_operators(
    bench: Bench, setting: Setting, trace: Trace, findings: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Look below the first difference of values.

    Args:
        bench: the workers.
        setting: of the diagnosis.
        trace: torch's, with values.
        findings: of the probe.
    """
    replayer = Replayer(bench, alone(setting.library))
    for index, finding in enumerate(findings):
        number = _call(trace, finding) if finding.key.symptom in _OF_VALUES else 0
        said = _said(replayer, trace, number) if number else ""
        if said:
            told = replace(finding, evidence=(*finding.evidence, said))
            return (*findings[:index], told, *findings[index + 1 :])
    return tuple(findings)


def _call(trace: Trace, finding: Finding) -> int:
    """The number of the call that a finding is about; 0 where no recorded call is."""
    lines = {site.line for site in finding.sites}
    for number, event in enumerate(trace.events, 1):
        if event.api == finding.key.api and event.returned and event.place.line in lines:
            return number
    return 0


def _said(replayer: Replayer, trace: Trace, number: int) -> str:
    """What runs below a call on both sides, and an operator that gives what none of the others does; or nothing."""
    calls, _ = replayable(trace, [number])
    if not calls:
        return ""
    ours = _below(replayer, calls, Runtime.TORCH)
    theirs = _below(replayer, calls, Runtime.TARGET_GLOBAL)
    if not ours or not theirs:
        return ""
    said = f"alone on equal inputs torch runs {_names(ours)}, {TARGET.title} {_names(theirs)}"
    odd = odd_one(ours, theirs)
    if odd is None:
        return said
    return f"{said}; {odd.name} gives {describe(odd.value)}, which none of {TARGET.title}'s does"


def _below(replayer: Replayer, calls: dict[int, Again], runtime: Runtime) -> tuple[Op, ...]:
    """The operators below one call, where it returns."""
    (became,) = replayer.make(calls, runtime, zoom=True).values()
    return became.ops if became.how is Remade.VALUE else ()


def _names(ops: Sequence[Op]) -> str:
    more = f" and {len(ops) - _SHOWN} more" if len(ops) > _SHOWN else ""
    return ", ".join(op.name for op in ops[:_SHOWN]) + more
