"""What one probe showed in; whether each difference, left in alone, changes the program's own result, out.

Asked only of a program that ends well under Paddle with another result than torch's: there the library, left as it is,
does something else in silence. One difference alone is the reason by itself; of several, each is left in by turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from migrate_lens.compare.divergences import Divergence
from migrate_lens.compare.findings import key_of, node_name
from migrate_lens.compare.outcome import disagreement
from migrate_lens.diagnosis.causes import Trial
from migrate_lens.model.report import Finding
from migrate_lens.runs.bench import Run

_TRIALS = 6


def reaching(trial: Trial, natural: Run, healed: Run, kept: Sequence[Divergence],
             findings: Sequence[Finding]) -> list[Finding]:  # fmt: skip
    """Add the fact where it could be settled.

    Args:
        trial: how to try.
        natural: Paddle's run as it is.
        healed: Paddle's run with torch's result at every difference.
        kept: the differences that became findings.
        findings: those findings, perhaps among others.
    """
    want, got = trial.base.trace.ending, natural.trace.ending
    if got.how != "finished" or want.how != "finished" or disagreement(want, got) is None:
        return list(findings)
    if len(findings) == 1:
        return [_said(findings[0], True)]
    if not trial.agrees(healed):
        return list(findings)
    nodes = {f.key: {node_name(d.got.place) for d in kept if key_of(d) == f.key} for f in findings}
    everything = {node_name(event.place) for event in trial.base.trace.events}
    done: list[Finding] = []
    end = trial.budget()
    for number, finding in enumerate(findings):
        if not nodes[finding.key] or number >= _TRIALS or time.monotonic() > end:
            done.append(finding)
            continue
        others = {name for key, names in nodes.items() if key != finding.key for name in names}
        # What follows from this difference is left in too: only the other gaps' calls get torch's result.
        run = trial.healed(spare=sorted(everything - others | nodes[finding.key]))
        done.append(_said(finding, run.trace.ending.how == "finished" and not trial.agrees(run)))
    return done


def _said(finding: Finding, reaches: bool) -> Finding:
    return replace(finding, facts={**finding.facts, "reaches_result": reaches})
