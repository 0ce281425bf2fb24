"""Divergences: aligned events in, one typed difference for each pair that differs out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from migrate_lens.compare.align import pairs
from migrate_lens.compare.outcome import raises
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, EventKey, EventKind, Failure, Trace
from migrate_lens.model.value import CLASS, FUNCTION, MODULE, TENSOR, Difference, describe, difference, tag, tensors

# Details of a divergence that are no exception type, keyword or aspect of a value.
NOT_RAISED, IN_PLACE, VIEW, STRIDES, GRADIENT = "not raised", "in place", "view", "strides", "gradient"
_ASPECTS = {
    "shape": Symptom.SHAPE,
    "dtype": Symptom.DTYPE,
    "device": Symptom.DEVICE,
    "value": Symptom.VALUE,
    "type": Symptom.VALUE,
    "gradient": Symptom.GRADIENT,
    "state": Symptom.STATE,
}
# What lists a layer's parameters and buffers by name.
_STATE = frozenset(("state_dict", "named_parameters", "named_buffers", "load_state_dict"))
NOTHING: Mapping[EventKey, str] = {}
_ANY_EXCEPTION = frozenset(("Exception", "BaseException"))


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between two aligned events.

    Attributes:
        want: torch's event.
        got: the target's event.
        symptom: how it shows.
        detail: exception type, keyword or aspect; never prose.
        hard: whether it counts by itself; a soft one counts only where the outcome depends on it.
        expected: torch's side, for a person.
        actual: the target's side, for a person.
    """

    want: Event
    got: Event
    symptom: Symptom
    detail: str
    hard: bool
    expected: str
    actual: str

    @property
    def of_tensors(self) -> bool:
        """Whether what torch gives, and the target does not, is a tensor or holds one."""
        ours, theirs = tensors(self.want.value), tensors(self.got.value)
        if self.hard and self.got.returned:
            return bool(ours or self.want.written)
        return len(ours) > len(theirs)


def divergences(want: Trace, got: Trace, unsteady: Mapping[EventKey, str] = NOTHING) -> Iterator[Divergence]:
    """All differences between torch's trace and the target's, in the target's order.

    Events that differ with themselves are compared by shape and dtype, or not at all where those differ too.
    """
    yield from hidden(got)
    for ours, theirs in pairs(want, got):
        divergence = diverges(ours, theirs, luck=unsteady.get(ours.key, ""))
        if divergence is not None:
            yield divergence


def hidden(got: Trace) -> Iterator[Divergence]:
    """What a program's layer holds and does not find, since a class of the target's has a method of that name."""
    for event in got.events:
        if event.flags.hidden:
            name = event.part
            actual = f"the target's base class has a {name} of its own, which is found instead"
            yield Divergence(event, event, Symptom.VALUE, name, True, f"{name} is what was assigned", actual)


def diverges(want: Event, got: Event, luck: str = "") -> Divergence | None:
    """The difference between two aligned events, if there is one; ``luck`` is in what torch's own two runs differ."""
    if got.what is EventKind.HANDED or got.flags.other_inputs:
        return None  # answered by torch's value, or judged on other inputs: the consequence of another gap
    if want.failure is None and got.failure is None:
        return _values(want, got, luck) if luck in ("", "value") else None
    if want.failure is None:
        return _failed(want, got)
    if got.failure is None:
        expected = f"raises {want.failure.type}"
        return Divergence(want, got, Symptom.VALUE, NOT_RAISED, False, expected, f"returns {describe(got.value)}")
    return _both_failed(want, want.failure, got, got.failure)


def _both_failed(want: Event, ours: Failure, got: Event, theirs: Failure) -> Divergence | None:
    if ours.type == theirs.type:
        return None
    hard = not guarded(got) and guarded(want)
    if want.what is EventKind.ABSENT and want.api.startswith("torch.ops."):
        want = replace(want, api="torch.ops")  # torch has no such operator either: it is the look-up that differs
    return Divergence(want, got, Symptom.EXCEPTION, theirs.type, hard, raises(ours), raises(theirs))


