"""Recorded calls in, each made again alone on recorded inputs, and what came of it in either runtime, out.

A call is written as the program wrote it (``remedies.synthesis``), with its inputs as they were recorded; layers are
made as the program made them and get the parameters that they had. Random draws are held against the recording by shape
and dtype only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate_lens.model.report import Library, Runtime
from migrate_lens.model.trace import Event, Op, Trace
from migrate_lens.model.value import Difference, Encoded, difference, tag
from migrate_lens.programs.drafts import Argument, Draft, Step, StepForm, Text, write
from migrate_lens.programs.literals import Unwritable
from migrate_lens.programs.synthesis import ProbeRecord, arguments, drafts, probe_record
from migrate_lens.protocol.journal import read
from migrate_lens.runs.bench import Bench, Setting

VALUE, RAISE, UNPREPARED, CANNOT, DIED = "value", "raise", "unprepared", "cannot", "died"
_GRAPH = frozenset(("torch.autograd.grad", "torch.autograd.backward", "torch.Tensor.backward"))
_EACH = 0.1  # seconds beyond the first minute that a call may take
_TIMEOUT = 60.0
_DEATHS = 20


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
        how: ``value``, ``raise``, ``unprepared`` (a layer that it needs cannot be made: ``value`` is the failure),
            ``cannot`` (it cannot be made alone: ``value`` says why) or ``died``.
        value: the result and what was written, as a list; the failure; or a reason.
        ops: the low-level operators below it, where they were asked for.
    """

    how: str
    value: Encoded
    ops: tuple[Op, ...] = ()

    @property
    def reason(self) -> str:
        """Why it could not be made alone."""
        return str(self.value) if self.how == CANNOT else "what it needs cannot be made alone"


# -- writing a call ----------------------------------------------------------------------------------------------------


def again(event: Event, heard: ProbeRecord) -> Again | str:
    """A call written so that it can be made alone, or why it cannot."""
    if event.what == "handed" or event.healed:
        return "its result was handed over, not computed"
    if event.api in _GRAPH:
        return "it needs the graph that made its inputs"
    if event.place.kind == "a":
        return "an attribute is read, nothing is called"
    try:
        return _layer(event, heard) if event.layer and "k" not in event.flags else _call(event, heard)
    except Unwritable as error:
        return str(error)


def _call(event: Event, heard: ProbeRecord) -> Again | str:
    draft = next(drafts(event, heard), None)
    if draft is None:
        return "nothing is known of how to write it"
    given: list[Encoded] = []
    names: dict[object, str] = {}
    for number, position, argument in list(draft.inputs()):
        draft = draft.with_argument(number, position, _named(argument, given, names))
    text = write(draft)
    return Again(_source(text, 1), tuple(given))


def _layer(event: Event, heard: ProbeRecord) -> Again | str:
    made = next((e for e in heard.trace.events if e.layer == event.layer and "k" in e.flags), None)
    if made is None or event.state is None:
        return "nothing is known of how its layer was made"
    given: list[Encoded] = []
    names: dict[object, str] = {}
    options, inputs = (
        tuple(_named(a, given, names) for a in arguments(e, heard)) for e in (made, event)
    )  # fmt: skip
    module = made.api.rpartition(".")[0]
    steps = (
        Step(StepForm.CALL, made.api, "m", options),
        Step(StepForm.STATEMENT, "restored(m)"),
        Step(StepForm.CALL, "m", "out", inputs),
    )
    text = write(Draft((f"import {module}",), steps))
    return Again(_source(text, 1), tuple(given), *event.state)


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
    if kind in ("T", "N"):
        serial = value[6] if len(value) > 6 else len(given) + 0.5
        if serial not in names:
            names[serial] = f"given[{len(given)}]"
            given.append(value[:6])
        return ("$", names[serial])
    if kind in ("L", "t") and _has_tensor(value):
        items = [write_one(_name(v, given, names)) for v in value[1]]
        return ("$", f"[{', '.join(items)}]" if kind == "L" else f"({', '.join(items)},)")
    return value


def _has_tensor(value: Encoded) -> bool:
    return tag(value) in ("T", "N") or (tag(value) in ("L", "t") and any(map(_has_tensor, value[1])))


