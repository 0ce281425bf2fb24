"""The helpers that rewritten code calls: a recorder in, plain functions out; the fast paths of the whole tool.

Each helper does exactly what the expression that it stands for does, and hands to the recorder only what concerns the
framework. Numbers come first and all own parameters are positional-only, so that no keyword of the program's collides.
"""

from __future__ import annotations

import functools
import importlib
import operator
import types
from typing import Any

from migrate_lens.worker.backends.base import owner_of
from migrate_lens.worker.observe import nodes
from migrate_lens.worker.observe.naming import DOCUMENTED
from migrate_lens.worker.observe.recorder import CONTAINER, OTHER, USER, Recorder

_PLAIN = frozenset((str, bytes, int, float, bool, list, dict, set, tuple, type(None), type(iter([])), complex))
_VALUES = (str, bytes, int, float, list, tuple, dict)
_UNARY = frozenset(("neg", "invert", "pos"))


class Bound:
    """A method looked up before its arguments are evaluated: its receiver, and itself or why it is not there."""

    __slots__ = ("base", "error", "func")

    def __init__(self, base: Any, attribute: str, /) -> None:
        self.base = base
        self.error: Exception | None = None
        try:
            self.func = getattr(base, attribute)
        except Exception as error:
            if not refuses(base, error):
                raise
            self.error = error


def refuses(base: Any, error: Exception) -> bool:
    """Whether an object says that it does not have a name; a framework's registry says it in its own words."""
    return isinstance(error, AttributeError) or type(base).__module__.partition(".")[0] in ("paddle", "torch")


def lookup(base: Any, attribute: str) -> Any:
    """``getattr`` for one name or a dotted chain of them."""
    if "." not in attribute:
        return getattr(base, attribute)
    for part in attribute.split("."):
        base = getattr(base, part)
    return base


def make(recorder: Recorder) -> dict[str, Any]:
    """The helpers by the names under which rewritten code finds them."""
    return {
        **_calls(recorder),
        **_reads(recorder),
        **_operators(recorder),
        **_writes(recorder),
        **_statements(recorder),
    }


def _calls(recorder: Recorder) -> dict[str, Any]:
    backend, visits, origin, invoke = recorder.backend, recorder.visits, recorder.origin, recorder.invoke
    tensor = backend.tensor

    def call(number: int, func: Any, /, *args: Any, **kwargs: Any) -> Any:
        visits[number] += 1
        kind = origin(func)
        if kind == USER or (kind == OTHER and not recorder.concerns((*args, *kwargs.values()))):
            return func(*args, **kwargs)
        if kind == CONTAINER and recorder.open(func, args, kwargs):
            return _through(recorder, number, func, args[0], "")
        return invoke(number, func, None, args, kwargs, None)

    def method(number: int, base: Any, attribute: str, /, *args: Any, **kwargs: Any) -> Any:
        bound = base if type(base) is Bound else None
        base = bound.base if bound else base
        if type(base) in _PLAIN:
            return (bound.func if bound and not bound.error else getattr(base, attribute))(*args, **kwargs)
        visits[number] += 1
        if bound and bound.error:
            return recorder.absent(number, base, attribute, bound.error, args)
        try:
            func = bound.func if bound else lookup(base, attribute)
        except Exception as error:
            if not refuses(base, error):
                raise
            return recorder.absent(number, base, attribute, error, args)
        if "." in attribute and isinstance(owner_of(func), _VALUES):
            func = _through_value(recorder, number, base, attribute)
        kind = origin(func)
        if kind == USER:
            return func(*args, **kwargs)
        if kind == CONTAINER and recorder.open(func, args, kwargs):
            return _through(recorder, number, func, args[0], "")
        if kind == OTHER and not recorder.concerns((*args, *kwargs.values())):
            return func(*args, **kwargs)
        name = _method_name(recorder, number, base, func, attribute)
        return invoke(number, func, base if isinstance(base, tensor) else None, args, kwargs, name)

    def hand(number: int, func: Any, /) -> Any:
        return functools.partial(call, number, func) if callable(func) and origin(func) != USER else func

    return {nodes.CALL: call, nodes.METHOD: method, nodes.BIND: Bound, nodes.HAND: hand}


