"""The cells: a tracer behind its four questions, and one capability, in; nothing, or why the claim does not hold, out.

What a trace must hold is read off the program's own outcome in an untraced run, so no tracer vouches for itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.doctor import programs
from migrate_lens.model.report import Level
from migrate_lens.model.trace import Ending, Event, Trace
from migrate_lens.model.value import Encoded, array, difference, references, tag, tensors
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.limits import limits
from migrate_lens.runs.tracer import Capability, Seam, Standing, Support, Validation


class NonconformingError(Exception):
    """A claim that does not hold; its text says what was expected and what was found."""


class Asker:
    """Puts programs to a tracer, each question once.

    Args:
        seam: the tracer.
        folder: a private folder for programs.
    """

    def __init__(self, seam: Seam, folder: Path) -> None:
        self._seam = seam
        self._folder = folder
        self._outcomes: dict[str, Ending] = {}
        self._traces: dict[tuple[str, Steering], Trace] = {}

    def outcome(self, source: str) -> list[Encoded]:
        """The items of an untraced program's result."""
        if source not in self._outcomes:
            self._outcomes[source] = self._seam.reference_output(self._file(source))
        ending = self._outcomes[source]
        expect(ending.how == "finished" and tag(ending.value) == "L", "the program to finish", ending.how)
        return list(ending.value[1])

    def trace(self, source: str, steering: Steering | None = None) -> Trace:
        """The trace of a program."""
        steering = steering or Steering(Level.VALUES)
        key = (source, steering)
        if key not in self._traces:
            self._traces[key] = self._seam.capture(self._file(source), steering)
        return self._traces[key]

    def validation(self, source: str) -> Validation:
        """What the tracer says of its own trace."""
        return self._seam.validate(self._file(source), self.trace(source))

    def _file(self, source: str) -> Path:
        path = self._folder / f"{abs(hash(source))}" / "program.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return path


@contextmanager
def asking(seam: Seam) -> Iterator[Asker]:
    """An asker with a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="migrate-lens-") as name:
        yield Asker(seam, Path(name))


@dataclass(frozen=True, slots=True)
class Cell:
    """One claim and how it is tried; the check raises ``NonconformingError`` where the claim does not hold."""

    capability: Capability
    check: Callable[[Asker], None]

    @property
    def name(self) -> str:
        """The check's name, for a person."""
        return self.check.__name__.replace("_", " ")


# -- words of the checks -----------------------------------------------------------------------------------------------


def expect(holds: bool, wanted: object, found: object) -> None:
    """A condition of a claim."""
    if not holds:
        raise NonconformingError(f"expected {wanted}, found {found}")


def same(wanted: Encoded, found: Encoded, what: str) -> None:
    """Two values that must agree."""
    differs = difference(wanted, found)
    if differs is not None and differs.aspect != "gradient":
        raise NonconformingError(f"{what}: expected {differs.expected}, found {differs.actual}")


def names(trace: Trace) -> list[str]:
    """Names of a trace's calls, imports and attributes apart."""
    return [e.api for e in trace.events if e.place.kind not in "pfa"]


def one(trace: Trace, api: str, nth: int = 1) -> Event:
    """The nth call of a name."""
    found = [e for e in trace.events if e.api == api]
    expect(len(found) >= nth, f"call {nth} of {api}", f"{len(found)} of {names(trace)}")
    return found[nth - 1]


def made_by(trace: Trace, event: Event) -> list[str]:
    """For each tensor among a call's inputs, the name of the call that made it, ``""`` for a constant."""
    makers = {pair: e.api for e in trace.events for pair in e.serials}
    return [makers.get(pair, "") for pair in references(event.inputs)]


# -- checks ------------------------------------------------------------------------------------------------------------


def every_call_in_order_with_its_result(ask: Asker) -> None:
    trace, wanted = ask.trace(programs.FORWARD), ask.outcome(programs.FORWARD)
    apis = [
        "torch.tensor", "torch.tensor", "torch.relu", "torch.Tensor.sub", "torch.nn.functional.softmax",
        "torch.Tensor.reshape", "torch.Tensor.__getitem__", "torch.Tensor.sum",
    ]  # fmt: skip
    expect(names(trace) == apis, apis, names(trace))
    calls = [e for e in trace.events if e.place.kind not in "pfa"]
    for event, value in zip(calls, wanted, strict=True):
        same(value, event.value, event.api)


