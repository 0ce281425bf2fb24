"""The helpers that rewritten code calls: a recorder in, plain functions out; the fast paths of the whole tool.

Each helper does exactly what the expression that it stands for does, and hands to the recorder only what concerns the
framework. Numbers come first and all own parameters are positional-only, so that no keyword of the program's collides.
"""

from __future__ import annotations

import functools
import importlib
import operator
import types
from collections.abc import Callable
from typing import Any

from migrate_lens.worker.backends import FRAMEWORKS
from migrate_lens.worker.backends.kinds import looks_at_caller, owner_of
from migrate_lens.worker.observe import nodes
from migrate_lens.worker.observe.call import Call
from migrate_lens.worker.observe.naming import DOCUMENTED
from migrate_lens.worker.observe.recorder import CONTAINER, FRAMEWORK, OTHER, USER, Recorder

Helper = Callable[..., Any]

_PLAIN = frozenset((str, bytes, int, float, bool, list, dict, set, tuple, type(None), type(iter([])), complex))
_VALUES = (str, bytes, int, float, list, tuple, dict)
_DIRECTORIES = frozenset(("importlib", "importlib_metadata", "pkgutil", "pkg_resources"))
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
    return isinstance(error, AttributeError) or type(base).__module__.partition(".")[0] in FRAMEWORKS


def lookup(base: Any, attribute: str) -> Any:
    """``getattr`` for one name or a dotted chain of them."""
    if "." not in attribute:
        return getattr(base, attribute)
    for part in attribute.split("."):
        base = getattr(base, part)
    return base


def make(recorder: Recorder) -> dict[str, Helper]:
    """The helpers by the names under which rewritten code finds them."""
    call, augment = _call(recorder), _augment(recorder)
    return {
        nodes.CALL: call,
        nodes.METHOD: _method(recorder),
        nodes.BIND: Bound,
        nodes.HAND: _hand(recorder, call),
        nodes.ATTRIBUTE: _attribute(recorder),
        nodes.INHERITED: _inherited(recorder),
        nodes.OPERATOR: _operate(recorder),
        nodes.SLICE: slice,
        nodes.INPLACE: augment,
        **_augmented_places(augment),
        nodes.SETITEM: _setitem(recorder),
        nodes.SET_ATTRIBUTE: _set_attribute(recorder),
        nodes.DECORATE: _decorate(recorder),
        nodes.FROM: _from_import(recorder),
        nodes.IMPORT: _import(recorder),
    }


# -- calls -------------------------------------------------------------------------------------------------------------


def _call(recorder: Recorder) -> Helper:
    visits, origin, invoke = recorder.visits, recorder.origin, recorder.invoke

    def call(number: int, func: Any, /, *args: Any, **kwargs: Any) -> Any:
        visits[number] += 1
        kind = origin(func)
        if kind == OTHER and asks_for_framework(func, args):
            return _ask(recorder, Call(number, func, args, kwargs, args))
        if kind == USER or (kind == OTHER and not recorder.concerns((*args, *kwargs.values()))):
            if recorder.expects(number):
                return invoke(Call(number, func, args, kwargs, args))
            return func(*args, **kwargs)
        if kind == CONTAINER and recorder.open(func, args, kwargs):
            return _through(recorder, number, func, args[0], "")
        return invoke(Call(number, func, args, kwargs, args))

    return call


def _method(recorder: Recorder) -> Helper:
    visits, origin = recorder.visits, recorder.origin
    make_call, call_bound = _framework_method(recorder), _bound_method(recorder)

    def method(number: int, base: Any, attribute: str, /, *args: Any, **kwargs: Any) -> Any:
        if type(base) is Bound:
            return call_bound(number, base, attribute, args, kwargs)
        if type(base) in _PLAIN:
            return getattr(base, attribute)(*args, **kwargs)
        visits[number] += 1
        try:
            func = lookup(base, attribute)
        except Exception as error:
            if not refuses(base, error):
                raise
            return recorder.absent(number, base, attribute, error, args)
        kind = origin(func)
        if kind == USER:
            return func(*args, **kwargs)
        return make_call(Call(number, func, args, kwargs, args), base, attribute, kind)

    return method


