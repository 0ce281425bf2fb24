"""Recorded calls in, each made again alone on recorded inputs, and what came of it in either runtime, out.

A call is written as the program wrote it (``programs.synthesis``), with its inputs as they were recorded; layers are
made as the program made them and get the parameters that they had. Random draws are held against the recording by shape
and dtype only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from migrate_lens.model.report import Library, Runtime
from migrate_lens.model.trace import Event, EventKind, Failure, Op, PlaceKind, Trace
from migrate_lens.model.value import ARRAY, LIST, TENSOR, TUPLE, Difference, Encoded, difference, tag
from migrate_lens.programs.drafts import Argument, Draft, Step, Text, write
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.synthesis import Recording, arguments, drafts, recording
from migrate_lens.runs.bench import Bench, Setting
from migrate_lens.runs.store import Replayed, failure_of, load_replays

_GRAPH = frozenset(("torch.autograd.grad", "torch.autograd.backward", "torch.Tensor.backward"))
_EACH = 0.1  # seconds beyond the first minute that a call may take
_TIMEOUT = 60.0
_DEATHS = 20
_MESSAGE = 200


class Remade(StrEnum):
    """How it went when a call was made again.

    ``UNPREPARED``: a layer that it needs could not be made; ``CANNOT``: the call could not be made alone.
    """

    VALUE = "value"
    RAISE = "raise"
    UNPREPARED = "unprepared"
    CANNOT = "cannot"
    DIED = "died"


class Verdict(StrEnum):
    """What a call that is made again says of a difference.

    ``CANNOT``: it cannot be made alone. ``NOT_REPRODUCED``: the runtime of the recording gives something else.
    ``OPERATOR``: the other runtime differs on equal inputs. ``INPUTS``: it agrees, so a difference in the program came
    in with the inputs.
    """

    CANNOT = "cannot"
    NOT_REPRODUCED = "not reproduced"
    OPERATOR = "operator"
    INPUTS = "inputs"


@dataclass(frozen=True, slots=True)
class Again:
    """A call written so that it can be made alone.

    Attributes:
        source: imports and the layer that is called; a blank line; the call, which leaves ``result``.
        given: its recorded inputs.
        state: parameters and buffers of the layer that is called.
        training: whether that layer trains.
    """

    source: str
    given: tuple[Encoded, ...]
    state: Encoded = None
    training: bool = False


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a call that was made again.

    Attributes:
        how: how it went.
        value: the result and what was written, as a list; None where it did not return.
        failure: what was raised, by the call or by what prepares it.
        said: why it cannot be made alone, or how its process ended.
        ops: the low-level operators below it, where they were asked for.
    """

    how: Remade
    value: Encoded = None
    failure: Failure | None = None
    said: str = ""
    ops: tuple[Op, ...] = ()

    @property
    def reason(self) -> str:
        """Why it could not be made alone."""
        return self.said if self.how is Remade.CANNOT else "what it needs cannot be made alone"


# -- writing a call ----------------------------------------------------------------------------------------------------


def again(event: Event, heard: Recording) -> Again | str:
    """A call written so that it can be made alone, or why it cannot."""
    if event.what is EventKind.HANDED or event.healed:
        return "its result was handed over, not computed"
    if event.api in _GRAPH:
        return "it needs the graph that made its inputs"
    if event.place.kind is PlaceKind.ATTRIBUTE:
        return "an attribute is read, nothing is called"
    try:
        return _layer(event, heard) if event.layer and not event.flags.made_layer else _call(event, heard)
    except Unwritable as error:
        return str(error)


def _call(event: Event, heard: Recording) -> Again | str:
    draft = next(drafts(event, heard), None)
    if draft is None:
        return "nothing is known of how to write it"
    given: list[Encoded] = []
    names: dict[object, str] = {}
    for number, position, argument in list(draft.inputs()):
        draft = draft.with_argument(number, position, _named(argument, given, names))
    text = write(draft)
    return Again(_source(text, 1), tuple(given))