def _through_value(recorder: Recorder, number: int, base: Any, attribute: str) -> Any:
    """``torch.__version__.split``: what is read on the way to a method of a plain value is an attribute read."""
    head, _, tail = attribute.rpartition(".")
    value = lookup(base, head)
    node = recorder.nodes[number]
    value = str(value) if isinstance(value, str) else value
    return getattr(recorder.observed(number, node.name.rpartition(".")[0] if node else head, value), tail)


def _through(recorder: Recorder, number: int, container: Any, value: Any, path: str) -> Any:
    """A Sequential layer by layer, so that a difference is named by the layer that makes it."""
    for index, child in enumerate(container):
        at = f"{path}.{index}" if path else str(index)
        kind = recorder.origin(child)
        if kind == USER:
            value = child(value)
        elif kind == CONTAINER and recorder.open(child, (value,), {}):
            value = _through(recorder, number, child, value, at)
        else:
            value = recorder.invoke(number, child, None, (value,), {}, None, at)
    return value


def _reads(recorder: Recorder) -> dict[str, Any]:
    backend, visits = recorder.backend, recorder.visits
    tensor, layer, foreign, own = backend.tensor, backend.module, backend.foreign, backend.own

    def attribute(number: int, base: Any, name: str, /) -> Any:
        kind = type(base)
        if kind in _PLAIN:
            return getattr(base, name)
        visits[number] += 1
        try:
            value = lookup(base, name)
        except Exception as error:
            if not refuses(base, error):
                raise
            return recorder.absent(number, base, name, error, None)
        if isinstance(base, types.ModuleType):
            watched = recorder.concerns((base,))
        elif isinstance(base, type):
            watched = foreign(base) and not isinstance(value, types.FunctionType)
        else:
            watched = foreign(kind) and (own(kind) or isinstance(base, tensor) or not isinstance(base, layer))
        if not watched:
            return value
        node = recorder.nodes[number]
        api = node.name if node and "." in node.name else recorder.method_name(number, base, name)
        return recorder.observed(number, api, value, base)

    return {nodes.ATTRIBUTE: attribute}


def _method_name(recorder: Recorder, number: int, base: Any, func: Any, attribute: str) -> str | None:
    node = recorder.nodes[number]
    if node is not None and "." in node.name:
        return node.name
    if isinstance(func, recorder.backend.module) and not isinstance(base, types.ModuleType):
        return None
    if registered := recorder.backend.registered_class(base):
        return f"{registered}.{attribute}"
    owner = owner_of(func)
    if owner is base or isinstance(base, types.ModuleType | type | super):
        return recorder.method_name(number, base, attribute)
    return recorder.method_name(number, base, attribute) if isinstance(base, recorder.backend.tensor) else None


