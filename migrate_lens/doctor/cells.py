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
from migrate_lens.model.trace import Died, Ending, Event, EventKind, Finished, PlaceKind, Stopped, Trace
from migrate_lens.model.value import (
    LIST,
    TENSOR,
    Encoded,
    ListValue,
    TensorValue,
    array,
    difference,
    parameters,
    references,
    tag,
    tensors,
    typed,
)
from migrate_lens.runs.bench import Steering
from migrate_lens.runs.limits import limits
from migrate_lens.runs.tracer import UNPROVEN, Capability, Seam, Standing, Support, Validation


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
        expect(isinstance(ending, Finished) and tag(ending.value) == LIST, "the program to finish", ending.how)
        return list(ListValue._make(ending.value).items)

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


def expect(holds: bool, wanted: object, seen: object) -> None:
    """A condition of a claim."""
    if not holds:
        raise NonconformingError(f"expected {wanted}, found {seen}")


def expect_equal(wanted: object, seen: object) -> None:
    """Two things of a trace that must be the same."""
    expect(wanted == seen, wanted, seen)


def agree(wanted: Encoded, seen: Encoded, what: str) -> None:
    """Two values that must agree."""
    differs = difference(wanted, seen)
    if differs is not None and differs.aspect != "gradient":
        raise NonconformingError(f"{what}: expected {differs.expected}, found {differs.actual}")


_NO_CALLS = (PlaceKind.IMPORT, PlaceKind.FROM_IMPORT, PlaceKind.ATTRIBUTE)


def calls(trace: Trace) -> list[Event]:
    """A trace's calls, imports and attributes apart."""
    return [event for event in trace.events if event.place.kind not in _NO_CALLS]


def names(trace: Trace) -> list[str]:
    """Names of a trace's calls."""
    return [event.api for event in calls(trace)]


def nth_call(trace: Trace, api: str, nth: int = 1) -> Event:
    """The nth call of a name."""
    of_that_name = [event for event in trace.events if event.api == api]
    expect(len(of_that_name) >= nth, f"call {nth} of {api}", f"{len(of_that_name)} of {names(trace)}")
    return of_that_name[nth - 1]


def made_by(trace: Trace, event: Event) -> list[str]:
    """For each tensor among a call's inputs, the name of the call that made it, ``""`` for a constant."""
    makers = {pair: maker.api for maker in trace.events for pair in maker.serials}
    return [makers.get(pair, "") for pair in references(event.inputs)]


def tensor(value: Encoded) -> TensorValue:
    """A value that must be a tensor."""
    view = typed(value)
    if not isinstance(view, TensorValue):
        raise NonconformingError(f"expected a tensor, found {value}")
    return view


def numbers(value: Encoded) -> list[float]:
    """The elements of a tensor."""
    elements = array(value)
    return [] if elements is None else [float(element) for element in elements.reshape(-1)]


# -- checks ------------------------------------------------------------------------------------------------------------

FORWARD_APIS = (
    "torch.tensor",
    "torch.tensor",
    "torch.relu",
    "torch.Tensor.sub",
    "torch.nn.functional.softmax",
    "torch.Tensor.reshape",
    "torch.Tensor.__getitem__",
    "torch.Tensor.sum",
)


def every_call_in_order_with_its_result(ask: Asker) -> None:
    trace, results = ask.trace(programs.FORWARD), ask.outcome(programs.FORWARD)
    expect_equal(list(FORWARD_APIS), names(trace))
    for event, result in zip(calls(trace), results, strict=True):
        agree(result, event.value, event.api)


def inputs_are_named_in_order_by_what_made_them(ask: Asker) -> None:
    trace = ask.trace(programs.FORWARD)
    makers = made_by(trace, nth_call(trace, "torch.Tensor.sub"))
    expect(makers == ["torch.relu", "torch.tensor"], "relu's result minus the tensor", makers)


def the_program_ends_as_it_does_untraced(ask: Asker) -> None:
    for source in (programs.FORWARD, programs.LAYERS, programs.CONTROL_FLOW):
        ending, outcome = ask.trace(source).ending, ask.outcome(source)
        expect(ending.has_value and tag(ending.value) == LIST, "an outcome", ending.how)
        items = ListValue._make(ending.value).items
        expect(len(items) == len(outcome), "the same outcome", ending.value)
        if source != programs.LAYERS:  # its parameters are random
            agree((LIST, outcome), ending.value, "outcome")


def the_gradient_that_reaches_a_result_is_recorded(ask: Asker) -> None:
    trace = ask.trace(programs.BACKWARD, Steering(Level.VALUES, gradients=True))
    of_input, of_exponential, _ = ask.outcome(programs.BACKWARD)
    reached = trace.gradients.get(nth_call(trace, "torch.exp").key, {})
    expect(0 in reached, "the gradient that reaches the exponential", reached)
    agree(of_exponential, reached[0], "gradient")
    agree(of_input, nth_call(trace, "torch.Tensor.grad").value, "the input's gradient")