def _layer(event: Event, heard: Recording) -> Again | str:
    layer_made = (e for e in heard.trace.events if e.layer == event.layer and e.flags.made_layer)
    made = next(layer_made, None)
    if made is None or event.state is None:
        return "nothing is known of how its layer was made"
    given: list[Encoded] = []
    names: dict[object, str] = {}
    options = tuple(_named(argument, given, names) for argument in arguments(made, heard))
    inputs = tuple(_named(argument, given, names) for argument in arguments(event, heard))
    module = made.api.rpartition(".")[0]
    steps = (
        Step("call", made.api, "m", options),
        Step("statement", "restored(m)"),
        Step("call", "m", "out", inputs),
    )
    text = write(Draft((f"import {module}",), steps))
    return Again(_source(text, 1), tuple(given), event.state.tensors, event.state.training)


def _source(text: Text, calls: int) -> str:
    """The program in two parts: what is needed first, and its last statements with the result."""
    lines = [line for line in text.lines if line]
    result = f"result = [{', '.join(text.results)}]" if text.results else "result = [None]"
    return "\n".join(lines[:-calls]) + "\n\n" + "\n".join((*lines[-calls:], result)) + "\n"


def _named(argument: Argument, given: list[Encoded], names: dict[object, str]) -> Argument:
    return Argument(argument.keyword, _name(argument.value, given, names))


def _name(value: Encoded, given: list[Encoded], names: dict[object, str]) -> Encoded:
    """The value with every tensor and array in it by its number among the inputs; one tensor has one number."""
    kind = tag(value)
    if kind in (TENSOR, ARRAY):
        serial = value[6] if len(value) > 6 else len(given) + 0.5
        if serial not in names:
            names[serial] = f"given[{len(given)}]"
            given.append(value[:6])
        return ("$", names[serial])
    if kind in (LIST, TUPLE) and _has_tensor(value):
        items = ", ".join(write_one(_name(item, given, names)) for item in value[1])
        return ("$", f"[{items}]" if kind == LIST else f"({items},)")
    return value


def _has_tensor(value: Encoded) -> bool:
    if tag(value) in (LIST, TUPLE):
        return any(_has_tensor(item) for item in value[1])
    return tag(value) in (TENSOR, ARRAY)


def write_one(value: Encoded) -> str:
    """An expression for one value."""
    return write(Draft((), (Step("template", "{0}", "", (Argument("", value),)),), ())).lines[-1]


# -- making calls ------------------------------------------------------------------------------------------------------


class Replayer:
    """Makes recorded calls again in both runtimes.

    Args:
        bench: the workers.
        setting: what all runs share; its folders are on ``sys.path``.
    """

    def __init__(self, bench: Bench, setting: Setting) -> None:
        self._bench = bench
        self._setting = setting

    def make(self, calls: Mapping[int, Again], runtime: Runtime, *, zoom: bool = False) -> dict[int, Became]:
        """Make calls, by their number; one that kills its process is said to, and the others are made all the same."""
        became: dict[int, Became] = {}
        for _ in range(_DEATHS):
            left = {number: call for number, call in calls.items() if number not in became}
            some = self._some(left, runtime, zoom) if left else {}
            if not some:
                break
            became |= some
        never = Became(Remade.CANNOT, said="it was not made again")
        return became | {number: never for number in calls if number not in became}

    def _some(self, calls: Mapping[int, Again], runtime: Runtime, zoom: bool) -> dict[int, Became]:
        """Make calls in one process, as far as it comes."""
        frames = [
            ("replay", number, call.source, list(call.given), call.state, call.training)
            for number, call in calls.items()
        ]
        setting = replace(self._setting, timeout=self._setting.timeout + _EACH * len(calls))
        run = self._bench.replay(setting, runtime, frames, zoom=zoom)
        replays = load_replays(run.file)
        became = {replayed.number: _became(replayed) for replayed in replays.done}
        if run.cut_off and replays.in_flight is not None:
            ended = run.fate.signal_name or f"exit status {run.fate.code}"
            said = "does not return" if run.fate.timed_out else ended
            became[replays.in_flight] = Became(Remade.DIED, said=said)
        return became


