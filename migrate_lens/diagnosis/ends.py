"""A process that died or hung while no call was running in; the call whose result it could not let go of out.

What a program holds is released behind the last use of it, at the latest when the interpreter ends. Which object that
is, is tried: from the last call back, each is handed torch's result, until the process comes to its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from migrate_lens.compare.findings import node_name, private, site_at
from migrate_lens.diagnosis.causes import Trial
from migrate_lens.model.report import Fact, Finding, Key, Symptom
from migrate_lens.model.trace import Event, PlaceKind
from migrate_lens.model.value import LAYER, OBJECT, SEQUENCES, TENSOR, tag
from migrate_lens.runs.bench import Run

# Calls that are tried, the seconds that each trial may take at least, and how many of torch's runs' worth.
_CALLS = 24
_SECONDS, _RUNS = 5.0, 10.0
_ALL_SECONDS = 90.0
_OBJECTS = frozenset((TENSOR, OBJECT, LAYER)) | SEQUENCES


def never_ends(trial: Trial, run: Run) -> Finding:
    """The finding that a process does not come to its end although no call is running.

    Args:
        trial: how to try.
        run: the target's run that shows it.
    """
    event, tried = _holding(trial)
    event = event or next(_makers(run), None)
    api = event.api if event else "the interpreter's end"
    if run.fate.timed_out:
        key = Key(Symptom.TIMEOUT, api, "released")
        actual = f"does not end {run.fate.bound}"
    else:
        how = run.fate.signal_name or f"exit status {run.fate.code}"
        key = Key(Symptom.CRASH, api, f"released {how}")
        actual = f"kills the process: {how}"
    when = "between two calls" if run.died else "after the program's last statement"
    facts: dict[str, Fact] = {"detail": key.detail, "private": private(api)}
    sites = (site_at(event.place, trial.subject.library),) if event else ()
    evidence = (f"no call is running: it happens {when}, when what is no longer needed is released", tried)
    return Finding(key, trial.subject.stage, sites, "ends", actual, facts, evidence)


def _holding(trial: Trial) -> tuple[Event | None, str]:
    """The last call without whose own result the process ends, and what was tried."""
    seconds = _SECONDS + _RUNS * trial.base.fate.seconds
    setting = replace(trial.subject.setting, timeout=seconds)
    brief = replace(trial, subject=replace(trial.subject, setting=setting))
    end = time.monotonic() + _ALL_SECONDS
    for event in _makers(trial.base):
        if time.monotonic() > end:
            break
        run = brief.healed(skip=(node_name(event.place),), finish=True)
        if not run.cut_off and not run.ended_badly:
            return event, "with torch's result handed over in its place the process ends"
    return None, "no single call was found without which the process ends: the nearest one is named"


def _makers(run: Run) -> Iterator[Event]:
    """Calls that gave an object of the framework's, the last one first, each place once."""
    seen: set[str] = set()
    for event in reversed(run.trace.events):
        node = node_name(event.place)
        called = event.place.kind in (PlaceKind.CALL, PlaceKind.METHOD)
        makes = event.returned and called and tag(event.value) in _OBJECTS
        if makes and node not in seen and len(seen) < _CALLS:
            seen.add(node)
            yield event
