"""Keep-going on the target's side: torch's recorded trace in, torch's recorded results handed to the program.

At a difference the gap is in the trace and the program goes on with torch's value, so that each later call is judged
on inputs equal to torch's. What was handed over is written with each frame: nothing is handed silently.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_lens.model.value import (
    ARRAY,
    FUNCTION,
    LIST,
    OBJECT,
    REFERENCE,
    TENSOR,
    TUPLE,
    Encoded,
    KeywordValue,
    LayerValue,
    TensorValue,
    difference,
    is_iterator,
    parameters,
    references,
    sampled,
    tag,
    tensors,
    typed,
)
from migrate_lens.protocol.flags import Flags
from migrate_lens.protocol.frames import Called, Event, Handed, Healed, LayerState, Raised, Written
from migrate_lens.protocol.journal import Journal
from migrate_lens.worker.backends.encoding import BRIEF
from migrate_lens.worker.backends.framework import TargetBackend
from migrate_lens.worker.backends.kinds import owner_of
from migrate_lens.worker.heal.address import ADDRESSES, Address
from migrate_lens.worker.heal.optimizer import NAMES, Optimizer
from migrate_lens.worker.heal.reference import NO_EVENTS, NO_STATES, Reference, Visit, key_of, name_of
from migrate_lens.worker.heal.standins import Factory
from migrate_lens.worker.observe.call import Call, Place, Returned
from migrate_lens.worker.observe.failures import keywords_of, lacking, torch_error
from migrate_lens.worker.observe.frames import hide
from migrate_lens.worker.observe.naming import USER
from migrate_lens.worker.observe.nodes import Node
from migrate_lens.worker.observe.recorder import Recorder

STAND_IN = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """What is handed over, and where.

    Attributes:
        everything: heal every difference; else random draws and new layers only.
        spare: nodes, as ``module:line:column:end line:end column:kind``, that are left as the target has them.
        skip: nodes that are not called, since the call kills the process.
        hashable: hand over sizes that can be keys, as torch's can.
    """

    everything: bool
    spare: frozenset[str]
    skip: frozenset[str]
    hashable: bool


class Healer(Recorder):
    """A recorder that holds each call against torch's and hands over torch's value where its policy says so.

    Args:
        backend: the target's side of the seam.
        journal: where frames go.
        reference: torch's trace.
        policy: what is handed over.
    """

    def __init__(self, backend: TargetBackend, journal: Journal, reference: Reference, policy: Policy) -> None:
        super().__init__(backend, journal, inputs=False)
        backend.keep = None  # values are held against torch's as soon as they are there
        self._reference_trace = reference
        self._policy = policy
        self._factory = Factory(backend, reference.items, reference.version, dict.fromkeys(NAMES, Optimizer))
        self._target = backend
        self._expected: list[Mapping[Visit, Event]] = [NO_EVENTS]
        self._states: list[Mapping[Visit, LayerState]] = [NO_STATES]
        self._spared: set[int] = set()
        self._skipped: set[int] = set()
        self._unequal: set[Place] = set()
        self._strayed: set[Place] = set()
        self._answered = False
        self._missing: list[Called] = []
        self._synced: dict[int, tuple[weakref.ref[Any], tuple[int, int], tuple[int, ...]]] = {}
        self._apart: dict[int, weakref.ref[Any]] = {}
        self._remade: dict[int, weakref.ref[Any]] = {}

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        base = super().register(module, path, nodes)
        for number, node in enumerate(nodes, base):
            key = key_of(module, node)
            self._expected.append(self._reference_trace.events(key))
            self._states.append(self._reference_trace.states(key))
            name = name_of(key)
            if name in self._policy.spare:
                self._spared.add(number)
            if name in self._policy.skip:
                self._skipped.add(number)
        return base

    def _want(self, number: int, visit: int, part: str) -> Event | None:
        return self._expected[number].get((visit, part))

    def _heals(self, number: int) -> bool:
        return self._policy.everything and number not in self._spared

    # -- stand-ins -----------------------------------------------------------------------------------------------

    def origin(self, func: Any) -> int:
        owner = owner_of(func)
        if isinstance(owner, Optimizer):
            kind = super().origin(func)
            return kind if kind == USER else STAND_IN
        if self._factory.is_stand_in(func) or self._factory.is_stand_in(owner) or self._factory.is_empty(func):
            return STAND_IN
        return super().origin(func)

    def concerns(self, values: Any) -> bool:
        return super().concerns(values) or any(self._factory.is_stand_in(v) for v in values)

    def invoke(self, call: Call) -> Any:
        if self.blind() or self.visits[call.node] > self._last:
            return call.func(*call.args, **call.kwargs)
        call.visit = self.visits[call.node]
        if self._policy.everything and (call.node in self._skipped or self._stands_in(call)):
            return self._answer(call)
        want = self._want(*call.place)
        if isinstance(want, Called):
            self._unseen(self._prepare, call, want)
        return super().invoke(call)

    def expects(self, number: int) -> bool:
        """Whether torch's run has a call here: it made something of its own of the function, as ``jit.script`` does."""
        return isinstance(self._expected[number].get((self.visits[number], "")), Called)

    def _stands_in(self, call: Call) -> bool:
        """Whether a stand-in is called, or handed to a call: the target's own function could not do anything with it.

        A layer that stands in is a layer of the target's, and may go into its containers.
        """
        if self.origin(call.func) == STAND_IN:
            return True
        values, layer = (*call.args, *call.kwargs.values()), self.backend.module
        return any(self._factory.is_stand_in(v) and not isinstance(v, layer) for v in values)

    def _answer(self, call: Call) -> Any:
        """A call of a stand-in: torch's recorded result, or what the stand-in itself does."""
        want = self._want(*call.place)
        skipped = call.node in self._skipped
        self.journal.write(Handed("handed", *call.place))
        if want is None or isinstance(owner_of(call.func), Optimizer):
            return None if skipped else call.func(*call.args, **call.kwargs)
        if not isinstance(want, Called):
            raise torch_error(want.failure)
        self._answered = True
        self._missing.append(want)
        operands = self.tensors((*call.given, *call.kwargs.values()))
        self._write_back(operands, want.written)
        owner = owner_of(call.func)
        if not skipped and isinstance(owner, self.backend.module):
            if want.facts.own_layer:
                return self._as_torch_left_it(owner, want)
            if tag(want.value) == OBJECT:
                return call.func(*call.args, **call.kwargs)  # what lists its parameters, say: it has torch's
        result = self._result(want, None, operands, has=False)
        return self._cut(result, [*operands, *self._own_tensors(call.func)]) if skipped else result

    def _cut(self, result: Any, sources: list[Any]) -> Any:
        """A result with a graph to what it would have been made of, in which the call that was skipped is not."""
        if isinstance(result, self.backend.tensor):
            return self._target.linked(result, sources)
        if type(result) in (list, tuple):
            return type(result)(self._cut(item, sources) for item in result)
        return result

    def _own_tensors(self, func: Any) -> list[Any]:
        """Parameters and buffers of the layer that is called, or one of whose methods is."""
        layer = func if isinstance(func, self.backend.module) else owner_of(func)
        return list(self.backend.held(layer)) if isinstance(layer, self.backend.module) else []

    def _consequence(self, want: Called) -> bool:
        """Whether a difference may come of what a stand-in (an optimizer) left undone, so that it says nothing."""
        if not self._answered:
            return False
        if want.api.endswith(".grad"):
            return self._reference_trace.reaches(want, self._missing)
        return want.facts.moved or want.api.endswith(".state_dict")

    # -- bringing arguments to torch's state ---------------------------------------------------------------------

    def _prepare(self, call: Call, want: Called) -> None:
        """Bring what changed outside recorded calls (an optimizer's step) to torch's state before the call."""
        state = self._states[call.node].get((call.visit, call.part))
        if state is not None and isinstance(call.func, self.backend.module):
            self._fill_layer(call.func, state.state)
        if self._policy.everything:
            self._make_operands_equal(call, want)

    def _make_operands_equal(self, call: Call, want: Called) -> None:
        wanted = references(want.inputs, nested=False)
        operands = self.tensors((*call.given, *call.kwargs.values()))
        if len(wanted) != len(operands):
            if self._is_apart(operands):
                self._strayed.add(call.place)
            elif self._lacks_tensor(call, want):
                self._unequal.add(call.place)
            return
        for operand, reference in zip(operands, wanted, strict=True):
            value = self._reference_trace.values.get(reference)
            if self._is_apart([operand]):
                if value is None or difference(value, self.backend.encode_tensor(operand)) is not None:
                    self._strayed.add(call.place)
            elif value is not None and not self._made_equal(operand, value, reference):
                self._unequal.add(call.place)

    def _lacks_tensor(self, call: Call, want: Called) -> bool:
        """Whether something that is no tensor came where torch had one, as where a layer's buffer was refused."""
        mine, theirs = [*call.given, *call.kwargs.values()], [_argument(value) for value in want.inputs]
        if len(mine) != len(theirs):
            return False
        pairs = zip(mine, theirs, strict=True)
        return any(tag(encoded) == REFERENCE and not isinstance(value, self.backend.tensor) for value, encoded in pairs)

    def _is_synced(self, tensor: Any, reference: tuple[int, int]) -> bool:
        """Whether a tensor was given torch's values of this very version; an uncounted write may change its shape."""
        known, as_it_is = self._synced.get(id(tensor)), (reference, tuple(tensor.shape))
        return known is not None and known[0]() is tensor and known[1:] == as_it_is

    def _made_equal(self, tensor: Any, value: Encoded, reference: tuple[int, int]) -> bool:
        """Give a tensor torch's values unless it was given them before; whether it has them."""
        return self._is_synced(tensor, reference) or self._make_equal(tensor, value, reference)

    def _make_equal(self, tensor: Any, value: Encoded, reference: tuple[int, int]) -> bool:
        """Give a tensor torch's values to the last bit, so that noise does not add up; whether it has them."""
        mine = self.backend.encode_tensor(tensor)
        if tag(mine) == tag(value) == TENSOR and not _is_same(TensorValue._make(mine), TensorValue._make(value)):
            self._fill(tensor, value)
            if difference(value, self.backend.encode_tensor(tensor)) is not None:
                return False  # a strided view, or another shape: it cannot be made equal
        self._synced[id(tensor)] = (weakref.ref(tensor), reference, tuple(tensor.shape))
        return True

    def _other_inputs(self, call: Call, want: Called) -> bool:
        """Whether a call got other arrays or scalars than torch's, so that its result says nothing about it."""
        mine = [*call.given, *call.kwargs.values()]
        theirs = [_argument(value) for value in want.inputs]
        if len(mine) != len(theirs):
            return False
        pairs = zip(mine, theirs, strict=True)
        return any(_is_plain(encoded) and difference(encoded, self.backend.encode(value)) for value, encoded in pairs)

    # -- settling what happened ----------------------------------------------------------------------------------

    def returned(self, call: Call, flags: Flags, out: Any) -> Any:
        want = self._want(*call.place)
        called = want if isinstance(want, Called) else None
        if called is not None:
            call.written = _written_by_either(call, called)
        written = self.encode_written(call, flags)
        result = Returned(self.encode_out(out, flags), written, flags)
        healed = self._verdict(call, want, result)
        if self._spared:
            self._leave_apart(call, called, result, out)
        if healed == "differs" and called is not None and self._says_nothing(call, called):
            flags.other_inputs = True
        kept = _kept_of(result, called)
        shown = [(index, sampled(value, BRIEF)) for index, value in written] if kept is not result.value else written
        self.journal.write(Called("call", *call.place, call.api, [], kept, [], shown, flags.letters(), healed))
        if not healed or want is None:
            return self._kept(call, called, out)
        if not isinstance(want, Called):
            raise torch_error(want.failure)
        if healed == "state":
            self._fill_layer(out, LayerValue._make(want.value).state)
            return out
        self._write_back(call.operands, want.written)
        return self._result(want, out, call.operands, has=True)

    def _says_nothing(self, call: Call, want: Called) -> bool:
        """Whether a difference comes of other inputs, or of what a stand-in left undone."""
        if self._is_remade(call.func) or self.origin(call.func) == USER:
            return True
        return call.place in self._unequal or self._other_inputs(call, want) or self._consequence(want)

    def _is_remade(self, func: Any) -> bool:
        """Whether a layer is called, or a method of one, that was made without what its class refuses."""
        layer = func if isinstance(func, self.backend.module) else owner_of(func)
        known = self._remade.get(id(layer))
        return known is not None and known() is layer

    def _kept(self, call: Call, want: Called | None, out: Any) -> Any:
        """The target's own result, brought to torch's to the last bit where it agrees with it."""
        if want is not None:
            if want.facts.drew:
                self._write_back(call.operands, want.written)
            if self._policy.everything and not self._is_apart(self.inner(out)):
                self._align(out, want)
        return self._target.as_key(out) if self._policy.hashable else out

    def _leave_apart(self, call: Call, want: Called | None, result: Returned, out: Any) -> None:
        """Note what a spared place leaves other than torch does, and what is made of that.

        Memory that torch shares or writes, and results that differ, stay as they are here: no later call brings them
        to torch's state.
        """
        written = [call.operands[i] for i in call.written]
        if call.node in self._spared and want is not None:
            if _shares_less(want.facts, result.flags):
                left = [*call.operands, *self.inner(out)]
            elif difference(want.value, result.value) is not None and not is_iterator(want.value):
                left = [*written, *self.inner(out)]
            else:
                left = written
        elif self._is_apart(call.operands):
            left = [*self.inner(out), *written]
        else:
            return
        self._apart |= {id(tensor): weakref.ref(tensor) for tensor in left}

    def _is_apart(self, tensors: Sequence[Any]) -> bool:
        known = self._apart
        return bool(known) and any(id(t) in known and known[id(t)]() is t for t in tensors)

    def _align(self, out: Any, want: Called) -> None:
        """Make a result that agrees with torch's equal to it."""
        mine, theirs = self.inner(out), tensors(want.value)
        if not len(mine) == len(theirs) == len(want.serials):
            return
        for tensor, value, (serial, version) in zip(mine, theirs, want.serials, strict=True):
            self._make_equal(tensor, value, (serial, version))

    def _verdict(self, call: Call, want: Event | None, result: Returned) -> Healed:
        """Why torch's value is handed over, or ``""`` where the target's stays."""
        heals = self._heals(call.node)
        match want:
            case Called():
                return self._verdict_of_results(call, want, result, heals)
            case Raised() if heals:
                return "raised"
            case _:
                return ""

    def _verdict_of_results(self, call: Call, want: Called, result: Returned, heals: bool) -> Healed:
        facts = want.facts
        if facts.made_layer and result.flags.made_layer:
            return "state"
        if facts.drew or facts.uninitialised:
            alike = difference(want.value, result.value, values=False) is None
            return "draw" if alike or heals else ""
        if call.place in self._strayed:
            return ""  # it was given what a spared place left other than torch does
        return "differs" if heals and _differs(want, result) else ""

    def _result(self, want: Called, out: Any, operands: Sequence[Any], *, has: bool) -> Any:
        """Torch's result; the argument itself where torch handed back an argument."""
        if type(out) is int and want.api.rpartition(".")[2] in ADDRESSES:
            return Address(out, want.value)
        index = want.facts.argument
        if index is not None and index < len(operands) and self._fill(operands[index], want.value):
            return operands[index]
        if is_iterator(want.value) and type(out) in (list, tuple):
            return iter(out)
        return self._factory.rebuild(want.value, out, has=has)

    def _write_back(self, operands: Sequence[Any], written: Sequence[Written]) -> None:
        for index, value in written:
            if index < len(operands):
                self._fill(operands[index], value)

    def _fill(self, tensor: Any, value: Encoded) -> bool:
        """Write torch's values into a tensor; whether it could be done."""
        if tag(value) != TENSOR:
            return False
        want = TensorValue._make(value)
        return self._target.fill(tensor, want.dtype, want.shape, want.data)

    def _fill_layer(self, layer: Any, state: Sequence[Encoded] | None) -> bool:
        """Bring a layer to a recorded state; whether all of it could be."""
        own = dict(self.backend.state(layer))
        filled = [
            p.name in own and self._target.fill(own[p.name], p.dtype, tuple(p.shape), p.data) for p in parameters(state)
        ]
        return all(filled)

    def _is_itself(self, want: Called, layer: Any) -> bool:
        """Whether a call of a layer's method handed back the layer under torch; then this one is in torch's state."""
        facts = want.facts
        if not facts.own_layer or not isinstance(layer, self.backend.module):
            return False
        return not facts.changed_layer or self._fill_layer(layer, LayerValue._make(want.value).state)

    def _as_torch_left_it(self, layer: Any, want: Called) -> Any:
        """The layer whose method handed it back under torch, with the tensors that it has there then."""
        if want.facts.changed_layer:
            state = LayerValue._make(want.value)
            if not self._fill_layer(layer, state.state):
                self._factory.put_state(layer, state.parameters)
        return layer

    # -- what went wrong -----------------------------------------------------------------------------------------

    def raised(self, call: Call, error: Exception) -> Any:
        want = self._want(*call.place) if self._heals(call.node) else None
        if want is not None and self._fails_by_others(call, want):
            self.journal.write(Handed("handed", *call.place))
        else:
            self.write_raised(call, self.failure(call, error), "" if want is None else "raised")
        if want is None:
            raise error
        if not isinstance(want, Called):
            raise torch_error(want.failure)
        owner = owner_of(call.func)
        if self._is_itself(want, owner):
            return owner
        if want.facts.made_layer:
            layer = self._without_refused(call)
            if call.making:
                layer = owner
            if layer is not None:
                self._fill_layer(layer, LayerValue._make(want.value).state)
                self._remade[id(layer)] = weakref.ref(layer)
                return layer
        self._write_back(call.operands, want.written)
        return self._result(want, None, call.operands, has=False)

    def _fails_by_others(self, call: Call, want: Event) -> bool:
        """Whether what a call raises comes of what it was given, or of the program's own code."""
        if self._is_remade(call.func) or self.origin(call.func) == USER:
            return True
        return isinstance(want, Called) and self._lacks_tensor(call, want)

    def _without_refused(self, call: Call) -> Any:
        """A layer made without the keywords that its class refuses, so that its calls are judged like any other."""
        accepted = keywords_of(call.func)
        if accepted is None or all(k in accepted for k in call.kwargs):
            return None
        try:
            return call.func(*call.args, **{k: v for k, v in call.kwargs.items() if k in accepted})
        except Exception:  # noqa: BLE001 - the worker's edge: the gap is recorded already, a stand-in answers instead
            return None

    def not_there(self, number: int, api: str, error: Exception, base: Any = None, part: str = "") -> Any:
        want = self._want(number, self.visits[number], part) if self._heals(number) else None
        called = isinstance(want, Called)
        self.write_absent(number, api, part, lacking(error, base), "absent" if called else "")
        if want is None:
            raise error
        if not isinstance(want, Called):
            raise torch_error(want.failure)
        self._missing.append(want)
        return self._factory.rebuild(want.value)

    def answers_absence(self, number: int) -> bool:
        want = self._want(number, self.visits[number] + 1, "") if self._heals(number) else None
        return isinstance(want, Called | Raised)

    def absent(self, number: int, base: Any, attribute: str, error: Exception, args: Any) -> Any:
        visit = self.visits[number]
        want = self._want(number, visit, "")
        kind = base if isinstance(base, type) else type(base)
        if isinstance(want, Called) and self._heals(number):
            if self._factory.from_stand_in(kind) or self._factory.answers_for(base) or not self.concerns((base,)):
                self.journal.write(Handed("handed", number, visit, ""))
                return self._factory.rebuild(want.value)
            if args is not None:
                self._write_back(self.tensors((base, *args)), want.written)
        made = super().absent(number, base, attribute, error, args)
        return base if isinstance(want, Called) and self._is_itself(want, base) else made

    def absent_import(self, number: int, module: str, names: tuple[str, ...], error: ImportError) -> list[Any]:
        if not self._heals(number):
            return super().absent_import(number, module, names, error)
        if not names:
            return [self.not_there(number, module, error)]
        return [self.not_there(number, f"{module}.{name}", error, None, name) for name in names]

    def starred(self, number: int, module: str, loaded: Any) -> dict[str, Any]:
        names = super().starred(number, module, loaded)
        want = self._want(number, self.visits[number], "*")
        if not isinstance(want, Called) or not self._heals(number):
            return names
        for name in set(want.value.split()) - names.keys():
            names[name] = getattr(loaded, name, None) or self._factory.rebuild((FUNCTION, f"{module}.{name}"))
        return names

    def observed(self, number: int, api: str, value: Any, base: Any = None) -> Any:
        want = self._want(number, self.visits[number], "") if self._policy.everything else None
        if want is not None and not self._heals(number):
            # What follows from another gap is no part of what this place does.
            want = want if isinstance(want, Called) and self._consequence(want) else None
        if isinstance(want, Called) and self._factory.answers_for(base):
            return self._handed(want, number, value, base)
        encoded = self.backend.encode(value)
        if not isinstance(want, Called) or difference(want.value, encoded) is None:
            self.note_read(number, api, encoded if want is None else sampled(encoded, BRIEF))
            return self._target.as_key(value) if self._policy.hashable else value
        flags = Flags()
        if self._consequence(want) or not self._base_made_equal(want, base):
            flags.other_inputs = True
        self.note_read(number, api, encoded, flags=flags.letters(), healed="differs")
        written = flags.other_inputs and isinstance(value, self.backend.tensor)
        if written and self._fill(value, want.value):
            return value  # torch's run wrote this very tensor, so whoever else holds the target's sees it too
        value = self._target.as_key(value) if self._policy.hashable else value
        return self._factory.rebuild(want.value, value, has=True)

    def _base_made_equal(self, want: Called, base: Any) -> bool:
        """Whether the tensor that something was read of held what torch's does; it does afterwards, if it can."""
        if not isinstance(base, self.backend.tensor):
            return True
        values = [self._reference_trace.values.get(reference) for reference in references(want.inputs)]
        if len(values) != 1 or values[0] is None or self._is_apart([base]):
            return True
        differs = difference(values[0], self.backend.encode_tensor(base))
        if differs is None or not differs.hard:
            return True
        self._fill(base, values[0])
        return False

    def _handed(self, want: Called, number: int, value: Any, base: Any) -> Any:
        """Torch's answer for what is read from an object that stands in: this says nothing about the target."""
        self.journal.write(Handed("handed", number, self.visits[number], ""))
        if isinstance(base, Optimizer):
            return value
        if isinstance(value, self.backend.tensor) and self._fill(value, want.value):
            return value  # the layer's own tensor
        return self._factory.rebuild(want.value)

    def bares(self, number: int) -> Healed:
        return "differs" if self._heals(number) else ""

    def decorated(self, number: int, decorator: Any, target: Any) -> Any:
        if self._factory.is_stand_in(decorator):
            return target
        return super().decorated(number, decorator, target)