def inputs_are_named_in_order_by_what_made_them(ask: Asker) -> None:
    trace = ask.trace(programs.FORWARD)
    makers = made_by(trace, one(trace, "torch.Tensor.sub"))
    expect(makers == ["torch.relu", "torch.tensor"], "relu's result minus the tensor", makers)


def the_program_ends_as_it_does_untraced(ask: Asker) -> None:
    for source in (programs.FORWARD, programs.LAYERS, programs.CONTROL_FLOW):
        ending = ask.trace(source).ending
        expect(ending.has_value and tag(ending.value) == "L", "an outcome", ending.how)
        expect(len(ending.value[1]) == len(ask.outcome(source)), "the same outcome", ending.value)
        if source != programs.LAYERS:  # its parameters are random
            same(("L", ask.outcome(source)), ending.value, "outcome")


def the_gradient_that_reaches_a_result_is_recorded(ask: Asker) -> None:
    trace, wanted = ask.trace(programs.BACKWARD, Steering(Level.VALUES, gradients=True)), ask.outcome(programs.BACKWARD)
    found = trace.gradients.get(one(trace, "torch.exp").key, {})
    expect(0 in found, "the gradient that reaches the exponential", found)
    same(wanted[1], found[0], "gradient")
    same(wanted[0], one(trace, "torch.Tensor.grad").value, "the input's gradient")


def what_takes_part_in_the_gradient_graph_is_said(ask: Asker) -> None:
    trace = ask.trace(programs.BACKWARD)
    inside, outside = one(trace, "torch.Tensor.mul"), one(trace, "torch.Tensor.mul", 3)
    expect(inside.value[5] is True, "a result that requires a gradient", inside.value[5])
    expect(outside.value[5] is False, "none under no_grad", outside.value[5])


def a_write_is_recorded_with_what_was_written(ask: Asker) -> None:
    trace, wanted = ask.trace(programs.IN_PLACE), ask.outcome(programs.IN_PLACE)
    scaled, stored = one(trace, "torch.Tensor.mul_"), one(trace, "torch.Tensor.__setitem__")
    expect(scaled.flags.argument == 0, "the receiver as the result", scaled.flags)
    for event in (scaled, stored):
        expect(bool(event.written) and event.written[0][0] == 0, "a write to the receiver", event.written)
    same(wanted[0], stored.written[0][1], "what was written")
    versions = [references(e.inputs)[0][1] for e in (scaled, stored, one(trace, "torch.add"))]
    expect(versions == sorted(set(versions)), "a newer version after each write", versions)


def shared_memory_is_said_exactly_where_writes_show_through(ask: Asker) -> None:
    trace, (through, copied, receiver) = ask.trace(programs.ALIASING), ask.outcome(programs.ALIASING)
    said = [one(trace, f"torch.Tensor.{n}").flags.shares_memory for n in ("view", "clone")]
    expect(said == [through, copied], [through, copied], said)
    expect((one(trace, "torch.Tensor.fill_").flags.argument == 0) == receiver, "the receiver itself", receiver)


def random_draws_are_told_from_other_calls_and_seeded(ask: Asker) -> None:
    trace, wanted = ask.trace(programs.RANDOMNESS), ask.outcome(programs.RANDOMNESS)
    drawn = [one(trace, api).flags.drew for api in ("torch.rand", "torch.ones", "torch.randn")]
    expect(drawn == [True, False, True], [True, False, True], drawn)
    same(wanted[0], one(trace, "torch.rand").value, "the numbers drawn after a seed")


def what_no_call_made_is_a_value_without_a_parent(ask: Asker) -> None:
    trace, wanted = ask.trace(programs.CONSTANTS), ask.outcome(programs.CONSTANTS)
    added = one(trace, "torch.Tensor.add")
    makers = made_by(trace, added)
    expect(makers == ["torch.ones", ""], "one made by torch.ones, one by no call", makers)
    constant = trace.values.get(references(added.inputs)[1])
    expect(constant is not None, "the constant's value", "none")
    same(wanted[0], constant, "the constant")


def a_layer_is_one_call_with_its_parameters(ask: Asker) -> None:
    trace = ask.trace(programs.LAYERS)
    calls = [(e.api, e.part) for e in trace.events if e.place.kind == "c" and e.layer and not e.flags.made_layer]
    wanted = [("torch.nn.Linear", "0"), ("torch.nn.ReLU", "1"), ("torch.nn.Linear", "")]
    expect(calls == wanted, wanted, calls)
    states = [e.state[0] for e in trace.events if e.layer and e.state]
    state = states[-1] if states else []
    expect([s[0] for s in state] == ["weight", "bias"], "weight and bias", [s[0] for s in state])
    weight = trace.ending.value[1][2]
    same(weight, ("T", state[0][1], tuple(state[0][2]), state[0][3], *weight[4:]), "the weight")


