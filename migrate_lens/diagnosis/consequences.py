"""Differences in; those that say by themselves what is different, by the names of what is, out.

An operator that was never registered is missing for the reason why it was not; what Python says of a result
(``isinstance``) differs since the result does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from migrate_lens.compare.divergences import Divergence
from migrate_lens.model.trace import Trace

_REGISTERS = "torch.library."
_TORCHS_OWN = frozenset(("aten", "prim", "prims"))
_OF_PYTHON = "builtins."


def at_their_source(trace: Trace, met: Sequence[Divergence]) -> list[Divergence]:
    """Leave out what only follows from another difference, and name that where it did not count by itself.

    Args:
        trace: torch's.
        met: the differences, in the order of the run.
    """
    spaces = _unregistered(trace, met)
    kept: list[Divergence] = []
    for divergence in met:
        space = _space(divergence.want.api)
        if space not in spaces:
            kept.append(divergence)
    return list(_by_results(kept))


def _unregistered(trace: Trace, met: Sequence[Divergence]) -> frozenset[str]:
    """Namespaces of operators whose registration in Python fails."""
    if not any(d.want.api.startswith(_REGISTERS) and d.got.failure is not None for d in met):
        return frozenset()
    calls = (event for event in trace.events if event.api.startswith(_REGISTERS))
    words = (value for event in calls for value in event.inputs[:1] if isinstance(value, str))
    return frozenset(word.partition("::")[0] for word in words) - _TORCHS_OWN


def _space(api: str) -> str:
    """The namespace of an operator; empty for what is none."""
    return api.split(".")[2] if api.startswith("torch.ops.") else ""


def _by_results(met: Sequence[Divergence]) -> Iterator[Divergence]:
    """What Python's own functions say about a result of another type, by the call that gave the result."""
    types: list[Divergence] = []
    moved = {id(d): source for d, source in _sources(met, types) if source is not None}
    taken = {id(source) for source in moved.values()}
    for divergence in met:
        if id(divergence) in taken:
            yield replace(divergence, hard=True)
        elif id(divergence) not in moved:
            yield divergence


def _sources(met: Sequence[Divergence], types: list[Divergence]) -> Iterator[tuple[Divergence, Divergence | None]]:
    for divergence in met:
        if divergence.want.api.startswith(_OF_PYTHON) and divergence.got.returned:
            yield divergence, next(reversed(types), None)
        elif not divergence.hard and divergence.detail == "type":
            types.append(divergence)
