"""What one probe showed in; whether each difference, left in alone, changes the program's own result, out.

Asked only of a program that ends well under the target with another result than torch's: there the library, left as it
is, does something else in silence. One difference alone is the reason by itself; of several, each is left in by turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from migrate_lens.compare.divergences import Divergence
from migrate_lens.compare.findings import key_of, node_name
from migrate_lens.compare.outcome import disagreement
from migrate_lens.diagnosis.causes import Trial
from migrate_lens.model.report import Finding, Key
from migrate_lens.model.trace import Finished
from migrate_lens.runs.bench import Run

_TRIALS = 6


def with_effect_on_result(
    trial: Trial, natural: Run, healed: Run, kept: Sequence[Divergence], findings: Sequence[Finding]
) -> list[Finding]:
    """Add the fact where it could be settled.

    Args:
        trial: how to try.
        natural: the target's run as it is.
        healed: the target's run with torch's result at every difference.
        kept: the differences that became findings.
        findings: those findings, perhaps among others.
    """
    if not _in_silence(trial.base, natural):
        return list(findings)
    if len(findings) == 1:
        return [_told(findings[0], True)]
    if not trial.agrees(healed):
        return list(findings)
    nodes = {finding.key: _nodes(finding.key, kept) for finding in findings}
    everything = {node_name(event.place) for event in trial.base.trace.events}
    told: list[Finding] = []
    end = trial.budget()
    for number, finding in enumerate(findings):
        mine = nodes[finding.key]
        if not mine or number >= _TRIALS or time.monotonic() > end:
            told.append(finding)
            continue
        others = {name for key, names in nodes.items() if key != finding.key for name in names}
        # What follows from this difference is left in too: only the other gaps' calls get torch's result.
        run = trial.healed(spare=sorted(everything - others | mine))
        told.append(_told(finding, isinstance(run.trace.ending, Finished) and not trial.agrees(run)))
    return told


def _in_silence(base: Run, natural: Run) -> bool:
    """Whether the program ends well on both sides, with different results."""
    want, got = base.trace.ending, natural.trace.ending
    if not isinstance(want, Finished) or not isinstance(got, Finished):
        return False
    return disagreement(want, got) is not None


def _nodes(key: Key, kept: Sequence[Divergence]) -> set[str]:
    """Where the divergences of one finding stand."""
    return {node_name(divergence.got.place) for divergence in kept if key_of(divergence) == key}


def _told(finding: Finding, reaches: bool) -> Finding:
    return replace(finding, facts={**finding.facts, "reaches_result": reaches})