def branches_and_loops_are_recorded_as_they_were_taken(ask: Asker) -> None:
    trace, (times, *_) = ask.trace(programs.CONTROL_FLOW), ask.outcome(programs.CONTROL_FLOW)
    rounds = [e.visit for e in trace.events if e.api == "torch.Tensor.mul"]
    expect(rounds == list(range(1, times + 1)), f"visits 1 to {times}", rounds)
    expect("torch.relu" in names(trace) and "torch.neg" not in names(trace), "the branch that was taken", names(trace))
    expect(names(trace).count("torch.tanh") == 5, "5 steps", names(trace).count("torch.tanh"))


def what_raised_and_what_was_not_there_is_recorded(ask: Asker) -> None:
    trace, (said, value) = ask.trace(programs.EXCEPTIONS), ask.outcome(programs.EXCEPTIONS)
    failed = one(trace, "torch.matmul")
    expect(failed.what == "raise", "a call that raised", failed.what)
    raised = failed.failure.type if failed.failure is not None else ""
    expect(raised == said.split(" and ")[0], said, raised)
    absent = one(trace, "torch.Tensor.no_such_method")
    expect(absent.what == "absent", "a name that is not there", absent.what)
    same(value, one(trace, "torch.relu").value, "the call after it")


def calls_in_hooks_are_recorded_and_so_is_what_they_hang_on(ask: Asker) -> None:
    trace = ask.trace(programs.HOOKS)
    calls = [n for n in names(trace) if n in ("torch.sum", "torch.nn.Linear")]
    expect(calls == ["torch.nn.Linear", "torch.sum", "torch.nn.Linear"], "made, hook, called", calls)


def calls_in_a_data_loader_are_recorded(ask: Asker) -> None:
    trace, (total,) = ask.trace(programs.DATA_LOADER), ask.outcome(programs.DATA_LOADER)
    expect(names(trace).count("torch.Tensor.mul") == 4, "4 items", names(trace).count("torch.Tensor.mul"))
    same(total, one(trace, "torch.Tensor.add", 2).value, "the total")


def calls_in_threads_are_recorded(ask: Asker) -> None:
    trace, wanted = ask.trace(programs.THREADS), ask.outcome(programs.THREADS)
    found = [e.value for e in trace.events if e.api == "torch.neg"]
    expect(len(found) == len(wanted), f"{len(wanted)} calls", len(found))
    for value in wanted:
        expect(any(difference(value, other) is None for other in found), "each thread's result", found)


def a_call_is_handed_another_value(ask: Asker) -> None:
    value = ("T", "float32", (2, 2), b"\0\0\x80?" * 4, "cpu", False)
    trace = ask.trace(programs.FORWARD, Steering(Level.VALUES, substitute=(("torch.relu", value),)))
    expect(
        one(trace, "torch.relu").healed == "substituted", "a call that was not made", one(trace, "torch.relu").healed
    )
    wanted = [0.5, -1.0, -7.0, 0.0]
    found = one(trace, "torch.Tensor.sub")
    expect(_numbers(found.value) == wanted, wanted, _numbers(found.value))


def the_program_stops_after_a_call(ask: Asker) -> None:
    trace = ask.trace(programs.FORWARD, Steering(Level.VALUES, stop_at="torch.Tensor.sub"))
    expect(trace.ending.how == "stopped", "a stopped program", trace.ending.how)
    expect(names(trace)[-1] == "torch.Tensor.sub", "the call as the last", names(trace))


def all_calls_before_a_crash_are_kept(ask: Asker) -> None:
    trace = ask.trace(programs.STREAMING)
    expect(trace.ending.how == "died", "a program that died", trace.ending.how)
    expect(names(trace) == ["torch.ones", "torch.exp"], "both calls before the crash", names(trace))


def structure_alone_holds_no_values(ask: Asker) -> None:
    trace, full = ask.trace(programs.FORWARD, Steering(Level.STRUCTURE)), ask.trace(programs.FORWARD)
    expect(names(trace) == names(full), names(full), names(trace))
    for bare, whole in zip(trace.events, full.events, strict=True):
        shapes = [[(t[1], t[2]) for t in tensors(e.value)] for e in (bare, whole)]
        expect(shapes[0] == shapes[1], shapes[1], shapes[0])
        expect(all(t[3] is None for t in tensors(bare.value)), "no values", bare.api)


