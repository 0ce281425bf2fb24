"""Two torch runs of one program in; what differs with itself, so that its values say nothing about the target, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from migrate_lens.compare.align import pairs
from migrate_lens.compare.outcome import disagreement
from migrate_lens.model.trace import PASSED, Ending, Event, EventKey, Finished, Flags, Parts, Trace
from migrate_lens.model.value import (
    KEYWORD,
    LIST,
    OBJECT,
    REFERENCE,
    TUPLE,
    ArrayValue,
    DictValue,
    Encoded,
    ListValue,
    NamedTupleValue,
    TensorValue,
    TupleValue,
    difference,
    references,
    tag,
    tensors,
    typed,
)

Values = dict[tuple[int, int], Encoded]
_SHOWN = 8
_VARIES: Encoded = (OBJECT, "what differs from run to run")


@dataclass(frozen=True, slots=True)
class Luck:
    """What two runs of one runtime do not agree about.

    Attributes:
        events: in what each such event differs: ``value``, ``shape`` and so on.
        names: their torch names.
        results: the two runs' results, where they are not the same.
        parts: of a probe of several parts, those that pass in one run only.
    """

    events: Mapping[EventKey, str]
    names: tuple[str, ...]
    results: tuple[Encoded, Encoded] | None = None
    parts: frozenset[str] = frozenset()

    @property
    def in_outcome(self) -> bool:
        """Whether the outcomes themselves are not the same."""
        return self.results is not None or bool(self.parts)

    def of_outcome(self, ending: Ending) -> Ending:
        """An ending without that in which torch's own outcomes differ."""
        if isinstance(ending, Parts):
            steady = {name: fate for name, fate in ending.fates.items() if name not in self.parts}
            return Parts(steady)
        if self.results is not None and isinstance(ending, Finished) and ending.has_value:
            return replace(ending, value=_blank(ending.value, *self.results))
        return ending

    def notes(self) -> tuple[str, ...]:
        """What a report says of it."""
        names = [*self.names, *(["the program's result"] if self.in_outcome else [])]
        if not names:
            return ()
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        said = ", ".join(names[:_SHOWN]) + more
        return (f"two runs under torch differ in {said}: compared by shape and dtype only",)


def luck(first: Trace, second: Trace) -> Luck:
    """Compare two torch runs.

    What differs because it was computed from tensors that differ is left out: the run that goes on past each gap hands
    over those tensors, so it can be judged.
    """
    ours, theirs = _values(first), _values(second)
    events: dict[EventKey, str] = {}
    names: dict[str, None] = {}
    for one, other in pairs(first, second):
        if not one.returned or not other.returned or _varies_anyway(one.flags):
            continue
        differs = difference(one.value, other.value)
        if differs is not None and not _derived(one, other, ours, theirs):
            events[one.key] = differs.aspect
            names[one.api or one.place.text] = None
    results = _results(first.ending, second.ending)
    return Luck(events, tuple(names), results, _unsteady_parts(first.ending, second.ending))


def _varies_anyway(flags: Flags) -> bool:
    """Whether nobody expects the same values of a call: it draws them, or they are those of a new layer."""
    return flags.by_chance or flags.made_layer


def _results(first: Ending, second: Ending) -> tuple[Encoded, Encoded] | None:
    """Two results that are not the same; None where they are, and where there are none."""
    if not isinstance(first, Finished) or not first.has_value or disagreement(first, second) is None:
        return None
    return first.value, second.value


def _unsteady_parts(first: Ending, second: Ending) -> frozenset[str]:
    """The parts that pass in one of two runs only."""
    if not isinstance(first, Parts) or not isinstance(second, Parts):
        return frozenset()
    names = first.fates.keys() | second.fates.keys()
    return frozenset(name for name in names if (first.fates.get(name) == PASSED) != (second.fates.get(name) == PASSED))


def _blank(value: Encoded, one: Encoded, other: Encoded) -> Encoded:
    """A value without that in which two others differ."""
    if difference(one, other) is None:
        return value
    if not tag(value) == tag(one) == tag(other):
        return _VARIES
    match typed(value):
        case TensorValue() | ArrayValue() as numbers:
            return tuple(numbers._replace(data=None))
        case ListValue() | TupleValue() | NamedTupleValue() as sequence:
            left, right = one[-1], other[-1]
            if not len(sequence.items) == len(left) == len(right):
                return _VARIES
            items = [_blank(*three) for three in zip(sequence.items, left, right, strict=True)]
            return tuple(sequence._replace(items=items))
        case DictValue() as mapping:
            return tuple(mapping._replace(pairs=_blank_pairs(mapping, DictValue._make(one), DictValue._make(other))))
        case _:
            return _VARIES


def _blank_pairs(value: DictValue, one: DictValue, other: DictValue) -> list[tuple[Encoded, Encoded]]:
    left, right = dict(one.pairs), dict(other.pairs)
    common = left.keys() & right.keys()
    return [(key, _blank(item, left[key], right[key]) if key in common else item) for key, item in value.pairs]


def _values(trace: Trace) -> Values:
    """Every tensor of a trace, by (serial, version)."""
    known = dict(trace.values)
    for event in trace.events:
        if event.returned:
            known.update(zip(event.serials, tensors(event.value), strict=False))
    return known


def _derived(one: Event, other: Event, ours: Values, theirs: Values) -> bool:
    """Whether two calls were given tensors that differ, and nothing else that does."""
    mine, yours = references(one.inputs), references(other.inputs)
    if len(mine) != len(yours):
        return False
    arguments = zip(one.inputs, other.inputs, strict=False)
    if any(_plain(left) != _plain(right) for left, right in arguments):
        return False
    given = zip(mine, yours, strict=True)
    return any(_unlike(ours.get(left), theirs.get(right)) for left, right in given)


def _unlike(one: Encoded, other: Encoded) -> bool:
    return one is not None and other is not None and difference(one, other) is not None


def _plain(value: Encoded) -> Encoded:
    """An argument with its tensors left out."""
    kind = tag(value)
    if kind == REFERENCE:
        return REFERENCE
    if kind in (LIST, TUPLE):
        return (kind, [_plain(item) for item in value[1]])
    if kind == KEYWORD:
        _, name, argument = value
        return (kind, name, _plain(argument))
    return value