def write_one(value: Encoded) -> str:
    """An expression for one value."""
    return write(Draft((), (Step(StepForm.TEMPLATE, "{0}", "", (Argument("", value),)),), ())).lines[-1]


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
        found: dict[int, Became] = {}
        for _ in range(_DEATHS):
            left = {n: c for n, c in calls.items() if n not in found}
            done = self._some(left, runtime, zoom) if left else {}
            if not done:
                break
            found |= done
        return found | {n: Became(CANNOT, "it was not made again") for n in calls if n not in found}

    def _some(self, calls: Mapping[int, Again], runtime: Runtime, zoom: bool) -> dict[int, Became]:
        frames = [("replay", n, c.source, list(c.given), c.state, c.training) for n, c in calls.items()]
        setting = replace(self._setting, timeout=self._setting.timeout + _EACH * len(calls))
        run = self._bench.replay(setting, runtime, frames, zoom=zoom)
        in_flight, done = read(run.file)
        found = dict(_became(done))
        if (run.died or run.fate.timed_out) and in_flight:
            how = "does not return" if run.fate.timed_out else run.fate.signal_name or f"exit status {run.fate.code}"
            found[in_flight - 1] = Became(DIED, how)
        return found


def _became(frames: Iterator[tuple[Encoded, ...]]) -> Iterator[tuple[int, Became]]:
    ops: list[Op] = []
    for frame in frames:
        if frame[0] == "op":
            ops.append(Op(frame[2], frame[3]))
        elif frame[0] == "replayed":
            yield frame[1], Became(frame[2], frame[3], tuple(ops))
            ops = []


# -- judging -----------------------------------------------------------------------------------------------------------


def recorded(event: Event) -> Encoded:
    """What a call that is made again should give: its result, if it has one, and what it wrote."""
    return ("L", [*([] if event.place.kind in "si" else [event.value]), *(v for _, v in event.written)])


def disagrees(event: Event, became: Became) -> Difference | None:
    """How what became of a call differs from its recording; a difference of Python types or flags is none."""
    if became.how == DIED:
        return Difference("crash", True, _said(event), str(became.value))
    if event.what != "call" or became.how in (RAISE, UNPREPARED):
        raised = became.value["types"][0] if became.how in (RAISE, UNPREPARED) else ""
        if event.what != "call" and raised == event.value["types"][0]:
            return None
        actual = f"raises {raised}: {became.value['message'][:200]}" if raised else "returns"
        return Difference("exception", True, _said(event), actual)
    draws = "r" in event.flags or "u" in event.flags or "k" in event.flags
    want, got = _comparable(recorded(event), became.value)
    found = difference(want, got, values=not draws)
    return found if found is not None and found.hard else None


def _comparable(want: Encoded, got: Encoded) -> tuple[Encoded, Encoded]:
    """An in-place call hands back its receiver, which stands among what was written too."""
    length = min(len(want[1]), len(got[1]))
    return ("L", want[1][:length]), ("L", got[1][:length])


def _said(event: Event) -> str:
    return "returns" if event.what == "call" else f"raises {event.value['types'][0]}"


def odd_one(ours: Sequence[Op], theirs: Sequence[Op]) -> Op | None:
    """The first operator of one side whose result none of the other side's gives."""
    for op in ours:
        found = (difference(op.value, other.value) for other in theirs)
        if all(d is not None and d.hard for d in found):
            return op
    return None


def replayable(trace: Trace, wanted: Sequence[int]) -> tuple[dict[int, Again], dict[int, str]]:
    """Of the calls with these numbers (from 1): those that can be made alone, and why the others cannot."""
    heard = probe_record(trace)
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
        verdict: ``cannot``, ``not reproduced`` (the runtime of the recording gives something else), ``operator``
            (the other runtime differs on equal inputs), or ``inputs`` (it agrees: a difference in the program came in).
    """

    number: int
    event: Event
    cannot: str
    sides: tuple[tuple[Runtime, Became], ...]
    differs: tuple[tuple[Runtime, Difference], ...]
    verdict: str