def _bound_method(recorder: Recorder) -> Helper:
    visits, origin = recorder.visits, recorder.origin
    make_call = _framework_method(recorder)

    def bound_method(number: int, bound: Bound, attribute: str, args: Any, kwargs: Any) -> Any:
        base, error = bound.base, bound.error
        if type(base) in _PLAIN:
            func = getattr(base, attribute) if error else bound.func
            return func(*args, **kwargs)
        visits[number] += 1
        if error:
            return recorder.absent(number, base, attribute, error, args)
        kind = origin(bound.func)
        if kind == USER:
            return bound.func(*args, **kwargs)
        return make_call(Call(number, bound.func, args, kwargs, args), base, attribute, kind)

    return bound_method


def _framework_method(recorder: Recorder) -> Helper:
    origin, invoke, tensor = recorder.origin, recorder.invoke, recorder.backend.tensor

    def framework_method(call: Call, base: Any, attribute: str, kind: int) -> Any:
        if "." in attribute and isinstance(owner_of(call.func), _VALUES):
            call.func = _through_value(recorder, call.node, base, attribute)
            kind = origin(call.func)
        if kind == OTHER and asks_for_framework(call.func, call.args):
            return _ask(recorder, call)
        if kind == OTHER and not recorder.concerns((*call.args, *call.kwargs.values())):
            return call.func(*call.args, **call.kwargs)
        if kind == CONTAINER and recorder.open(call.func, call.args, call.kwargs):
            return _through(recorder, call.node, call.func, call.args[0], "")
        call.api = _method_name(recorder, call, base, attribute)
        if isinstance(base, tensor):
            call.given = (base, *call.args)
        return invoke(call)

    return framework_method