def _became(replayed: Replayed) -> Became:
    how = Remade(replayed.how)
    match how:
        case Remade.VALUE:
            return Became(how, replayed.value, ops=replayed.ops)
        case Remade.RAISE | Remade.UNPREPARED:
            return Became(how, failure=failure_of(replayed.value), ops=replayed.ops)
        case Remade.CANNOT | Remade.DIED:
            return Became(how, said=str(replayed.value), ops=replayed.ops)
        case _:
            assert_never(how)


# -- judging -----------------------------------------------------------------------------------------------------------


def recorded(event: Event) -> Encoded:
    """What a call that is made again should give: its result, if it has one, and what it wrote."""
    written = [value for _, value in event.written]
    gives_none = event.place.kind in (PlaceKind.SET_ITEM, PlaceKind.IN_PLACE)
    return (LIST, written if gives_none else [event.value, *written])


def disagrees(event: Event, became: Became) -> Difference | None:
    """How what became of a call differs from its recording; a difference of Python types or flags is none."""
    if became.how is Remade.DIED:
        return Difference("crash", True, _said(event), became.said)
    if event.failure is not None or became.failure is not None:
        return _raises_otherwise(event, became.failure)
    by_chance = event.flags.by_chance or event.flags.made_layer
    want, got = _comparable(recorded(event), became.value)
    differs = difference(want, got, values=not by_chance)
    return differs if differs is not None and differs.hard else None


def _raises_otherwise(event: Event, raised: Failure | None) -> Difference | None:
    """How the exceptions differ where one side raises at least."""
    if raised is None:
        return Difference("exception", True, _said(event), "returns")
    if event.failure is not None and event.failure.type == raised.type:
        return None
    return Difference("exception", True, _said(event), f"raises {raised.type}: {raised.message[:_MESSAGE]}")


def _comparable(want: Encoded, got: Encoded) -> tuple[Encoded, Encoded]:
    """An in-place call hands back its receiver, which stands among what was written too."""
    length = min(len(want[1]), len(got[1]))
    return (LIST, want[1][:length]), (LIST, got[1][:length])


def _said(event: Event) -> str:
    return "returns" if event.failure is None else f"raises {event.failure.type}"


def odd_one(ours: Sequence[Op], theirs: Sequence[Op]) -> Op | None:
    """The first operator of one side whose result none of the other side's gives."""
    for op in ours:
        differences = [difference(op.value, other.value) for other in theirs]
        if all(differs is not None and differs.hard for differs in differences):
            return op
    return None


def replayable(trace: Trace, wanted: Sequence[int]) -> tuple[dict[int, Again], dict[int, str]]:
    """Of the calls with these numbers (from 1): those that can be made alone, and why the others cannot."""
    heard = recording(trace)
    able: dict[int, Again] = {}
    unable: dict[int, str] = {}
    for number in wanted:
        written = again(trace.events[number - 1], heard)
        if isinstance(written, str):
            unable[number] = written
        else:
            able[number] = written
    return able, unable


def alone(library: Library) -> Setting:
    """A setting for calls that are made outside any program."""
    return Setting(library, dict.fromkeys(Runtime, ()), (), _TIMEOUT)


@dataclass(frozen=True, slots=True)
class Judged:
    """One recorded call, made again alone on its recorded inputs.

    Attributes:
        number: which, from 1.
        event: the recording.
        cannot: why it cannot be made alone; the rest is empty then.
        sides: by runtime, what became of it.
        differs: by runtime, how that differs from the recording.
        verdict: what that says of a difference.
    """

    number: int
    event: Event
    cannot: str
    sides: tuple[tuple[Runtime, Became], ...]
    differs: tuple[tuple[Runtime, Difference], ...]
    verdict: Verdict