def operators_below_a_call_are_recorded_for_that_call(ask: Asker) -> None:
    trace = ask.trace(programs.FORWARD, Steering(Level.VALUES, zoom="torch.nn.functional.softmax"))
    below = {e.api: [op.name for op in e.ops] for e in trace.events if e.ops}
    expect(list(below) == ["torch.nn.functional.softmax"], "operators below one call", below)
    expect(any("softmax" in name for name in below["torch.nn.functional.softmax"]), "a softmax", below)
    event = one(trace, "torch.nn.functional.softmax")
    expect(
        any(difference(event.value, op.value) is None for op in event.ops), "an operator that gives the result", below
    )


def each_call_gives_its_result_again(ask: Asker) -> None:
    validation = ask.validation(programs.FORWARD)
    expect(validation.standing is Standing.VERIFIED, "a trace that is verified", validation.checks)


def values_of_sparse_tensors_are_said_to_be_missing(ask: Asker) -> None:
    trace = ask.trace(programs.SPARSE)
    made = one(trace, "torch.sparse_coo_tensor")
    expect(made.what == "call", "a sparse tensor", made.value)
    codes = [limit.code for limit in limits(trace)]
    expect("values-not-kept" in codes, "values-not-kept", codes)


def _numbers(value: Encoded) -> list[float]:
    found = array(value)
    return [] if found is None else [float(v) for v in found.reshape(-1)]


C = Capability
CELLS = (
    Cell(C.FORWARD, every_call_in_order_with_its_result),
    Cell(C.FORWARD, inputs_are_named_in_order_by_what_made_them),
    Cell(C.FORWARD, the_program_ends_as_it_does_untraced),
    Cell(C.BACKWARD, the_gradient_that_reaches_a_result_is_recorded),
    Cell(C.BACKWARD, what_takes_part_in_the_gradient_graph_is_said),
    Cell(C.IN_PLACE, a_write_is_recorded_with_what_was_written),
    Cell(C.ALIASING, shared_memory_is_said_exactly_where_writes_show_through),
    Cell(C.RANDOMNESS, random_draws_are_told_from_other_calls_and_seeded),
    Cell(C.CONSTANTS, what_no_call_made_is_a_value_without_a_parent),
    Cell(C.LAYERS, a_layer_is_one_call_with_its_parameters),
    Cell(C.CONTROL_FLOW, branches_and_loops_are_recorded_as_they_were_taken),
    Cell(C.EXCEPTIONS, what_raised_and_what_was_not_there_is_recorded),
    Cell(C.HOOKS, calls_in_hooks_are_recorded_and_so_is_what_they_hang_on),
    Cell(C.DATA_LOADER, calls_in_a_data_loader_are_recorded),
    Cell(C.THREADS, calls_in_threads_are_recorded),
    Cell(C.INTERVENTION, a_call_is_handed_another_value),
    Cell(C.INTERVENTION, the_program_stops_after_a_call),
    Cell(C.STREAMING, all_calls_before_a_crash_are_kept),
    Cell(C.STRUCTURE, structure_alone_holds_no_values),
    Cell(C.LOW_LEVEL, operators_below_a_call_are_recorded_for_that_call),
    Cell(C.REPLAY, each_call_gives_its_result_again),
    Cell(C.SPARSE, values_of_sparse_tensors_are_said_to_be_missing),
)


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a cell.

    Attributes:
        cell: which.
        claim: what the tracer says of the capability.
        failure: ``""`` where the check passed, else what was expected and what was found.
    """

    cell: Cell
    claim: Support
    failure: str

    @property
    def honest(self) -> bool:
        """Whether the claim is what the check shows: claimed and proven, or neither."""
        return (self.claim.standing == "unproven") == bool(self.failure)


def run(seam: Seam, ask: Asker) -> tuple[Tried, ...]:
    """Try every cell on a tracer."""
    claims = seam.describe()
    return tuple(Tried(cell, claims[cell.capability], failure_of(cell, ask)) for cell in CELLS)


def failure_of(cell: Cell, ask: Asker) -> str:
    """Run one cell; why it fails, or ``""``."""
    try:
        cell.check(ask)
    except NonconformingError as error:
        return str(error)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return f"expected a whole trace, found {type(error).__name__}: {error}"  # what the check looks for is not there
    return ""
