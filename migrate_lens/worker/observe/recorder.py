"""The recorder: live calls of a rewritten program in, trace frames out, and torch's values back where a policy says so.

What is written, and in which order, is in ``migrate_lens.protocol.frames``. Inputs are written on the torch side only,
since reproductions are made of them: tensors among them by serial and version, so that a trace holds each value once.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from threading import get_ident
from types import MethodType
from typing import Any

import numpy as np

from migrate_lens.model.value import (
    KEYWORD,
    LIST,
    REFERENCE,
    TENSOR,
    TUPLE,
    Encoded,
    LayerValue,
    TensorValue,
    sampled,
    tag,
)
from migrate_lens.protocol import frames
from migrate_lens.protocol.flags import Flags
from migrate_lens.protocol.frames import Called
from migrate_lens.protocol.journal import Journal
from migrate_lens.protocol.parts import MOST_VISITS, PART_BITS
from migrate_lens.worker.backends.encoding import BRIEF, DEPTH, ITEMS, items_of
from migrate_lens.worker.backends.kinds import looks_at_caller
from migrate_lens.worker.backends.writes import Writes
from migrate_lens.worker.observe.call import Call, Traits, traits_of
from migrate_lens.worker.observe.callers import as_caller
from migrate_lens.worker.observe.failures import Failure, failure_of, lacking
from migrate_lens.worker.observe.frames import hide
from migrate_lens.worker.observe.hidden import Hidden, hides
from migrate_lens.worker.observe.naming import CONTAINER, FRAMEWORK, OTHER, USER, Naming, exported
from migrate_lens.worker.observe.nodes import Node
from migrate_lens.worker.observe.uncounted import Uncounted

_TABLE_LIMIT = 200_000
INNER = "n"  # as ``protocol.flags`` writes it
SET = "torch.nn.Module.__setattr__"


class Recorder(Naming):
    """Records what rewritten code does with one framework's objects.

    Args:
        backend: the framework's side of the seam.
        journal: where frames go.
        inputs: record inputs too (the torch side, whose inputs reproductions are made of).

    Attributes:
        gradients: record the gradients that reach each result (costs a hook a tensor).
        kernel_log: the file that marked C++ calls write to, -1 where there are none.
        caller: makes the calls in the recorder's place where somebody wants to look below them.
    """

    backend: Writes

    def __init__(self, backend: Writes, journal: Journal, *, inputs: bool) -> None:
        super().__init__(backend)
        self.journal = journal
        backend.keep = journal.put
        self.inputs = inputs
        self.gradients = False
        self.kernel_log = -1
        self.caller: Callable[[Call], Any] | None = None
        self.visits: list[int] = [0]
        self._first = 0
        self._last = sys.maxsize
        self._looking: set[int] = set()
        self._serial = 0
        self._traits: dict[str, Traits] = {}
        self._moved = False
        self._known: dict[int, tuple[weakref.ref[Any], int, int]] = {}
        self._uncounted = Uncounted(backend.version, backend.contents)
        self._layers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._layer_count = 0
        self._running = 0
        self._places: dict[tuple[int, int], Encoded] = {}

    # -- modules -------------------------------------------------------------------------------------------------

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        """Number the nodes of a module; returns the number of the first."""
        base = len(self.nodes)
        self.adopt_module(module)
        self.nodes.extend(nodes)
        self.visits.extend([self._first] * len(nodes))
        self.journal.write(frames.Module("module", module, path, base, [tuple(n) for n in nodes]))
        return base

    @contextmanager
    def counting(self, part: int) -> Iterator[None]:
        """Count visits anew, from ``part << PART_BITS``, for a part of the program (see ``protocol.parts``)."""
        kept, first, last = self.visits[:], self._first, self._last
        self._first = part << PART_BITS
        self._last = self._first + MOST_VISITS
        self.visits[:] = [self._first] * len(kept)
        try:
            yield
        finally:
            self.visits[:] = kept + [first] * (len(self.visits) - len(kept))
            self._first, self._last = first, last

    def watching(self) -> AbstractContextManager[None]:
        """Around the whole program."""
        return nullcontext()

    # -- values --------------------------------------------------------------------------------------------------

    def refer(self, value: Any) -> Encoded:
        """An input: tensors by serial and version, all else by value."""
        if isinstance(value, self.backend.tensor):
            return self._reference(value)
        kind = type(value)
        if (kind is list or kind is tuple) and len(value) <= 256 and self.concerns(value):
            return (LIST if kind is list else TUPLE, [self.refer(v) for v in value])
        return self.backend.encode(value)

    def _reference(self, value: Any) -> Encoded:
        version = self._uncounted.version(value)
        known = self._known.get(id(value))
        if known is None or known[0]() is not value:
            serial = self._next()
        elif known[2] == version:
            return (REFERENCE, known[1], version)
        else:
            serial = known[1]
        self._known[id(value)] = (weakref.ref(value), serial, version)
        self.journal.write(frames.Value("value", serial, version, self.backend.encode_tensor(value)))
        return (REFERENCE, serial, version)

    def _next(self) -> int:
        self._serial += 1
        if len(self._known) > _TABLE_LIMIT:
            self._known = {k: v for k, v in self._known.items() if v[0]() is not None}
        return self._serial

    def adopt(self, out: Any) -> list[tuple[int, int]]:
        """Serials and versions of the tensors in a result, in the order in which ``encode`` meets them."""
        pairs: list[tuple[int, int]] = []
        for tensor in self.inner(out):
            version = self._uncounted.version(tensor)
            known = self._known.get(id(tensor))
            if known is None or known[0]() is not tensor:
                serial = self._next()
            else:
                serial = known[1]
                self._moved |= known[2] != version
            self._known[id(tensor)] = (weakref.ref(tensor), serial, version)
            pairs.append((serial, version))
        return pairs

    def inner(self, value: Any, depth: int = 0) -> list[Any]:
        """Tensors in a result, as deep and as many as ``encode`` keeps, in its order."""
        if isinstance(value, self.backend.tensor):
            return [value]
        items = items_of(value)
        if items is None or depth >= DEPTH:
            return []
        return [t for item in islice(items, ITEMS) for t in self.inner(item, depth + 1)]

    def tensors(self, values: Any) -> list[Any]:
        """Tensors in arguments, one container deep."""
        tensor = self.backend.tensor
        operands = []
        for value in values:
            if isinstance(value, tensor):
                operands.append(value)
            elif isinstance(value, list | tuple):
                operands.extend(v for v in items_of(value) or () if isinstance(v, tensor))
        return operands

    def expects(self, number: int) -> bool:
        """Whether a call of the program's own function is one that concerns the framework all the same."""
        return False

    # -- recording -----------------------------------------------------------------------------------------------

    def invoke(self, call: Call) -> Any:
        """Make a call that concerns the framework and record it; what it raises is recorded and raised on.

        A method of the program's that runs since the recorder looks at one of its objects is no part of the program.
        """
        if self.blind() or self.visits[call.node] > self._last:
            return call.func(*call.args, **call.kwargs)
        self._unseen(self._look_at, call)
        journal = self.journal
        journal.enter(call.node)
        if self.kernel_log >= 0:
            self._mark(call.node, call.visit, call.part)
        try:
            if call.traits.framed:
                call.func = as_caller(call.func)
            self._running += 1
            try:
                out = self._make(call)
            finally:
                self._running -= 1
            if self.gradients:
                self._unseen(self._watch, call, out)
        except Exception as error:  # noqa: BLE001 - the worker's edge: whatever the program's call raises is a result
            self._mark(0, 0, "")
            return self._unseen(self.raised, call, error)
        journal.enter(0)
        if self.kernel_log >= 0:
            self._mark(0, 0, "")
        return self._unseen(self._look_after, call, out)

    def _make(self, call: Call) -> Any:
        """Make a call; what a framework's own constructor stores in a layer is no part of the program.

        One of them stores more than the other, and the program's ``__setattr__`` would be counted for each.
        """
        if self.caller is not None:
            return self.caller(call)
        if not self._stores_by_program(call.func):
            return call.func(*call.args, **call.kwargs)
        thread, counted = get_ident(), list(self.visits)
        self._looking.add(thread)
        try:
            return call.func(*call.args, **call.kwargs)
        finally:
            self._looking.discard(thread)
            self.visits[: len(counted)] = counted

    def _stores_by_program(self, func: Any) -> bool:
        """Whether the base class of all layers makes its part of one whose class has a ``__setattr__`` of its own."""
        module: Any = self.backend.module
        if type(func) is not MethodType or func.__func__ is not module.__init__:
            return False
        return type(func.__self__).__setattr__ is not module.__setattr__

    def _unseen(self, look: Callable[..., Any], *args: Any) -> Any:
        """Look at the program's objects; what that runs of the program is not recorded."""
        thread = get_ident()
        self._looking.add(thread)
        try:
            return self.backend.unseen(look, *args)
        finally:
            self._looking.discard(thread)

    def blind(self) -> bool:
        """Whether what runs now is not recorded: the recorder's own look, or what the framework makes a graph of."""
        return get_ident() in self._looking or self.backend.captured()

    def _look_after(self, call: Call, out: Any) -> Any:
        """Find out what a call did that returned, and record it; what the program gets."""
        if call.making:
            return self._made(call)
        flags = self._flags(call, out)
        after = call.versions(call.operands)
        if after != call.before:
            call.written = [i for i, version in enumerate(after) if version != call.before[i]]
        return self.returned(call, flags, out)

    def _made(self, call: Call) -> None:
        """Record that the framework's part of a layer of the program's own class was made, as the layer that it is."""
        layer, flags = call.func.__self__, Flags()
        flags.made_layer = True
        flags.layer = self.layer_serial(layer)
        self.returned(call, flags, layer)

    def _look_at(self, call: Call) -> None:
        """Find out what there is to know of a call before it is made."""
        call.visit = self.visits[call.node]
        call.making = self.makes_layer(call.func)
        if call.making:
            call.api = self.backend.as_torch(self.backend.type_name(type(call.func.__self__)))
        if not call.api:
            call.api = self.function_name(call.node, call.func, call.args)
        traits = self._traits.get(call.api)
        if traits is None:
            traits = traits_of(call.api)._replace(framed=looks_at_caller(call.func))
            self._traits[call.api] = traits
        call.traits = traits
        call.operands = self.tensors((*call.given, *call.kwargs.values()) if call.kwargs else call.given)
        backend = self.backend
        call.versions = backend.contents if traits.writes_unseen else backend.versions
        call.before = call.versions(call.operands)
        call.inputs = self._inputs(call)
        if self.inputs:
            self._look_at_layer(call)
        if traits.may_draw:
            call.generator = backend.random_state()

    def _look_at_layer(self, call: Call) -> None:
        """The state of the layer that is called, or one of whose methods is."""
        func = call.func
        if type(func) is MethodType:
            call.behind = self._state_behind(func.__self__)
        elif isinstance(func, self.backend.module):
            self._note_state(call, func)

    def _state_behind(self, layer: Any) -> list[Any] | None:
        """Where the tensors of a layer are and how often they were written; None for what is no layer."""
        backend = self.backend
        if not isinstance(layer, backend.module) or "_parameters" not in vars(layer):
            return None  # without that, it is called to make the layer
        return [(id(t), backend.extent(t), backend.version(t)) for t in backend.held(layer)]

    def _mark(self, number: int, visit: int, part: str) -> None:
        """Begin, or with number 0 end, a part of the log of marked C++ calls."""
        if self.kernel_log >= 0:
            os.write(self.kernel_log, f'["@",{number},{visit},"{part}"]\n'.encode())

    def _watch(self, call: Call, out: Any) -> None:
        """Have the gradients that reach a result written when they come."""
        node, visit, part = call.place

        def hook(index: int) -> Any:
            def note(gradient: Any) -> None:
                if isinstance(gradient, self.backend.tensor):
                    encoded = sampled(self.backend.encode_tensor(gradient), BRIEF)
                    self.journal.write(frames.Gradient("grad", node, visit, part, index, encoded))

            return note

        for index, tensor in enumerate(self.tensors((out,))):
            if self.backend.differentiable(tensor):
                tensor.register_hook(hook(index))

    def _inputs(self, call: Call) -> list[Encoded]:
        if not self.inputs:
            return []
        refer = self.refer
        inputs = [refer(value) for value in call.given]
        if call.kwargs:
            inputs += [(KEYWORD, name, refer(value)) for name, value in call.kwargs.items()]
        return inputs

    def _flags(self, call: Call, out: Any) -> Flags:
        """What is known of a call that returned beyond its result."""
        flags, func, backend = Flags(), call.func, self.backend
        if call.traits.uninitialised or (call.traits.may_allocate and _is_of_extents(call.args)):
            flags.uninitialised = True
        if self._running:
            flags.inner = True
        if call.traits.writes_unseen:
            flags.writes_unseen = True
        if backend.proxy and backend.proxied(call.api, func):
            flags.other_object = True
        if isinstance(func, type) and isinstance(out, backend.module):
            flags.made_layer = True
            flags.layer = self.layer_serial(out)
        else:
            if self.inputs and isinstance(func, backend.module):
                flags.layer = self.layer_serial(func)
            self._look_at_memory(call, out, flags)
        if call.generator is not None and call.generator != backend.random_state():
            flags.drew = True
        if call.behind is not None:
            self._look_at_own_layer(call, out, flags)
        return flags

    def _look_at_own_layer(self, call: Call, out: Any, flags: Flags) -> None:
        """Whether the result of a layer's method is that very layer, and whether its tensors are others now."""
        if call.func.__self__ is out:
            flags.own_layer = True
            flags.changed_layer = call.behind != self._state_behind(out)

    def _look_at_memory(self, call: Call, out: Any, flags: Flags) -> None:
        """Whether a result is an argument, or lies in the memory of one."""
        first = out[0] if type(out) in (tuple, list) and out else out
        is_tensor = isinstance(first, self.backend.tensor)
        if is_tensor and first is out:
            for index, operand in enumerate(call.operands):
                if operand is out:
                    flags.argument = index
                    return
        if (is_tensor or isinstance(first, np.ndarray)) and self.shares(first, call):
            flags.shares_memory = True

    def shares(self, first: Any, call: Call) -> bool:
        """Whether a result lies in the memory of an argument; arrays and views are all that can."""
        given, overlaps = call.given, self.backend.overlaps
        if not self.backend.may_view(first):
            return np.ndarray in map(type, given) and overlaps(first, list(given))
        return overlaps(first, [*call.operands, *(v for v in given if isinstance(v, np.ndarray))])

    def layer_serial(self, layer: Any) -> int:
        """A number that no other layer of this run has."""
        known = self._layers.get(id(layer))
        if known is None or known[0]() is not layer:
            self._layer_count += 1
            known = self._layers[id(layer)] = (weakref.ref(layer), self._layer_count)
        return known[1]

    def _note_state(self, call: Call, layer: Any) -> None:
        """Write a layer's state if something that was not recorded (an optimizer's step) changed it."""
        known, version = self._known, self._uncounted.version
        for tensor in self.backend.held(layer):
            seen = known.get(id(tensor))
            if seen is None or seen[2] != version(tensor) or seen[0]() is not tensor:
                self.adopt(list(self.backend.held(layer)))
                self.write_state(call, layer)
                return

    def write_state(self, call: Call, layer: Any, *, same: bool = False) -> None:
        """Write a layer's state as it is before a call; ``same`` where its tensors are as they were written last."""
        state = None if same else LayerValue._make(self.backend.encode_state(layer)).state
        serial, training = self.layer_serial(layer), bool(layer.training)
        self.journal.write(frames.LayerState("state", call.node, call.visit, call.part, state, serial, training))

    def encode_out(self, out: Any, flags: Flags) -> Encoded:
        """A result; layers that were just made come with their state, random draws with all their values."""
        if flags.made_layer or flags.changed_layer:
            return self.backend.encode_state(out)
        if flags.drew:
            return self.backend.in_full(self.backend.encode, out)
        return self.backend.encode(out)

    def encode_written(self, call: Call, flags: Flags) -> list[tuple[int, Encoded]]:
        """The arguments that a call wrote to, as they are after it."""
        encode = self.backend.encode_tensor
        if flags.drew:
            return [(i, self.backend.in_full(encode, call.operands[i])) for i in call.written]
        return [(i, encode(call.operands[i])) for i in call.written]

    def returned(self, call: Call, flags: Flags, out: Any) -> Any:
        """Record a call that returned; what the program gets."""
        changed = self.encode_written(call, flags) if call.written else []
        encoded = next((value for i, value in changed if call.operands[i] is out), None)
        if encoded is None:
            encoded = self.encode_out(out, flags)
        serials: list[tuple[int, int]] = []
        if self.inputs:
            if changed:
                self._settle(call, changed)
            self._moved = False
            layer = flags.made_layer or flags.changed_layer
            serials = self.adopt(list(self.backend.held(out)) if layer else out)
            self._watch_unseen(call, flags, out)
        if self._moved:
            flags.moved = True
        letters = flags.letters()
        self.journal.write(
            Called(
                "call", call.node, call.visit, call.part, call.api, call.inputs, encoded, serials, changed, letters, ""
            )
        )
        return out

    def _watch_unseen(self, call: Call, flags: Flags, out: Any) -> None:
        """Watch what is written uncounted from now on: running statistics, and memory that an array shares."""
        if flags.made_layer:
            self._uncounted.watch(t for t in self.backend.held(out) if not self.backend.differentiable(t))
        elif flags.shares_memory:
            if isinstance(out, np.ndarray):
                self._uncounted.watch(call.operands)
            elif any(isinstance(value, np.ndarray) for value in call.given):
                self._uncounted.watch(self.inner(out))

    def _settle(self, call: Call, changed: list[tuple[int, Encoded]]) -> None:
        """Write what the arguments that were written hold now, as values of later versions."""
        for index, encoded in changed:
            operand = call.operands[index]
            known = self._known.get(id(operand))
            if known is not None and known[2] == self._uncounted.version(operand):
                del self._known[id(operand)]  # a write that was not counted: what it holds now is another value
            (serial, version), *_ = self.adopt([operand])
            self.journal.write(frames.Value("value", serial, version, encoded))

    def raised(self, call: Call, error: Exception) -> Any:
        """Record a call that raised, and raise on."""
        self.write_raised(call, self.failure(call, error), "")
        raise error

    def write_raised(self, call: Call, failure: Failure, healed: frames.Healed) -> None:
        """Write that a call raised."""
        self.journal.write(
            frames.Raised("raise", call.node, call.visit, call.part, call.api, list(call.inputs), failure, healed)
        )
        self.journal.enter(0)

    def failure(self, call: Call, error: Exception) -> Failure:
        """Facts about what a call raised."""
        facts = failure_of(error, call.func, call.args, call.kwargs)
        return {**facts, "proxied": self.backend.proxied(call.api, call.func)}

    def answers_absence(self, number: int) -> bool:
        """Whether the next call at a place, of a name that is not there, has a result all the same."""
        return False

    def absent(self, number: int, base: Any, attribute: str, error: Exception, args: Any) -> Any:
        """Record a name that is not there, and raise on; ``args`` is None where it was read and not called."""
        if not self.concerns((base,)) and not (isinstance(base, type) and self.backend.foreign(base)):
            raise error
        node = self.nodes[number]
        api = node.name if node and "." in node.name else self.method_name(number, base, attribute)
        return self.not_there(number, api, error, base)

    def not_there(self, number: int, api: str, error: Exception, base: Any = None, part: str = "") -> Any:
        """Record a name that is not there under its documented name, and raise on."""
        self.write_absent(number, api, part, lacking(error, base), "")
        raise error

    def write_absent(self, number: int, api: str, part: str, failure: Failure, healed: frames.Healed) -> None:
        """Write that a name is not there."""
        self.journal.write(frames.Absent("absent", number, self.visits[number], part, api, failure, healed))

    def absent_import(self, number: int, module: str, names: tuple[str, ...], error: ImportError) -> list[Any]:
        """Record a module, or names of it, that cannot be imported, and raise on."""
        name = names[0] if names else ""
        self.not_there(number, f"{module}.{name}" if name else module, error, None, name)
        return []

    def answered(self, number: int, module: Any) -> None:
        """Record which framework answered an import of torch: a proxy, or real torch."""
        who = "proxy" if self.backend.is_proxy(module) else "torch"
        self.journal.write(frames.Answered("answered", number, who))

    def imported(self, number: int, api: str, value: Any, name: str) -> Any:
        """Record what an import handed out."""
        self.note_read(number, api, self._unseen(self.backend.encode, value), name)
        return value

    def note_read(
        self, number: int, api: str, value: Encoded, part: str = "", *, flags: str = "", healed: frames.Healed = ""
    ) -> None:
        """Write something that was read: a call without arguments."""
        if self._running and not flags:
            flags = INNER
        self.journal.write(Called("call", number, self.visits[number], part, api, [], value, [], [], flags, healed))

    def starred(self, number: int, module: str, loaded: Any) -> dict[str, Any]:
        """What a star import binds; the names are recorded as one value."""
        names = {name: getattr(loaded, name) for name in exported(loaded)}
        self.note_read(number, f"{module}.__all__", " ".join(sorted(names)), "*")
        return names

    def decorated(self, number: int, decorator: Any, target: Any) -> Any:
        """Apply a decorator; the framework's own are recorded when they raise."""
        if self.origin(decorator) != FRAMEWORK:
            return decorator(target)
        try:
            return decorator(target)
        except Exception as error:  # noqa: BLE001 - the worker's edge: whatever the decorator raises is a result
            api = self.function_name(number, decorator, ())
            call = Call(number, decorator, (target,), {}, (target,), api, visit=self.visits[number])
            return self.raised(call, error)

    def open(self, container: Any, args: Any, kwargs: Any) -> bool:
        """Whether a container layer may be walked child by child: one argument, and nothing of the program's to skip.

        A walk does not make the container's own call: where something sees that call, the container is called.
        """
        return len(args) == 1 and not kwargs and not self.backend.opaque(container) and not self.backend.captured()

    def stored(self, number: int, base: Any, name: str, value: Any) -> None:
        """Watch for reads of what was stored in a layer, if a name of its base class hides it."""
        backend, kind = self.backend, type(base)
        if not isinstance(base, backend.module) or not hides(backend, kind, name) or getattr(base, name) is value:
            return
        visit, own = self.visits[number], inspect.getattr_static(kind, name)
        flags = Flags()
        flags.hidden = True
        healed = self.bares(number)

        def asked(found: Any) -> None:
            encoded = backend.encode(found)
            self.journal.write(Called("call", number, visit, name, SET, [], encoded, [], [], flags.letters(), healed))

        entry = functools.partial(backend.entry_of, name=name)
        setattr(kind, name, Hidden(own, entry, frozenset(backend.tops), asked, bool(healed)))

    def put_in_place(self, base: Any, value: Any) -> None:
        """Note that a tensor is about to hold what another does, and to share its memory: nobody counts that."""
        self._unseen(self._uncounted.watch, self.inner((base, value)))

    def bares(self, number: int) -> frames.Healed:
        """Whether what is hidden is found all the same from now on."""
        return ""

    def observed(self, number: int, api: str, value: Any, base: Any = None) -> Any:
        """Record an attribute that was read, and of which tensor if that one is known."""
        if not self.blind() and self.visits[number] <= self._last:
            self._unseen(self._note_observed, number, api, value, base)
        return value

    def _note_observed(self, number: int, api: str, value: Any, base: Any) -> None:
        self._moved = False
        serials = self.adopt(value) if self.inputs else []
        if serials and api.endswith(".data") and isinstance(base, self.backend.tensor):
            self._uncounted.watch((base, *self.inner(value)))
        known = self._known.get(id(base))
        inputs = [self._reference(base)] if known is not None and known[0]() is base else []
        flags = Flags()
        if self._moved:
            flags.moved = True
        if self._running:
            flags.inner = True
        encoded, visit = self._encode_once(value, serials), self.visits[number]
        self.journal.write(Called("call", number, visit, "", api, inputs, encoded, serials, [], flags.letters(), ""))

    def _encode_once(self, value: Any, serials: list[tuple[int, int]]) -> Encoded:
        """Something that was read; of a large tensor that was read before and not written since, the data is there."""
        if len(serials) != 1 or not isinstance(value, self.backend.tensor):
            return self.backend.encode(value)
        place = self._places.get(serials[0])
        if place is None:
            encoded = self.backend.encode(value)
            data = TensorValue._make(encoded).data if tag(encoded) == TENSOR else None
            if Journal.is_place(data):
                self._places[serials[0]] = data
            return encoded
        encoded = self.backend.without_values(value)
        self.journal.mention()
        return tuple(TensorValue._make(encoded)._replace(data=place))


def _is_of_extents(args: tuple[Any, ...]) -> bool:
    """Whether a tensor class is called with the extents of a tensor, not with its values."""
    return bool(args) and all(type(extent) is int for extent in args)


__all__ = ["CONTAINER", "FRAMEWORK", "OTHER", "USER", "Failure", "Recorder"]

hide(sys.modules[__name__])
