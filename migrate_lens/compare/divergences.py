"""Divergences: aligned events in, one typed difference for each pair that differs out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from migrate_lens.compare.align import pairs
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, Key, Trace
from migrate_lens.model.value import Difference, describe, difference, tag

_ASPECTS = {
    "shape": Symptom.SHAPE, "dtype": Symptom.DTYPE, "device": Symptom.DEVICE, "value": Symptom.VALUE,
    "type": Symptom.VALUE, "gradient": Symptom.GRADIENT, "state": Symptom.STATE,
}  # fmt: skip
# What lists a layer's parameters and buffers by name.
_STATE = frozenset(("state_dict", "named_parameters", "named_buffers", "load_state_dict"))
NOTHING: Mapping[Key, str] = {}
_ANY = frozenset(("Exception", "BaseException"))


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between two aligned events.

    Attributes:
        want: torch's event.
        got: Paddle's event.
        symptom: how it shows.
        detail: exception type, keyword or aspect; never prose.
        hard: whether it counts by itself; a soft one counts only where the outcome depends on it.
        expected: torch's side, for a person.
        actual: Paddle's side, for a person.
    """

    want: Event
    got: Event
    symptom: Symptom
    detail: str
    hard: bool
    expected: str
    actual: str


def divergences(want: Trace, got: Trace, unsteady: Mapping[Key, str] = NOTHING) -> Iterator[Divergence]:
    """All differences between torch's trace and Paddle's, in Paddle's order.

    Events that differ with themselves are compared by shape and dtype, or not at all where those differ too.
    """
    for one, other in pairs(want, got):
        found = diverges(one, other, luck=unsteady.get(one.key, ""))
        if found is not None:
            yield found


def diverges(want: Event, got: Event, luck: str = "") -> Divergence | None:
    """The difference between two aligned events, if there is one; ``luck`` is in what torch's own two runs differ."""
    if got.what == "handed" or "i" in got.flags:
        return None  # answered by torch's value, or judged on other inputs: the consequence of another gap
    if want.what == "call" and got.what == "call":
        return _values(want, got, luck) if luck in ("", "value") else None
    if want.what == "call":
        return _failed(want, got)
    if got.what == "call":
        expected = f"raises {want.value['types'][0]}"
        return Divergence(want, got, Symptom.VALUE, "not raised", False, expected, f"returns {describe(got.value)}")
    if want.value["types"][0] == got.value["types"][0]:
        return None
    hard = not guarded(got) and guarded(want)
    if want.what == "absent" and want.api.startswith("torch.ops."):
        want = replace(want, api="torch.ops")  # torch has no such operator either: it is the look-up that differs
    return Divergence(want, got, Symptom.EXCEPTION, got.value["types"][0], hard, _said(want), _said(got))


def guarded(event: Event) -> bool:
    """Whether the program itself catches what a failed event raised."""
    caught = set(event.place.caught)
    return bool(caught & _ANY or caught & set(event.value["types"]))


def _failed(want: Event, got: Event) -> Divergence:
    failure = got.value
    hard = not guarded(got)
    expected = "exists" if got.what == "absent" else f"returns {describe(want.value)}"
    if got.what == "absent" or _missing_within(got):
        return Divergence(want, got, Symptom.MISSING_API, "", hard, expected, _said(got))
    if failure["argument"]:
        return Divergence(want, got, Symptom.MISSING_ARGUMENT, failure["argument"], hard, expected, _said(got))
    return Divergence(want, got, Symptom.EXCEPTION, failure["types"][0], hard, expected, _said(got))


def _missing_within(got: Event) -> bool:
    """A function that exists in name only: calling it looks up its own name and fails."""
    failure, name = got.value, got.api.rpartition(".")[2]
    return failure["types"][0] == "AttributeError" and name in (failure["missing"], failure["message"])


def _said(event: Event) -> str:
    failure = event.value
    message = next((line.strip() for line in failure["message"].splitlines() if line.strip()), "")
    return f"raises {failure['types'][0]}: {message[:200]}" if message else f"raises {failure['types'][0]}"


def _values(want: Event, got: Event, luck: str) -> Divergence | None:
    draws = "r" in want.flags or "u" in want.flags or bool(luck)
    soft = None
    for found in _differences(want, got, draws):
        made = _divergence(want, got, found)
        if made.hard:
            return made
        soft = soft or made
    return soft or _alias(want, got)


def _differences(want: Event, got: Event, draws: bool) -> Iterator[Difference]:
    found = difference(want.value, got.value, values=not draws)
    if found is not None:
        yield found
    written = dict(got.written)
    for index, value in want.written:
        # `x += y` that rebinds leaves the old tensor alone: an alias matter, judged below.
        if index in written and not (f"={index};" in want.flags and f"={index};" not in got.flags):
            changed = difference(value, written[index], values=not draws)
            if changed is not None:
                # Statistics that nobody may read; what returns a result is judged by that.
                yield replace(changed, hard=False) if "w" in want.flags else changed


def _divergence(want: Event, got: Event, found: Difference) -> Divergence:
    if _says_absent(want, got):
        return Divergence(want, got, Symptom.MISSING_API, "", found.hard, found.expected, found.actual)
    symptom = _ASPECTS[found.aspect]
    last = want.api.rpartition(".")[2]
    if last == "grad" and symptom is Symptom.VALUE:
        symptom = Symptom.GRADIENT
    if last in _STATE and not found.hard:
        symptom = Symptom.STATE
    return Divergence(want, got, symptom, found.aspect, found.hard, found.expected, found.actual)


def _says_absent(want: Event, got: Event) -> bool:
    """Whether the program was told that a name is not there: ``hasattr`` is false, ``getattr`` gives its default."""
    if got.place.text.startswith("hasattr("):
        return want.value is True and got.value is False
    return got.place.text.startswith("getattr(") and tag(want.value) in ("C", "F", "M") and not tag(got.value)


def _alias(want: Event, got: Event) -> Divergence | None:
    if "=" in want.flags and "=" not in got.flags and tag(got.value) == "T":
        return Divergence(want, got, Symptom.ALIAS, "in place", False, "writes into its argument", "makes a new tensor")
    if "v" in want.flags and "v" not in got.flags and "=" not in got.flags:
        return Divergence(want, got, Symptom.ALIAS, "view", False, "shares memory with its argument", "copies")
    return None
