"""Two torch runs of one program in; what differs with itself, so that its values say nothing about Paddle, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from migrate_lens.compare.align import pairs
from migrate_lens.compare.outcome import disagreement
from migrate_lens.model.trace import Ending, Event, Key, Trace
from migrate_lens.model.value import Encoded, difference, references, tag, tensors

Values = dict[tuple[int, int], Encoded]
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Luck:
    """What two runs of one runtime do not agree about.

    Attributes:
        events: in what each such event differs: ``value``, ``shape`` and so on.
        names: their torch names.
        results: the two runs' results, where they are not the same.
    """

    events: Mapping[Key, str]
    names: tuple[str, ...]
    results: tuple[Encoded, Encoded] | None = None

    def of_outcome(self, ending: Ending) -> Ending:
        """An ending without the values in which torch's own results differ."""
        if self.results is None or not ending.has_value:
            return ending
        return replace(ending, value=_blank(ending.value, *self.results))

    def notes(self) -> tuple[str, ...]:
        """What a report says of it."""
        names = [*self.names, *([] if self.results is None else ["the program's result"])]
        if not names:
            return ()
        said = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        return (f"two runs under torch differ in {said}: compared by shape and dtype only",)


def luck(first: Trace, second: Trace) -> Luck:
    """Compare two torch runs.

    What differs because it was computed from tensors that differ is left out: the run that goes on past each gap hands
    over those tensors, so it can be judged.
    """
    ours, theirs = _values(first), _values(second)
    events: dict[Key, str] = {}
    names: dict[str, None] = {}
    for one, other in pairs(first, second):
        if one.what != "call" or other.what != "call" or set(one.flags) & set("ruk"):
            continue
        differs = difference(one.value, other.value)
        if differs is not None and not _derived(one, other, ours, theirs):
            events[one.key] = differs.aspect
            names[one.api or one.place.text] = None
    same = not first.ending.has_value or disagreement(first.ending, second.ending) is None
    return Luck(events, tuple(names), None if same else (first.ending.value, second.ending.value))


def _blank(value: Encoded, one: Encoded, other: Encoded) -> Encoded:
    if difference(one, other) is None:
        return value
    kind = tag(value)
    if kind in ("T", "N") and tag(one) == kind == tag(other):
        return (*value[:3], None, *value[4:])
    if kind and kind in "Ltn" and tag(one) == kind == tag(other) and len(value[-1]) == len(one[-1]) == len(other[-1]):
        return (*value[:-1], [_blank(*items) for items in zip(value[-1], one[-1], other[-1], strict=True)])
    if kind == "d" and tag(one) == kind == tag(other):
        left, right = dict(one[1]), dict(other[1])
        return ("d", [(k, _blank(v, left[k], right[k]) if k in left and k in right else v) for k, v in value[1]])
    return ("O", "what differs from run to run")


def _values(trace: Trace) -> Values:
    known = dict(trace.values)
    for event in trace.events:
        if event.what == "call":
            known.update(zip(event.serials, tensors(event.value), strict=False))
    return known


def _derived(one: Event, other: Event, ours: Values, theirs: Values) -> bool:
    """Whether two calls were given tensors that differ, and nothing else that does."""
    mine, yours = references(one.inputs), references(other.inputs)
    if len(mine) != len(yours) or any(_plain(a) != _plain(b) for a, b in zip(one.inputs, other.inputs, strict=False)):
        return False
    return any(_unlike(ours.get(a), theirs.get(b)) for a, b in zip(mine, yours, strict=True))


def _unlike(one: Encoded, other: Encoded) -> bool:
    return one is not None and other is not None and difference(one, other) is not None


def _plain(value: Encoded) -> Encoded:
    """An argument with its tensors left out."""
    kind = tag(value)
    if kind == "#":
        return "#"
    if kind in ("L", "t"):
        return (kind, [_plain(v) for v in value[1]])
    return (kind, value[1], _plain(value[2])) if kind == "kw" else value
