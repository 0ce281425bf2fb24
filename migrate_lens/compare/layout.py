"""Strides and contiguity that a program asked for and that differ in; the calls that made the other layout out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrate_lens.compare.divergences import STRIDES, Divergence
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, Trace
from migrate_lens.model.value import references

_ASKS = frozenset(("stride", "is_contiguous"))


def as_layout(soft: Iterable[Divergence], want: Trace, got: Trace) -> list[Divergence]:
    """Differences of strides, named by what made the tensor; those of values that were handed over are left out."""
    healed = {event.key: event for event in got.events}
    named = []
    for divergence in soft:
        maker = _maker(divergence, want)
        if maker is None:
            named.append(divergence)
            continue
        theirs = healed.get(maker.key)
        if theirs is not None and not theirs.healed and theirs.returned:
            by_maker = replace(divergence.want, api=maker.api)
            named.append(replace(divergence, want=by_maker, symptom=Symptom.LAYOUT, detail=STRIDES))
    return named


def _maker(divergence: Divergence, trace: Trace) -> Event | None:
    """The call that made the tensor whose layout was asked for; one that hands back its receiver makes none."""
    asked = divergence.want
    if asked.api.rpartition(".")[2] not in _ASKS or not divergence.got.returned:
        return None
    serials = {serial for serial, _ in references(asked.inputs[:1])}
    before = trace.events[: trace.events.index(asked)]
    for event in reversed(before):
        made = {serial for serial, _ in event.serials}
        if serials & made and not event.flags.hands_back:
            return event
    return None