def guarded(event: Event) -> bool:
    """Whether the program itself catches what a failed event raised."""
    caught = set(event.place.caught)
    types = event.failure.types if event.failure is not None else ()
    return bool(caught & _ANY_EXCEPTION or caught & set(types))


def _failed(want: Event, got: Event) -> Divergence:
    failure = got.failure
    assert failure is not None
    hard = not guarded(got)
    absent = got.what is EventKind.ABSENT
    expected = "exists" if absent else f"returns {describe(want.value)}"
    actual = raises(failure)
    if absent or _missing_within(got.api, failure):
        return Divergence(want, got, Symptom.MISSING_API, "", hard, expected, actual)
    if failure.argument:
        return Divergence(want, got, Symptom.MISSING_ARGUMENT, failure.argument, hard, expected, actual)
    return Divergence(want, got, Symptom.EXCEPTION, failure.type, hard, expected, actual)


def _missing_within(api: str, failure: Failure) -> bool:
    """A function that exists in name only: calling it looks up its own name and fails."""
    name = api.rpartition(".")[2]
    return failure.type == "AttributeError" and name in (failure.missing, failure.message)


def _values(want: Event, got: Event, luck: str) -> Divergence | None:
    by_chance = want.flags.by_chance or bool(luck)
    soft = None
    for differs in _differences(want, got, by_chance):
        divergence = _divergence(want, got, differs)
        if divergence.hard:
            return divergence
        soft = soft or divergence
    if soft is None or soft.detail == "type":
        return _alias(want, got) or soft  # memory that is not shared says more than a kind of sequence
    return soft


def _differences(want: Event, got: Event, by_chance: bool) -> Iterator[Difference]:
    """How the results differ, and then what was written."""
    of_result = difference(want.value, got.value, values=not by_chance)
    if of_result is not None:
        yield of_result
    written = dict(got.written)
    for argument, value in want.written:
        # `x += y` that rebinds leaves the old tensor alone: an alias matter, judged below.
        rebinds = want.flags.argument == argument and got.flags.argument != argument
        if argument not in written or rebinds:
            continue
        changed = difference(value, written[argument], values=not by_chance)
        if changed is not None:
            # Statistics that nobody may read; what returns a result is judged by that.
            yield replace(changed, hard=False) if want.flags.writes_unseen else changed


def _divergence(want: Event, got: Event, differs: Difference) -> Divergence:
    if says_absent(want, got):
        return Divergence(want, got, Symptom.MISSING_API, "", differs.hard, differs.expected, differs.actual)
    symptom = _ASPECTS[differs.aspect]
    last = want.api.rpartition(".")[2]
    if last == "grad" and symptom is Symptom.VALUE and differs.aspect != "type":
        symptom = Symptom.GRADIENT
    if last in _STATE and not differs.hard:
        symptom = Symptom.STATE
    return Divergence(want, got, symptom, differs.aspect, differs.hard, differs.expected, differs.actual)


def says_absent(want: Event, got: Event) -> bool:
    """Whether the program was told that a name is not there: ``hasattr`` is false, ``getattr`` gives its default."""
    asked = got.place.text
    if asked.startswith("hasattr("):
        return want.value is True and got.value is False
    return asked.startswith("getattr(") and tag(want.value) in (CLASS, FUNCTION, MODULE) and not tag(got.value)


def _alias(want: Event, got: Event) -> Divergence | None:
    ours, theirs = want.flags, got.flags
    if theirs.hands_back:
        return None
    if ours.hands_back and tag(got.value) == TENSOR:
        return Divergence(want, got, Symptom.ALIAS, IN_PLACE, False, "writes into its argument", "makes a new tensor")
    if ours.shares_memory and not theirs.shares_memory:
        return Divergence(want, got, Symptom.ALIAS, VIEW, False, "shares memory with its argument", "copies")
    return None
