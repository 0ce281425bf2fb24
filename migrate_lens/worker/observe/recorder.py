"""The recorder: live calls of a rewritten program in, trace frames out, and torch's values back where a policy says so.

Frames (see ``migrate_lens.protocol.journal``), in the order in which things happened:

====================================================================  ================================================
``("module", name, path, base, nodes)``                               the nodes of a module, numbered from base
``("value", serial, version, encoded)``                               a tensor that no recorded call made
``("call", node, visit, sub, api, inputs, out, serials,
written, flags, healed)``                                             a call returned
``("raise", node, visit, sub, api, inputs, error, healed)``           a call raised
``("absent", node, visit, sub, api, error, healed)``                  a name or attribute was not there
``("answered", node, who)``                                           ``torch`` or ``proxy`` answered an import of torch
``("handed", node, visit, sub)``                                      a stand-in answered with torch's value
``("items", number, encoded)``                                         an item that the n-th iteration of a loader gave
``("grad", node, visit, sub, index, encoded)``                         the gradient that reached a result's tensor
``("state", node, visit, sub, state, layer, training)``               a layer's state before a call, changed unseen;
                                                                      None: it is as it was made or written last
====================================================================  ================================================

``inputs`` is ``[base, positional..., (keyword, value)...]`` with tensors as ``("#", serial, version)``; ``written``
lists tensor arguments that the call wrote to, as ``(index, encoded)``; ``serials`` are (serial, version) pairs of the
result's tensors; ``flags`` holds ``r`` (it drew random numbers), ``u`` (uninitialised memory), ``=N;`` (the result is
tensor argument N), ``v`` (the result shares memory with an argument), ``i`` (it got other inputs than torch's call),
``k`` (a layer was made), ``@N;`` (the layer that was made or called), ``w`` (it may write without counting it), ``s``
(a tensor that is known was written by no recorded call), ``p`` (the proxy handed out another object than Paddle's
compat package has), ``b`` (the result is the layer whose method was called) and ``c`` (which changed its tensors).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from types import MethodType
from typing import Any

import numpy as np

from migrate_lens.model.value import Encoded
from migrate_lens.protocol.journal import Journal
from migrate_lens.worker.backends.base import DEPTH, ITEMS, MAY_DRAW, UNINITIALISED, WRITES_UNSEEN, Backend
from migrate_lens.worker.observe.failures import Failure, failure_of, lacking
from migrate_lens.worker.observe.naming import CONTAINER, FRAMEWORK, OTHER, USER, Naming, exported
from migrate_lens.worker.observe.nodes import Node

_TABLE_LIMIT = 200_000


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

    def __init__(self, backend: Backend, journal: Journal, *, inputs: bool) -> None:
        super().__init__(backend)
        self.journal = journal
        backend.keep = journal.put
        self.inputs = inputs
        self.gradients = False
        self.kernel_log = -1
        self.caller: Any = None
        self.visits: list[int] = [0]
        self._serial = 0
        self._draws: dict[str, bool] = {}
        self._moved = False
        self._known: dict[int, tuple[weakref.ref[Any], int, int]] = {}
        self._layers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._layer_count = 0

    # -- modules -------------------------------------------------------------------------------------------------

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        """Number the nodes of a module; returns the number of the first."""
        base = len(self.nodes)
        self.nodes.extend(nodes)
        self.visits.extend([0] * len(nodes))
        self.journal.write(("module", module, path, base, [tuple(n) for n in nodes]))
        return base

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
            return ("L" if kind is list else "t", [self.refer(v) for v in value])
        return self.backend.encode(value)

    def _reference(self, value: Any) -> Encoded:
        version = self.backend.version(value)
        known = self._known.get(id(value))
        if known is not None and known[0]() is value and known[2] == version:
            return ("#", known[1], version)
        serial = known[1] if known is not None and known[0]() is value else self._next()
        self._known[id(value)] = (weakref.ref(value), serial, version)
        self.journal.write(("value", serial, version, self.backend.encode_tensor(value)))
        return ("#", serial, version)

    def _next(self) -> int:
        self._serial += 1
        if len(self._known) > _TABLE_LIMIT:
            self._known = {k: v for k, v in self._known.items() if v[0]() is not None}
        return self._serial

    def adopt(self, out: Any) -> list[tuple[int, int]]:
        """Serials and versions of the tensors in a result, in the order in which ``encode`` meets them."""
        found: list[tuple[int, int]] = []
        for tensor in self.inner(out):
            known = self._known.get(id(tensor))
            same = known is not None and known[0]() is tensor
            serial = known[1] if known is not None and same else self._next()
            version = self.backend.version(tensor)
            self._moved |= known is not None and same and known[2] != version
            self._known[id(tensor)] = (weakref.ref(tensor), serial, version)
            found.append((serial, version))
        return found

    def inner(self, value: Any, depth: int = 0) -> list[Any]:
        """Tensors in a result, as deep and as many as ``encode`` keeps, in its order."""
        if isinstance(value, self.backend.tensor):
            return [value]
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, list | tuple):
            return []
        if depth >= DEPTH:
            return []
        return [t for item in islice(value, ITEMS) for t in self.inner(item, depth + 1)]

    def tensors(self, values: Any) -> list[Any]:
        """Tensors in arguments, one container deep."""
        tensor, found = self.backend.tensor, []
        for value in values:
            if isinstance(value, tensor):
                found.append(value)
            elif isinstance(value, list | tuple):
                found.extend(v for v in value if isinstance(v, tensor))
        return found

    # -- recording -----------------------------------------------------------------------------------------------

    def invoke(self, number: int, func: Any, base: Any, args: Any, kwargs: Any, name: str | None, sub: str = "") -> Any:
        """Make a call that concerns the framework and record it; what it raises is recorded and raised on."""
        visit = self.visits[number]
        api = name if name is not None else self.function_name(number, func, args)
        given = (base, *args) if base is not None else args
        operands = self.tensors((*given, *kwargs.values()) if kwargs else given)
        unseen = api.rpartition(".")[2] in WRITES_UNSEEN
        versions = self.backend.contents if unseen else self.backend.versions
        before = versions(operands)
        inputs = self._inputs(given, kwargs)
        state = self._state_behind(func)
        if self.inputs and isinstance(func, self.backend.module):
            self._note_state(number, visit, sub, func)
        draws = self._may_draw(api)
        generator = self.backend.random_state() if draws else b""
        self.journal.enter(number)
        self._mark(number, visit, sub)
        try:
            out = func(*args, **kwargs) if self.caller is None else self.caller(number, func, args, kwargs)
            if self.gradients:
                self._watch(number, visit, sub, out)
        except Exception as error:  # noqa: BLE001 - the worker's edge: whatever the program's call raises is a result
            self._mark(0, 0, "")
            return self.raised(number, visit, sub, api, inputs, operands, func, args, kwargs, error)
        self.journal.enter(0)
        self._mark(0, 0, "")
        flags = self._flags(api, func, given, operands, out)
        if draws and generator != self.backend.random_state():
            flags += "r"
        if state is not None and func.__self__ is out:
            flags += "b" if state == self._state_behind(func) else "bc"
        flags += "w" if unseen else ""
        after = versions(operands)
        written = [i for i, v in enumerate(after) if v != before[i]] if after != before else []
        return self.returned(number, visit, sub, api, inputs, operands, written, flags, out)

    def _state_behind(self, func: Any) -> list[Any] | None:
        """Where the tensors of a layer are and how often they were written, where one of its methods is called."""
        layer, backend = func.__self__ if type(func) is MethodType and self.inputs else None, self.backend
        if not isinstance(layer, backend.module) or not hasattr(layer, "_parameters"):
            return None  # without that, it is called to make the layer
        return [(id(t), backend.extent(t), backend.version(t)) for t in backend.held(layer)]

    def _mark(self, number: int, visit: int, sub: str) -> None:
        """Begin, or with number 0 end, a part of the log of marked C++ calls."""
        if self.kernel_log >= 0:
            os.write(self.kernel_log, f'["@",{number},{visit},"{sub}"]\n'.encode())

    def _watch(self, number: int, visit: int, sub: str, out: Any) -> None:
        """Have the gradients that reach a result written when they come."""

        def hook(index: int) -> Any:
            def note(gradient: Any) -> None:
                if isinstance(gradient, self.backend.tensor):
                    self.journal.write(("grad", number, visit, sub, index, self.backend.encode_tensor(gradient)))

            return note

        for index, tensor in enumerate(self.tensors((out,))):
            if self.backend.differentiable(tensor):
                tensor.register_hook(hook(index))

    def _inputs(self, given: Any, kwargs: Any) -> list[Encoded]:
        if not self.inputs:
            return []
        refer = self.refer
        return [refer(v) for v in given] + [("kw", k, refer(v)) for k, v in kwargs.items()]

    def _flags(self, api: str, func: Any, given: Any, operands: list[Any], out: Any) -> str:
        flags = "u" if api.rpartition(".")[2] in UNINITIALISED else ""
        if self.backend.proxied(api, func):
            flags += "p"
        if isinstance(func, type) and isinstance(out, self.backend.module):
            return f"{flags}k@{self.layer_serial(out)};"
        if self.inputs and isinstance(func, self.backend.module):
            flags += f"@{self.layer_serial(func)};"
        first = out[0] if type(out) in (tuple, list) and out else out
        is_tensor = isinstance(first, self.backend.tensor)
        if is_tensor and first is out:
            for index, operand in enumerate(operands):
                if operand is out:
                    return flags + f"={index};"
        if (is_tensor or isinstance(first, np.ndarray)) and self.shares(first, operands, given):
            flags += "v"
        return flags

    def shares(self, first: Any, operands: list[Any], given: Any) -> bool:
        """Whether a result lies in the memory of an argument; arrays and views are all that can."""
        if not self.backend.may_view(first):
            return any(type(v) is np.ndarray for v in given) and self.backend.overlaps(first, list(given))
        return self.backend.overlaps(first, [*operands, *(v for v in given if isinstance(v, np.ndarray))])

    def layer_serial(self, layer: Any) -> int:
        """A number that no other layer of this run has."""
        known = self._layers.get(id(layer))
        if known is None or known[0]() is not layer:
            self._layer_count += 1
            known = self._layers[id(layer)] = (weakref.ref(layer), self._layer_count)
        return known[1]

    def _may_draw(self, api: str) -> bool:
        known = self._draws.get(api)
        if known is None:
            known = self._draws[api] = MAY_DRAW.search(api) is not None
        return known

    def _note_state(self, number: int, visit: int, sub: str, layer: Any) -> None:
        """Write a layer's state if something that was not recorded (an optimizer's step) changed it."""
        known, version = self._known, self.backend.version
        for tensor in self.backend.held(layer):
            seen = known.get(id(tensor))
            if seen is None or seen[2] != version(tensor) or seen[0]() is not tensor:
                self.adopt(list(self.backend.held(layer)))
                self.write_state(number, visit, sub, layer)
                return

    def write_state(self, number: int, visit: int, sub: str, layer: Any, *, same: bool = False) -> None:
        """Write a layer's state as it is before a call; ``same`` where its tensors are as they were written last."""
        state = None if same else self.backend.encode_state(layer)[2]
        self.journal.write(("state", number, visit, sub, state, self.layer_serial(layer), bool(layer.training)))

    def encode_out(self, out: Any, flags: str) -> Encoded:
        """A result; layers that were just made come with their state, random draws with all their values."""
        if "k" in flags or "c" in flags:
            return self.backend.encode_state(out)
        if "r" in flags:
            return self.backend.in_full(self.backend.encode, out)
        return self.backend.encode(out)

    def encode_written(self, operand: Any, flags: str) -> Encoded:
        """An argument after a call that wrote to it."""
        encode = self.backend.encode_tensor
        return self.backend.in_full(encode, operand) if "r" in flags else encode(operand)

    def returned(self, number: int, visit: int, sub: str, api: str, inputs: list[Encoded], operands: list[Any],
                 written: list[int], flags: str, out: Any) -> Any:  # fmt: skip
        """Record a call that returned; what the program gets."""
        changed = [(i, self.encode_written(operands[i], flags)) for i in written]
        encoded = next((e for i, e in changed if operands[i] is out), None) or self.encode_out(out, flags)
        serials = self._settle(out, operands, changed, flags) if self.inputs else []
        flags += "s" if self._moved else ""
        self.journal.write(("call", number, visit, sub, api, inputs, encoded, serials, changed, flags, ""))
        return out

    def _settle(self, out: Any, operands: list[Any], changed: list[tuple[int, Encoded]],
                flags: str) -> list[tuple[int, int]]:  # fmt: skip
        for index, encoded in changed:
            known = self._known.get(id(operands[index]))
            if known is not None and known[2] == self.backend.version(operands[index]):
                del self._known[id(operands[index])]  # a write that was not counted: what it holds now is another value
            (serial, version), *_ = self.adopt([operands[index]])
            self.journal.write(("value", serial, version, encoded))
        self._moved = False
        if "k" in flags or "c" in flags:
            return self.adopt(list(self.backend.held(out)))
        return self.adopt(out)

    def raised(self, number: int, visit: int, sub: str, api: str, inputs: list[Encoded], operands: list[Any],
               func: Any, args: Any, kwargs: Any, error: Exception) -> Any:  # fmt: skip
        """Record a call that raised, and raise on."""
        failure = self.failure(api, error, func, args, kwargs)
        self.journal.write(("raise", number, visit, sub, api, inputs, failure, ""))
        self.journal.enter(0)
        raise error

    def failure(self, api: str, error: Exception, func: Any, args: Any, kwargs: Any) -> Failure:
        """Facts about what a call raised."""
        return {**failure_of(error, func, args, kwargs), "proxied": self.backend.proxied(api, func)}

    def absent(self, number: int, base: Any, attribute: str, error: Exception, args: Any) -> Any:
        """Record a name that is not there, and raise on; ``args`` is None where it was read and not called."""
        if not self.concerns((base,)) and not (isinstance(base, type) and self.backend.foreign(base)):
            raise error
        node = self.nodes[number]
        api = node.name if node and "." in node.name else self.method_name(number, base, attribute)
        return self.not_there(number, api, error, base)

    def not_there(self, number: int, api: str, error: Exception, base: Any = None, sub: str = "") -> Any:
        """Record a name that is not there under its documented name, and raise on."""
        failure = lacking(error, base)
        self.journal.write(("absent", number, self.visits[number], sub, api, failure, ""))
        raise error

    def absent_import(self, number: int, module: str, names: tuple[str, ...], error: ImportError) -> list[Any]:
        """Record a module, or names of it, that cannot be imported, and raise on."""
        name = names[0] if names else ""
        self.not_there(number, f"{module}.{name}" if name else module, error, None, name)
        return []

    def answered(self, number: int, module: Any) -> None:
        """Record which framework answered an import of torch: a proxy, or real torch."""
        self.journal.write(("answered", number, "proxy" if hasattr(module, "_original_module") else "torch"))

    def imported(self, number: int, api: str, value: Any, name: str) -> Any:
        """Record what an import handed out."""
        self._note(number, name, api, self.backend.encode(value))
        return value

    def _note(self, number: int, part: str, api: str, value: Encoded, serials: Any = (), healed: str = "",
              flags: str = "", inputs: Sequence[Encoded] = ()) -> None:  # fmt: skip
        """Write a call without arguments: something that was read."""
        self.journal.write(
            ("call", number, self.visits[number], part, api, list(inputs), value, list(serials), [], flags, healed)
        )

    def starred(self, number: int, module: str, loaded: Any) -> dict[str, Any]:
        """What a star import binds; the names are recorded as one value."""
        found = {name: getattr(loaded, name) for name in exported(loaded)}
        names = " ".join(sorted(found))
        self._note(number, "*", f"{module}.__all__", names)
        return found

    def decorated(self, number: int, decorator: Any, target: Any) -> Any:
        """Apply a decorator; the framework's own are recorded when they raise."""
        if self.origin(decorator) != FRAMEWORK:
            return decorator(target)
        try:
            return decorator(target)
        except Exception as error:  # noqa: BLE001 - the worker's edge: whatever the decorator raises is a result
            api = self.function_name(number, decorator, ())
            return self.raised(number, self.visits[number], "", api, [], [], decorator, (target,), {}, error)

    def open(self, container: Any, args: Any, kwargs: Any) -> bool:
        """Whether a container layer may be walked child by child: one argument, and no hooks to skip."""
        if len(args) != 1 or kwargs:
            return False
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_post_hooks", "_backward_hooks")
        return not any(getattr(container, h, None) for h in hooks)

    def observed(self, number: int, api: str, value: Any, base: Any = None) -> Any:
        """Record an attribute that was read, and of which tensor if that one is known."""
        self._moved = False
        serials = self.adopt(value) if self.inputs else []
        known = self._known.get(id(base))
        inputs = [("#", *known[1:])] if known is not None and known[0]() is base else []
        self._note(
            number, "", api, self.backend.encode(value), serials, flags="s" if self._moved else "", inputs=inputs
        )
        return value


__all__ = ["CONTAINER", "FRAMEWORK", "OTHER", "USER", "Failure", "Recorder"]
