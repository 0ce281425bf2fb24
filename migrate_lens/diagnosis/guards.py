"""A healed run in; one in which the program's own guards are answered as the target does, where that can be, out.

A program that asks ``hasattr``, or catches what is raised, has a way of its own around what is missing. What torch's
answer leads to says nothing about the target then, unless the program comes to another outcome without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate_lens.compare.divergences import Divergence, guarded, says_absent
from migrate_lens.compare.findings import key_of
from migrate_lens.diagnosis.causes import Halving, Trial
from migrate_lens.model.report import Symptom
from migrate_lens.runs.bench import Run


def with_own_answers(trial: Trial, healed: Run, met: Sequence[Divergence]) -> Run:
    """The run to judge by: each guard that the outcome does not depend on is left as the target has it.

    Args:
        trial: how to try.
        healed: the run that is handed torch's answer at each guard.
        met: its differences.
    """
    guards = [d for d in met if _is_guard(d)]
    if not guards or not any(d.hard for d in met):
        return healed
    run = trial.leaving_in(guards)
    if trial.agrees(run):
        return run
    groups: dict[object, list[Divergence]] = {}
    for guard in guards:
        groups.setdefault(key_of(guard), []).append(guard)
    needed = {id(d) for group in Halving(trial, healed.trace.ending).needed(list(groups.values())) for d in group}
    free = [d for d in guards if id(d) not in needed]
    return trial.leaving_in(free) if free else healed


def _is_guard(divergence: Divergence) -> bool:
    """Whether the program itself provides for the target's answer."""
    if divergence.hard or not divergence.got.healed:
        return False
    if divergence.got.failure is not None:
        return guarded(divergence.got)
    return says_absent(divergence.want, divergence.got)


def without_what_is_within(met: Sequence[Divergence]) -> list[Divergence]:
    """Leave out names within one that a guard was told is absent: they are missing for the same reason."""
    absent = {d.want.api for d in met if d.symptom is Symptom.MISSING_API and says_absent(d.want, d.got)}
    return [d for d in met if not _is_within(d, absent)]


def _is_within(divergence: Divergence, absent: set[str]) -> bool:
    missing = divergence.symptom is Symptom.MISSING_API
    return missing and any(divergence.want.api.startswith(f"{name}.") for name in absent)