def what_takes_part_in_the_gradient_graph_is_said(ask: Asker) -> None:
    trace = ask.trace(programs.BACKWARD)
    inside = tensor(nth_call(trace, "torch.Tensor.mul").value)
    outside = tensor(nth_call(trace, "torch.Tensor.mul", 3).value)
    expect(inside.requires_grad is True, "a result that requires a gradient", inside.requires_grad)
    expect(outside.requires_grad is False, "none under no_grad", outside.requires_grad)


def a_write_is_recorded_with_what_was_written(ask: Asker) -> None:
    trace = ask.trace(programs.IN_PLACE)
    written, _ = ask.outcome(programs.IN_PLACE)
    scaled, stored = nth_call(trace, "torch.Tensor.mul_"), nth_call(trace, "torch.Tensor.__setitem__")
    expect(scaled.flags.argument == 0, "the receiver as the result", scaled.flags)
    for event in (scaled, stored):
        expect(bool(event.written) and event.written[0].argument == 0, "a write to the receiver", event.written)
    agree(written, stored.written[0].value, "what was written")
    versions = [_version_of_receiver(event) for event in (scaled, stored, nth_call(trace, "torch.add"))]
    expect(versions == sorted(set(versions)), "a newer version after each write", versions)


def _version_of_receiver(event: Event) -> int:
    """How often the first tensor of a call's inputs was written before."""
    _, version = references(event.inputs)[0]
    return version


def shared_memory_is_said_exactly_where_writes_show_through(ask: Asker) -> None:
    trace = ask.trace(programs.ALIASING)
    through, copied, receiver = ask.outcome(programs.ALIASING)
    said = [nth_call(trace, f"torch.Tensor.{name}").flags.shares_memory for name in ("view", "clone")]
    expect_equal([through, copied], said)
    gives_receiver = nth_call(trace, "torch.Tensor.fill_").flags.argument == 0
    expect(gives_receiver == receiver, "the receiver itself", receiver)


def random_draws_are_told_from_other_calls_and_seeded(ask: Asker) -> None:
    trace, results = ask.trace(programs.RANDOMNESS), ask.outcome(programs.RANDOMNESS)
    drawn = [nth_call(trace, api).flags.drew for api in ("torch.rand", "torch.ones", "torch.randn")]
    expect_equal([True, False, True], drawn)
    agree(results[0], nth_call(trace, "torch.rand").value, "the numbers drawn after a seed")


def what_no_call_made_is_a_value_without_a_parent(ask: Asker) -> None:
    trace, results = ask.trace(programs.CONSTANTS), ask.outcome(programs.CONSTANTS)
    added = nth_call(trace, "torch.Tensor.add")
    makers = made_by(trace, added)
    expect(makers == ["torch.ones", ""], "one made by torch.ones, one by no call", makers)
    _, constant = references(added.inputs)
    value = trace.values.get(constant)
    expect(value is not None, "the constant's value", "none")
    agree(results[0], value, "the constant")


def a_layer_is_one_call_with_its_parameters(ask: Asker) -> None:
    trace = ask.trace(programs.LAYERS)
    called = [
        (event.api, event.part)
        for event in trace.events
        if event.place.kind is PlaceKind.CALL and event.layer and not event.flags.made_layer
    ]
    expect_equal([("torch.nn.Linear", "0"), ("torch.nn.ReLU", "1"), ("torch.nn.Linear", "")], called)
    states = [event.state for event in trace.events if event.layer and event.state]
    state = parameters(states[-1].tensors if states else [])
    own_names = [parameter.name for parameter in state]
    expect(own_names == ["weight", "bias"], "weight and bias", own_names)
    outcome = ListValue._make(trace.ending.value).items
    weight = tensor(outcome[2])
    recorded = weight._replace(dtype=state[0].dtype, shape=tuple(state[0].shape), data=state[0].data)
    agree(outcome[2], tuple(recorded), "the weight")


def branches_and_loops_are_recorded_as_they_were_taken(ask: Asker) -> None:
    trace = ask.trace(programs.CONTROL_FLOW)
    times, *_ = ask.outcome(programs.CONTROL_FLOW)
    rounds = [event.visit for event in trace.events if event.api == "torch.Tensor.mul"]
    expect(rounds == list(range(1, times + 1)), f"visits 1 to {times}", rounds)
    apis = names(trace)
    expect("torch.relu" in apis and "torch.neg" not in apis, "the branch that was taken", apis)
    expect(apis.count("torch.tanh") == 5, "5 steps", apis.count("torch.tanh"))


def what_raised_and_what_was_not_there_is_recorded(ask: Asker) -> None:
    trace = ask.trace(programs.EXCEPTIONS)
    said, value = ask.outcome(programs.EXCEPTIONS)
    failed = nth_call(trace, "torch.matmul")
    expect(failed.what is EventKind.RAISE, "a call that raised", failed.what)
    raised = failed.failure.type if failed.failure is not None else ""
    expect(raised == said.split(" and ")[0], said, raised)
    absent = nth_call(trace, "torch.Tensor.no_such_method")
    expect(absent.what is EventKind.ABSENT, "a name that is not there", absent.what)
    agree(value, nth_call(trace, "torch.relu").value, "the call after it")