def _written_by_either(call: Call, want: Called) -> list[int]:
    """Indices of the operands that are written here or under torch."""
    theirs = (index for index, _ in want.written if index < len(call.operands))
    return sorted({*call.written, *theirs})


def _argument(value: Encoded) -> Encoded:
    """The value of a recorded argument, which may be one by keyword."""
    argument = typed(value)
    return argument.value if isinstance(argument, KeywordValue) else value


def _is_plain(value: Encoded, *, within: bool = False) -> bool:
    """Whether an argument is the program's own data: numbers, text, arrays, and lists of them.

    ``None`` and a bool alone are none: no result depends on them in a way that could mislead.
    """
    if tag(value) in (LIST, TUPLE):
        return all(_is_plain(item, within=True) for item in value[1])
    if value is None or isinstance(value, bool):
        return within
    return tag(value) in (ARRAY, "")


def _kept_of(result: Returned, want: Called | None) -> Encoded:
    """What is written of a result: of a large one a sample, where that says as much about how it differs."""
    if want is None:
        return result.value
    brief = sampled(result.value, BRIEF)
    same = (difference(want.value, brief) is None) == (difference(want.value, result.value) is None)
    return brief if same else result.value


def _differs(want: Called, result: Returned) -> bool:
    """Whether a result, or what a call wrote, is other than torch's."""
    if isinstance(want.value, bytes) and isinstance(result.value, bytes):
        return False  # what one framework serialised only that one reads back
    if difference(want.value, result.value) is not None:
        return True
    theirs = dict(want.written)
    return any(i in theirs and difference(theirs[i], value) for i, value in result.written)


def _is_same(mine: TensorValue, theirs: TensorValue) -> bool:
    """Whether two tensors hold the same to the last bit."""
    return (mine.dtype, tuple(mine.shape), mine.data) == (theirs.dtype, tuple(theirs.shape), theirs.data)


def _shares_less(want: Flags, got: Flags) -> bool:
    """Whether memory that is an argument's under torch is another here."""
    if want.shares_memory and not got.shares_memory:
        return True
    return want.argument is not None and got.argument is None


hide(sys.modules[__name__])
