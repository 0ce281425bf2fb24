"""The net under observation: a probe that was observed in; what it does otherwise when nobody looks, out.

A diagnosis speaks of the user's program only if what was observed is that program. What two runs that nobody looks at
differ in says nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import zip_longest

from migrate_lens.compare.outcome import disagreement
from migrate_lens.diagnosis.subject import Baseline, Subject
from migrate_lens.model.report import Finding, ProbeKind, Runtime
from migrate_lens.runs.bench import Run, RunRequest

_SHOWN = 60
# Addresses and durations: no two runs have the same.
_BY_CHANCE = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e-?\d+)? ?(?:[munµ]?s|sec|seconds|minutes|it/s|s/it)\b")


def changed_by_observation(subject: Subject, base: Baseline) -> str:
    """The first thing that a probe does otherwise under torch when it is observed; empty where there is none."""
    if not base.observed:
        return ""  # that it fails when it is observed is known, and the plain run is the one that counts
    request = RunRequest(subject.setting, Runtime.TORCH, subject.probe, observe=False)
    plain = subject.bench.run(request)
    with_output = subject.probe.kind is not ProbeKind.PYTEST  # which prints how long it took
    if not _of_outcome(plain, base.run) and not (with_output and _of_output(plain, plain, base.run)):
        return ""
    again = subject.bench.run(request)
    said = "" if _of_outcome(plain, again) else _of_outcome(plain, base.run)
    return said or (_of_output(plain, again, base.run) if with_output else "")


def marked(finding: Finding, changed: str) -> Finding:
    """A finding of a program that observation changes."""
    return replace(finding, evidence=(*finding.evidence, f"it may come of observation, which changes this: {changed}"))


def _of_outcome(plain: Run, other: Run) -> str:
    """How another run ended otherwise than a plain one."""
    differs = disagreement(plain.trace.ending, other.trace.ending)
    return "" if differs is None else f"{differs.expected} when nobody looks, {differs.actual} when it is observed"


def _of_output(plain: Run, again: Run, other: Run) -> str:
    """The first line that another run printed otherwise than two plain ones."""
    if _printed(plain) == _printed(other):
        return ""
    lines = zip_longest(_printed(plain), _printed(again), _printed(other))
    for number, (one, two, three) in enumerate(lines, 1):
        if one == two and one != three:
            return (
                f"line {number} of its output is {_shown(one)} when nobody looks, {_shown(three)} when it is observed"
            )
    return ""


def _printed(run: Run) -> list[str]:
    """The lines that a program printed, without what no two runs have in common."""
    text = run.printed.read_text(errors="replace") if run.printed.is_file() else ""
    return [_BY_CHANCE.sub("~", line) for line in text.splitlines()]


def _shown(line: str | None) -> str:
    return "missing" if line is None else repr(line[:_SHOWN])