def asks_for_framework(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call asks the import system, or the lists of what is installed, for the framework by its name."""
    if not args or type(args[0]) is not str or args[0].partition(".")[0] != nodes.FRAMEWORK:
        return False
    return (getattr(func, "__module__", None) or "").partition(".")[0] in _DIRECTORIES


def _ask(recorder: Recorder, call: Call) -> Any:
    """A module that is imported by its name is what an import statement of it is; other answers are results."""
    if call.func is not importlib.import_module:
        return recorder.invoke(call)
    name = call.args[0]
    try:
        loaded = importlib.import_module(*call.args, **call.kwargs)
    except ImportError as error:
        return recorder.not_there(call.node, name, error)
    return recorder.imported(call.node, name, loaded, "")


def _hand(recorder: Recorder, call: Helper) -> Helper:
    origin = recorder.origin

    def hand(number: int, func: Any, /) -> Any:
        return functools.partial(call, number, func) if callable(func) and origin(func) != USER else func

    return hand


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
            value = recorder.invoke(Call(number, child, (value,), {}, (value,), part=at))
    return value


def _method_name(recorder: Recorder, call: Call, base: Any, attribute: str) -> str:
    """The documented name of a method; empty where what is called has a name of its own."""
    node = recorder.nodes[call.node]
    if node is not None and "." in node.name:
        return node.name
    backend = recorder.backend
    if isinstance(call.func, backend.module) and not isinstance(base, types.ModuleType):
        return ""
    if registered := backend.registered_class(base):
        return f"{registered}.{attribute}"
    named_by_base = isinstance(base, types.ModuleType | type | super | backend.tensor)
    if named_by_base or owner_of(call.func) is base:
        return recorder.method_name(call.node, base, attribute)
    return ""


# -- what is read ------------------------------------------------------------------------------------------------------


def _attribute(recorder: Recorder) -> Helper:
    visits = recorder.visits

    def attribute(number: int, base: Any, name: str, /) -> Any:
        if type(base) in _PLAIN:
            return getattr(base, name)
        visits[number] += 1
        try:
            value = lookup(base, name)
        except Exception as error:
            if not refuses(base, error):
                raise
            return recorder.absent(number, base, name, error, None)
        if not _watched(recorder, base, value):
            return value
        node = recorder.nodes[number]
        api = node.name if node and "." in node.name else recorder.method_name(number, base, name)
        return recorder.observed(number, api, value, base)

    return attribute


def _inherited(recorder: Recorder) -> Helper:
    """An attribute of ``self`` that the program does not set: where the class is a framework's layer's, it has it."""
    visits, backend = recorder.visits, recorder.backend

    def inherited(number: int, base: Any, name: str, /) -> Any:
        kind = type(base)
        if not backend.extends(kind):
            return getattr(base, name)
        visits[number] += 1
        try:
            value = getattr(base, name)
        except AttributeError as error:
            return recorder.absent(number, base, name, error, None)
        if backend.defines(kind, name) or isinstance(value, types.MethodType):
            return value
        return recorder.observed(number, recorder.method_name(number, base, name), value, base)

    return inherited


def _watched(recorder: Recorder, base: Any, value: Any) -> bool:
    """Whether it concerns the framework that a value was read from a base."""
    backend = recorder.backend
    if isinstance(base, types.ModuleType):
        return recorder.concerns((base,))
    if isinstance(base, type):
        return backend.foreign(base) and not isinstance(value, types.FunctionType)
    kind = type(base)
    if not backend.foreign(kind):
        return False
    return backend.own(kind) or isinstance(base, backend.tensor) or not isinstance(base, backend.module)


# -- operators ---------------------------------------------------------------------------------------------------------


def _operate(recorder: Recorder) -> Helper:
    visits, invoke = recorder.visits, recorder.invoke
    foreign, layer = recorder.backend.foreign, recorder.backend.module
    functions = {n: getattr(operator, n) for n in (*nodes.BINARY.values(), "getitem")}
    union = _unite(recorder)
    names = {n: f"torch.Tensor.{DOCUMENTED.get(n, n)}" for n in functions}

    def operate(number: int, name: str, left: Any, /, *right: Any) -> Any:
        if not foreign(type(left)) and not (right and foreign(type(right[0]))):
            return union(number, left, *right) if name == "or_" else functions[name](left, *right)
        if name == "getitem" and isinstance(right[0], type):
            return left[right[0]]  # List[torch.Tensor]
        if isinstance(left, layer):
            return functions[name](left, *right)
        visits[number] += 1
        if type(left) in _PLAIN and name == "getitem":
            try:
                return left[right[0]]  # what lies in a list or dict of the program's is no result of the framework's
            except (TypeError, LookupError):
                pass  # that the framework's object cannot be a place or key is
        operands = (left, *right)
        return invoke(Call(number, functions[name], operands, {}, operands, names[name]))

    return operate


def _unite(recorder: Recorder) -> Helper:
    """``str | torch.device``: types of the framework's in a union, which a target may have as something else."""
    visits, invoke, backend = recorder.visits, recorder.invoke, recorder.backend

    def unite(number: int, left: Any, right: Any, /) -> Any:
        kinds = [kind for kind in (left, right) if isinstance(kind, type) and backend.foreign(kind)]
        if not kinds:
            return left | right
        visits[number] += 1
        operands = (left, right)
        return invoke(Call(number, operator.or_, operands, {}, operands, f"{backend.type_name(kinds[0])}.__or__"))

    return unite


def _augment(recorder: Recorder) -> Helper:
    visits, invoke, foreign = recorder.visits, recorder.invoke, recorder.backend.foreign
    inplace = {f"i{n.rstrip('_')}": getattr(operator, f"i{n.rstrip('_')}") for n in _inplace_names()}

    def augment(number: int, name: str, left: Any, right: Any, /) -> Any:
        if not foreign(type(left)) and not foreign(type(right)):
            return inplace[name](left, right)
        visits[number] += 1
        operands = (left, right)
        return invoke(Call(number, inplace[name], operands, {}, operands, f"torch.Tensor.__{name}__"))

    return augment


def _inplace_names() -> list[str]:
    return [n for n in nodes.BINARY.values() if hasattr(operator, f"i{n.rstrip('_')}") and n not in _UNARY]


def _augmented_places(augment: Helper) -> dict[str, Helper]:
    """Items and attributes that are computed with in place, and how their old values are read."""

    def augment_item(number: int, name: str, base: Any, index: Any, old: Any, value: Any, /) -> None:
        base[index] = augment(number, name, old, value)

    def augment_attribute(number: int, name: str, base: Any, attribute: str, old: Any, value: Any, /) -> None:
        setattr(base, attribute, augment(number, name, old, value))

    def old_item(base: Any, index: Any, /) -> tuple[Any, Any, Any]:
        return base, index, base[index]

    def old_attribute(base: Any, attribute: str, /) -> tuple[Any, str, Any]:
        return base, attribute, getattr(base, attribute)

    return {
        nodes.INPLACE_ITEM: augment_item,
        nodes.INPLACE_ATTRIBUTE: augment_attribute,
        nodes.OLD_ITEM: old_item,
        nodes.OLD_ATTRIBUTE: old_attribute,
    }


# -- what is written ---------------------------------------------------------------------------------------------------


def _setitem(recorder: Recorder) -> Helper:
    visits, invoke = recorder.visits, recorder.invoke
    foreign, layer = recorder.backend.foreign, recorder.backend.module
    api = f"torch.Tensor.{DOCUMENTED['setitem']}"

    def setitem(number: int, value: Any, base: Any, index: Any, /) -> None:
        if not foreign(type(base)) or isinstance(base, layer):
            base[index] = value
            return
        visits[number] += 1
        operands = (base, index, value)
        invoke(Call(number, operator.setitem, operands, {}, operands, api))

    return setitem


def _set_attribute(recorder: Recorder) -> Helper:
    visits, backend = recorder.visits, recorder.backend

    def set_attribute(number: int, value: Any, base: Any, name: str, /) -> None:
        visits[number] += 1
        try:
            setattr(base, name, value)
        except Exception as error:  # the worker's edge: what a framework's object refuses is a result
            kind = type(base)
            if not backend.foreign(kind):
                raise
            api = f"torch.Tensor.{name}" if isinstance(base, backend.tensor) else "torch.nn.Module.__setattr__"
            given = (base, name, value)
            recorder.raised(Call(number, kind.__setattr__, given, {}, given, api, visit=visits[number]), error)
        else:
            if backend.proxy and isinstance(value, (backend.tensor, backend.module)):
                recorder.stored(number, base, name, value)

    return set_attribute


# -- statements --------------------------------------------------------------------------------------------------------


def _decorate(recorder: Recorder) -> Helper:
    visits = recorder.visits

    def decorate(number: int, decorator: Any, /) -> Any:
        if looks_at_caller(decorator) and recorder.origin(decorator) == FRAMEWORK:
            visits[number] += 1
            return decorator  # Python itself applies it, in the program's own frame

        def apply(target: Any) -> Any:
            visits[number] += 1
            return recorder.decorated(number, decorator, target)

        return apply

    return decorate


def _from_import(recorder: Recorder) -> Helper:
    visits = recorder.visits

    def from_import(number: int, module: str, names: tuple[str, ...], /) -> Any:
        visits[number] += 1
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            return recorder.absent_import(number, module, names, error)
        recorder.answered(number, loaded)
        if names == ("*",):
            return recorder.starred(number, module, loaded)
        return [_imported_name(recorder, number, loaded, module, name) for name in names]

    return from_import


def _imported_name(recorder: Recorder, number: int, loaded: Any, module: str, name: str) -> Any:
    """What a from-import binds to a name: an attribute of the module, or else a module in it."""
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


def _import(recorder: Recorder) -> Helper:
    visits = recorder.visits

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

    return import_
