"""The recorder: live calls of a rewritten program in, trace frames out, and torch's values back where a policy says so.

Frames (see ``migrate_lens.wire``), in the order in which things happened:

====================================================================  ================================================
``("module", name, path, base, nodes)``                               the nodes of a module, numbered from base
``("value", serial, version, encoded)``                               a tensor that no recorded call made
``("call", node, visit, sub, api, inputs, out, serials, written, flags, healed)``   a call returned
``("raise", node, visit, sub, api, inputs, error, healed)``           a call raised
``("absent", node, visit, sub, api, error, healed)``                  a name or attribute was not there
``("handed", node, visit, sub)``                                      a stand-in answered with torch's value
``("grad", node, visit, sub, index, encoded)``                         the gradient that reached a result's tensor
``("state", node, visit, sub, state)``                                a layer's state before a call, changed unseen
====================================================================  ================================================

``inputs`` is ``[base, positional..., (keyword, value)...]`` with tensors as ``("#", serial, version)``; ``written``
lists tensor arguments that the call wrote to, as ``(index, encoded)``; ``serials`` are (serial, version) pairs of the result's tensors; ``flags`` holds ``r`` (it drew
random numbers), ``u`` (uninitialised memory), ``=N;`` (the result is tensor argument N), ``v`` (the result shares
memory with an argument), ``i`` (it got other inputs than torch's call), ``k`` (a layer was made) and ``p`` (the proxy
handed out another object than Paddle's compat package has).
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from itertools import islice
from typing import Any

import numpy as np

from migrate_lens.encoded import Encoded
from migrate_lens.wire import Journal
from migrate_lens.worker.backend import DEPTH, ITEMS, MAY_DRAW, UNINITIALISED, Backend, public_name
from migrate_lens.worker.failures import Failure, failure_of
from migrate_lens.worker.nodes import METHOD, Node

USER, FRAMEWORK, OTHER, CONTAINER = 0, 1, 2, 3
_TABLE_LIMIT = 200_000
_FUNCTION = types.FunctionType
_BOUND = types.MethodType
_CACHED = type(functools.lru_cache(lambda: None))


class Recorder:
    """Records what rewritten code does with one framework's objects.

    Args:
        backend: the framework's side of the seam.
        journal: where frames go.
        inputs: record inputs too (the torch side, whose inputs reproductions are made of).

    Attributes:
        gradients: record the gradients that reach each result (costs a hook a tensor).
    """

    def __init__(self, backend: Backend, journal: Journal, *, inputs: bool) -> None:
        self.backend = backend
        self.journal = journal
        self.inputs = inputs
        self.gradients = False
        self.nodes: list[Node | None] = [None]
        self.visits: list[int] = [0]
        self._serial = 0
        self._known: dict[int, tuple[weakref.ref[Any], int, int]] = {}
        self._origins: dict[Any, int] = {}
        self._names: dict[tuple[int, Any], str] = {}

    # -- modules -------------------------------------------------------------------------------------------------

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        """Number the nodes of a module; returns the number of the first."""
        base = len(self.nodes)
        self.nodes.extend(nodes)
        self.visits.extend([0] * len(nodes))
        self.journal.write(("module", module, path, base, [tuple(n) for n in nodes]))
        return base

    # -- what a callable is --------------------------------------------------------------------------------------

    def origin(self, func: Any) -> int:
        """Whether a callable is the program's own, the framework's, a container layer, or anything else."""
        kind = type(func)
        if kind is _BOUND:
            func = func.__func__
            kind = type(func)
        if kind is _FUNCTION:
            space = func.__globals__
            if METHOD in space:
                return USER
            return self._of_module(space.get("__name__"))
        if isinstance(func, self.backend.module):
            return self._of_layer(kind)
        if isinstance(func, type):
            return self._of_class(func)
        return self._of_builtin(func, kind)

    def _of_module(self, name: Any) -> int:
        known = self._origins.get(name)
        if known is None:
            top = name.partition(".")[0] if isinstance(name, str) else ""
            known = self._origins[name] = FRAMEWORK if top in self.backend.tops or top == "torch" else OTHER
        return known

    def _of_layer(self, kind: type) -> int:
        known = self._origins.get(kind)
        if known is None:
            forward = kind.forward  # type: ignore[attr-defined]
            if METHOD in getattr(forward, "__globals__", {}):
                known = USER
            else:
                known = CONTAINER if forward in self.backend.containers else FRAMEWORK
            self._origins[kind] = known
        return known

    def _of_class(self, kind: type) -> int:
        if self.backend.own(kind):
            return FRAMEWORK
        makers = (getattr(kind, "__init__", None), getattr(kind, "__new__", None))
        if self.backend.foreign(kind) or any(map(_rewritten, makers)):
            return USER
        # A named tuple's own methods are made elsewhere; its module says whose it is.
        return USER if METHOD in vars(sys.modules.get(kind.__module__, types)) else OTHER

    def _of_builtin(self, func: Any, kind: type) -> int:
        if kind is functools.partial:
            return self.origin(func.func)
        if kind is _CACHED:
            return self.origin(func.__wrapped__)
        if _rewritten(getattr(kind, "__call__", None)):  # noqa: B004 - whose the method is, not whether there is one
            return USER
        # An object that makes up its attributes is not asked for one.
        owner = None if hasattr(kind, "__getattr__") else getattr(func, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            owner_kind = owner if isinstance(owner, type) else type(owner)
            return FRAMEWORK if self.backend.foreign(owner_kind) else OTHER
        if self.backend.foreign(kind):
            return FRAMEWORK
        return self._of_module(getattr(func, "__module__", None))

    def concerns(self, values: Any) -> bool:
        """Whether any of the values, or of the items of short lists of them, is the framework's."""
        foreign = self.backend.foreign
        for value in values:
            kind = type(value)
            if foreign(kind) or (kind is type and foreign(value)):
                return True
            if (kind is list or kind is tuple) and value and foreign(type(value[0])):
                return True
            if kind is types.ModuleType or (kind.__name__ == "ProxyModule" and isinstance(value, types.ModuleType)):
                return self._of_module(value.__name__) == FRAMEWORK
        return False

    # -- names ---------------------------------------------------------------------------------------------------

    def method_name(self, number: int, base: Any, attribute: str) -> str:
        """The documented name of an attribute of a live object, by the framework class that has it."""
        if isinstance(base, types.ModuleType):
            return f"{base.__name__}.{attribute}"
        kind = base if isinstance(base, type) else type(base)
        key = (number, kind)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._owner_name(base, kind, attribute)
        return name

    def _owner_name(self, base: Any, kind: type, attribute: str) -> str:
        if issubclass(kind, super):
            kind = type(base.__self__) if base.__self__ is not None else kind
        if issubclass(kind, self.backend.tensor):
            return f"torch.Tensor.{attribute}"
        # A name handed on by a base class of the framework is documented there (register_buffer: torch.nn.Module).
        for owner in reversed(kind.__mro__[:-1]):
            if attribute in vars(owner) and self.backend.own(owner) and issubclass(owner, self.backend.module):
                return f"{_as_torch(public_name(owner))}.{attribute}"
        return f"{_as_torch(self.backend.type_name(kind))}.{attribute}"

    def function_name(self, number: int, func: Any, args: tuple[Any, ...]) -> str:
        """The documented name of what is called."""
        while isinstance(func, functools.partial):
            func = func.func
        node = self.nodes[number]
        if isinstance(func, self.backend.module):
            return _as_torch(self.backend.type_name(type(func)))
        if node is not None and "." in node.name and node.kind != "m":
            return node.name
        if isinstance(func, type):
            return self._observer_name(func, args) or _as_torch(self.backend.type_name(func))
        return self._observer_name(func, args) or _as_torch(public_name(func))

    def _observer_name(self, func: Any, args: tuple[Any, ...]) -> str:
        """Builtins that look at the framework's object are named by what they look at."""
        if getattr(func, "__module__", None) != "builtins" or not args:
            return ""
        name, first = func.__name__, args[0]
        if name in ("hasattr", "getattr") and len(args) > 1:
            return self._looked_up(first, str(args[1]))
        if isinstance(first, self.backend.tensor):
            return "torch.Tensor" if name in ("isinstance", "issubclass") else f"torch.Tensor.__{name}__"
        kind = first if isinstance(first, type) else type(first)
        if not self.backend.foreign(kind):
            return f"builtins.{name}"
        owner = _as_torch(self.backend.type_name(kind))
        return owner if name in ("isinstance", "issubclass", "hash") else f"{owner}.__{name}__"

    def _looked_up(self, base: Any, attribute: str) -> str:
        if type(base).__name__ in ("_OpNamespace", "OpNameSpace", "_Ops"):
            return "torch.ops"
        if isinstance(base, types.ModuleType):
            return f"{_as_torch(base.__name__)}.{attribute}"
        kind = base if isinstance(base, type) else type(base)
        owner = "torch.Tensor" if issubclass(kind, self.backend.tensor) else _as_torch(self.backend.type_name(kind))
        return owner if owner == "torch.ops" else f"{owner}.{attribute}"

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
            serial = known[1] if known is not None and known[0]() is tensor else self._next()
            version = self.backend.version(tensor)
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
        operands = self.tensors((*given, *kwargs.values()))
        version = self.backend.version
        before = [version(t) for t in operands]
        inputs = self._inputs(given, kwargs)
        if self.inputs and isinstance(func, self.backend.module):
            self._note_state(number, visit, sub, func)
        draws = MAY_DRAW.search(api) is not None or isinstance(func, self.backend.module)
        state = self.backend.random_state() if draws else b""
        self.journal.enter(number)
        try:
            out = func(*args, **kwargs)
            if self.gradients:
                self._watch(number, visit, sub, out)
        except Exception as error:  # noqa: BLE001 - the worker's edge: whatever the program's call raises is a result
            return self.raised(number, visit, sub, api, inputs, operands, func, args, kwargs, error)
        self.journal.enter(0)
        flags = self._flags(api, func, given, operands, out)
        if draws and state != self.backend.random_state():
            flags += "r"
        written = [i for i, t in enumerate(operands) if version(t) != before[i]]
        return self.returned(number, visit, sub, api, inputs, operands, written, flags, out)

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
            return flags + "k"
        first = out[0] if type(out) in (tuple, list) and out else out
        is_tensor = isinstance(first, self.backend.tensor)
        if is_tensor and first is out:
            for index, operand in enumerate(operands):
                if operand is out:
                    return flags + f"={index};"
        if is_tensor or isinstance(first, np.ndarray):
            sources = [*operands, *(v for v in given if isinstance(v, np.ndarray))]
            if sources and self.backend.overlaps(first, sources):
                flags += "v"
        return flags

    def _note_state(self, number: int, visit: int, sub: str, layer: Any) -> None:
        """Write a layer's state if something that was not recorded (an optimizer's step) changed it."""
        known, version = self._known, self.backend.version
        for tensor in self.backend.held(layer):
            seen = known.get(id(tensor))
            if seen is None or seen[2] != version(tensor) or seen[0]() is not tensor:
                self.adopt(list(self.backend.held(layer)))
                self.journal.write(("state", number, visit, sub, self.backend.encode_state(layer)[2]))
                return

    def encode_out(self, out: Any, flags: str) -> Encoded:
        """A result; layers that were just made come with their state."""
        return self.backend.encode_state(out) if "k" in flags else self.backend.encode(out)

    def returned(self, number: int, visit: int, sub: str, api: str, inputs: list[Encoded], operands: list[Any],
                 written: list[int], flags: str, out: Any) -> Any:  # fmt: skip
        """Record a call that returned; what the program gets."""
        encode = self.backend.encode_tensor
        changed = [(i, encode(operands[i])) for i in written]
        encoded = self.encode_out(out, flags)
        serials = self._settle(out, operands, written, flags) if self.inputs else []
        self.journal.write(("call", number, visit, sub, api, inputs, encoded, serials, changed, flags, ""))
        return out

    def _settle(self, out: Any, operands: list[Any], written: list[int], flags: str) -> list[tuple[int, int]]:
        for index in written:
            (serial, version), *_ = self.adopt([operands[index]])
            self.journal.write(("value", serial, version, self.backend.encode_tensor(operands[index])))
        if "k" in flags:
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

    def absent(self, number: int, base: Any, attribute: str, error: AttributeError, args: Any) -> Any:
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

    def imported(self, number: int, api: str, value: Any, name: str) -> Any:
        """Record what an import handed out."""
        self._note(number, name, api, self.backend.encode(value))
        return value

    def _note(self, number: int, part: str, api: str, value: Encoded, serials: Any = (), healed: str = "") -> None:
        """Write a call without inputs: something that was read."""
        self.journal.write(("call", number, self.visits[number], part, api, [], value, list(serials), [], "", healed))

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

    def observed(self, number: int, api: str, value: Any) -> Any:
        """Record an attribute that was read."""
        serials = self.adopt(value) if self.inputs else []
        self._note(number, "", api, self.backend.encode(value), serials)
        return value


def _rewritten(func: Any) -> bool:
    """Whether a function is the program's own."""
    return type(func) is _FUNCTION and METHOD in func.__globals__


def lacking(error: Exception, base: Any) -> Failure:
    """Facts about a name that is not there; ``base`` is what it was looked up on, None for an import."""
    on_object = base is not None and not isinstance(base, types.ModuleType)
    return {**failure_of(error), "on_object": on_object}


def exported(module: Any) -> list[str]:
    """Names that a star import of a module binds."""
    names = getattr(module, "__all__", None)
    return list(names) if names is not None else [n for n in dir(module) if not n.startswith("_")]


def _as_torch(name: str) -> str:
    """A name of Paddle's as torch's users know it; the torch side's own name wins where the two are aligned."""
    if name.startswith("torch._ops."):
        return "torch.ops"
    if name.startswith("paddle."):
        return "torch." + name.removeprefix("paddle.").removeprefix("compat.")
    return name


__all__ = ["CONTAINER", "FRAMEWORK", "OTHER", "USER", "Failure", "Recorder"]