def calls_in_hooks_are_recorded_and_so_is_what_they_hang_on(ask: Asker) -> None:
    trace = ask.trace(programs.HOOKS)
    made_hook_called = ["torch.nn.Linear", "torch.sum", "torch.nn.Linear"]
    seen = [api for api in names(trace) if api in made_hook_called]
    expect(seen == made_hook_called, "made, hook, called", seen)


def calls_in_a_data_loader_are_recorded(ask: Asker) -> None:
    trace = ask.trace(programs.DATA_LOADER)
    (total,) = ask.outcome(programs.DATA_LOADER)
    items = names(trace).count("torch.Tensor.mul")
    expect(items == 4, "4 items", items)
    agree(total, nth_call(trace, "torch.Tensor.add", 2).value, "the total")


def calls_in_threads_are_recorded(ask: Asker) -> None:
    trace, results = ask.trace(programs.THREADS), ask.outcome(programs.THREADS)
    values = [event.value for event in trace.events if event.api == "torch.neg"]
    expect(len(values) == len(results), f"{len(results)} calls", len(values))
    for result in results:
        is_there = any(difference(result, value) is None for value in values)
        expect(is_there, "each thread's result", values)


def a_call_is_handed_another_value(ask: Asker) -> None:
    handed = TensorValue(TENSOR, "float32", (2, 2), b"\0\0\x80?" * 4, "cpu", False)  # four ones
    steering = Steering(Level.VALUES, substitute=(("torch.relu", tuple(handed)),))
    trace = ask.trace(programs.FORWARD, steering)
    healed = nth_call(trace, "torch.relu").healed
    expect(healed == "substituted", "a call that was not made", healed)
    expect_equal([0.5, -1.0, -7.0, 0.0], numbers(nth_call(trace, "torch.Tensor.sub").value))


def the_program_stops_after_a_call(ask: Asker) -> None:
    trace = ask.trace(programs.FORWARD, Steering(Level.VALUES, stop_at="torch.Tensor.sub"))
    expect(isinstance(trace.ending, Stopped), "a stopped program", trace.ending.how)
    expect(names(trace)[-1] == "torch.Tensor.sub", "the call as the last", names(trace))


def all_calls_before_a_crash_are_kept(ask: Asker) -> None:
    trace = ask.trace(programs.STREAMING)
    expect(isinstance(trace.ending, Died), "a program that died", trace.ending.how)
    expect(names(trace) == ["torch.ones", "torch.exp"], "both calls before the crash", names(trace))


def structure_alone_holds_no_values(ask: Asker) -> None:
    trace, full = ask.trace(programs.FORWARD, Steering(Level.STRUCTURE)), ask.trace(programs.FORWARD)
    expect_equal(names(full), names(trace))
    for bare, whole in zip(trace.events, full.events, strict=True):
        expect_equal(_shapes(whole), _shapes(bare))
        has_values = any(tensor(value).data is not None for value in tensors(bare.value))
        expect(not has_values, "no values", bare.api)


def _shapes(event: Event) -> list[tuple[str, tuple[int, ...]]]:
    """Dtype and shape of each tensor of a result."""
    views = [tensor(value) for value in tensors(event.value)]
    return [(view.dtype, view.shape) for view in views]


def operators_below_a_call_are_recorded_for_that_call(ask: Asker) -> None:
    api = "torch.nn.functional.softmax"
    trace = ask.trace(programs.FORWARD, Steering(Level.VALUES, zoom=api))
    below = {event.api: [operator.name for operator in event.ops] for event in trace.events if event.ops}
    expect(list(below) == [api], "operators below one call", below)
    expect(any("softmax" in name for name in below[api]), "a softmax", below)
    event = nth_call(trace, api)
    gives_result = any(difference(event.value, operator.value) is None for operator in event.ops)
    expect(gives_result, "an operator that gives the result", below)


def each_call_gives_its_result_again(ask: Asker) -> None:
    validation = ask.validation(programs.FORWARD)
    expect(validation.standing is Standing.VERIFIED, "a trace that is verified", validation.checks)


def values_of_sparse_tensors_are_said_to_be_missing(ask: Asker) -> None:
    trace = ask.trace(programs.SPARSE)
    made = nth_call(trace, "torch.sparse_coo_tensor")
    failure = f"{made.failure.type}: {made.failure.message}" if made.failure is not None else made.what
    expect(made.returned, "a sparse tensor", failure)
    codes = [limit.code for limit in limits(trace)]
    expect("values-not-kept" in codes, "values-not-kept", codes)


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
        return (self.claim == UNPROVEN) == bool(self.failure)


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