def _operators(recorder: Recorder) -> dict[str, Any]:
    backend, visits, invoke = recorder.backend, recorder.visits, recorder.invoke
    foreign, layer = backend.foreign, backend.module
    functions = {n: getattr(operator, n) for n in (*nodes.BINARY.values(), "getitem")}
    names = {n: f"torch.Tensor.{DOCUMENTED.get(n, n)}" for n in functions}
    inplace = {f"i{n.rstrip('_')}": getattr(operator, f"i{n.rstrip('_')}") for n in _inplace_names()}

    def operate(number: int, name: str, left: Any, /, *right: Any) -> Any:
        if not foreign(type(left)) and not (right and foreign(type(right[0]))):
            return functions[name](left, *right)
        if isinstance(left, layer):
            return functions[name](left, *right)
        visits[number] += 1
        if type(left) in _PLAIN and name == "getitem":
            try:
                return left[right[0]]  # what lies in a list or dict of the program's is no result of the framework's
            except (TypeError, LookupError):
                pass  # that the framework's object cannot be a place or key is
        return invoke(number, functions[name], None, (left, *right), {}, names[name])

    def augment(number: int, name: str, left: Any, right: Any, /) -> Any:
        if not foreign(type(left)) and not foreign(type(right)):
            return inplace[name](left, right)
        visits[number] += 1
        return invoke(number, inplace[name], None, (left, right), {}, f"torch.Tensor.__{name}__")

    def augment_item(number: int, name: str, base: Any, index: Any, old: Any, value: Any, /) -> None:
        base[index] = augment(number, name, old, value)

    def augment_attribute(number: int, name: str, base: Any, attribute: str, old: Any, value: Any, /) -> None:
        setattr(base, attribute, augment(number, name, old, value))

    def old_item(base: Any, index: Any, /) -> tuple[Any, Any, Any]:
        return base, index, base[index]

    def old_attribute(base: Any, attribute: str, /) -> tuple[Any, str, Any]:
        return base, attribute, getattr(base, attribute)

    return {
        nodes.OPERATOR: operate, nodes.INPLACE: augment, nodes.INPLACE_ITEM: augment_item,
        nodes.INPLACE_ATTRIBUTE: augment_attribute, nodes.SLICE: slice,
        nodes.OLD_ITEM: old_item, nodes.OLD_ATTRIBUTE: old_attribute,
    }  # fmt: skip


def _writes(recorder: Recorder) -> dict[str, Any]:
    backend, visits, invoke = recorder.backend, recorder.visits, recorder.invoke
    foreign, layer, written = backend.foreign, backend.module, f"torch.Tensor.{DOCUMENTED['setitem']}"

    def setitem(number: int, value: Any, base: Any, index: Any, /) -> None:
        if not foreign(type(base)) or isinstance(base, layer):
            base[index] = value
            return
        visits[number] += 1
        invoke(number, operator.setitem, None, (base, index, value), {}, written)

    def set_attribute(number: int, value: Any, base: Any, name: str, /) -> None:
        visits[number] += 1
        try:
            setattr(base, name, value)
        except Exception as error:  # the worker's edge: what a framework's object refuses is a result
            if not foreign(type(base)):
                raise
            api = f"torch.Tensor.{name}" if isinstance(base, backend.tensor) else "torch.nn.Module.__setattr__"
            refused = type(base).__setattr__
            recorder.raised(number, visits[number], "", api, [], [], refused, (base, name, value), {}, error)

    return {nodes.SETITEM: setitem, nodes.SET_ATTRIBUTE: set_attribute}


def _inplace_names() -> list[str]:
    return [n for n in nodes.BINARY.values() if hasattr(operator, f"i{n.rstrip('_')}") and n not in _UNARY]


def _statements(recorder: Recorder) -> dict[str, Any]:
    visits = recorder.visits

    def decorate(number: int, decorator: Any, /) -> Any:
        def apply(target: Any) -> Any:
            visits[number] += 1
            return recorder.decorated(number, decorator, target)

        return apply

    def from_import(number: int, module: str, names: tuple[str, ...], /) -> Any:
        visits[number] += 1
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            return recorder.absent_import(number, module, names, error)
        recorder.answered(number, loaded)
        if names == ("*",):
            return recorder.starred(number, module, loaded)
        return [_one(number, loaded, module, name) for name in names]

    def _one(number: int, loaded: Any, module: str, name: str) -> Any:
        api = f"{module}.{name}"
        try:
            return recorder.imported(number, api, getattr(loaded, name), name)
        except AttributeError:
            pass
        try:
            return recorder.imported(number, api, importlib.import_module(api), name)
        except ImportError:
            error = ImportError(f"cannot import name {name!r} from {module!r}", name=name)
            return recorder.absent_import(number, module, (name,), error)[0]

    def import_(number: int, module: str, aliased: bool, /) -> Any:
        visits[number] += 1
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            loaded = recorder.absent_import(number, module, (), error)[0]
        else:
            recorder.answered(number, loaded)
            recorder.imported(number, module, loaded, "")
        return loaded if aliased else importlib.import_module(module.partition(".")[0])

    return {nodes.DECORATE: decorate, nodes.FROM: from_import, nodes.IMPORT: import_}
