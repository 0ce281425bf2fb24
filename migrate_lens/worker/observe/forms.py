"""The helpers that rewritten code calls: a recorder in, plain functions out; the fast paths of the whole tool.

Each helper does exactly what the expression that it stands for does, and hands to the recorder only what concerns the
framework. Numbers come first and all own parameters are positional-only, so that no keyword of the program's collides.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from migrate_lens.worker.backends import FRAMEWORKS
from migrate_lens.worker.backends.kinds import looks_at_caller, owner_of
from migrate_lens.worker.observe import nodes
from migrate_lens.worker.observe.call import Call
from migrate_lens.worker.observe.callers import as_caller
from migrate_lens.worker.observe.frames import UNSEEN, hide, is_program, leave
from migrate_lens.worker.observe.naming import DOCUMENTED
from migrate_lens.worker.observe.recorder import CONTAINER, OTHER, USER, Recorder

Helper = Callable[..., Any]

_PLAIN = frozenset((str, bytes, int, float, bool, list, dict, set, tuple, type(None), type(iter([])), complex))
_VALUES = (str, bytes, int, float, list, tuple, dict)
_DIRECTORIES = frozenset(("importlib", "importlib_metadata", "pkgutil", "pkg_resources"))
_UNARY = frozenset(("neg", "invert", "pos"))
_BUILTIN = types.BuiltinFunctionType
# Builtins that look at the frame that calls them.
_FRAMED = frozenset((eval, exec, locals, globals, vars, dir, __import__, sys._getframe))
# How Python asks an object, as often as a framework happens to: what comes of it is judged where the program uses it.
_PROTOCOL = frozenset(
    ("__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__hash__", "__eq__", "__repr__")
)


Seen = functools.partial  # what a program is about to call: looked up and not yet called


class Named(functools.partial[Any]):
    """What is about to be called, under the callee's name: Python's messages on unpacked arguments have it."""

    def __str__(self) -> str:
        return str(self.args[1])


def named(seen: Any, /) -> Any:
    """Give what is about to be called the callee's name."""
    if type(seen) is not Seen or seen.func.__module__ != __name__:
        return seen
    callee = seen.args[1]
    named = Named(seen.func, *seen.args)
    named.__module__ = getattr(callee, "__module__", None)  # type: ignore[assignment]
    if hasattr(callee, "__qualname__"):
        named.__qualname__ = callee.__qualname__  # type: ignore[attr-defined]
    return named


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
    augment = _augment(recorder)
    return {
        nodes.CALL: _call(recorder),
        nodes.BUILTIN: _builtin(recorder),
        nodes.METHOD: _method(recorder),
        nodes.NAMED: named,
        nodes.HAND: _hand(recorder),
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
#
# A call of the program's is made in two steps, `helper(number, callee)(arguments)`: the callee is looked up before the
# arguments are evaluated, and where it is the program's own it is handed back, so that the program itself calls it.


def _call(recorder: Recorder) -> Helper:
    visits, origin = recorder.visits, recorder.origin
    make_call = _maker(recorder)

    def call(number: int, func: Any, /) -> Any:
        kind = origin(func)
        if kind == USER or (type(func) is _BUILTIN and func in _FRAMED):
            visits[number] += 1
            if not recorder.expects(number):
                return func
            visits[number] -= 1  # it is counted where it is made
        return Seen(make_call, number, func, kind)

    return call


def _maker(recorder: Recorder) -> Helper:
    """Makes a call of what is not the program's own."""
    visits, concerns, invoke = recorder.visits, recorder.concerns, recorder.invoke

    def make_call(number: int, func: Any, kind: int, /, *args: Any, **kwargs: Any) -> Any:
        visits[number] += 1
        try:
            if kind == OTHER:
                if asks_for_framework(func, args):
                    return _ask(recorder, Call(number, func, args, kwargs, args))
                if not concerns((*args, *kwargs.values())) and not recorder.expects(number):
                    return _untouched(func)(*args, **kwargs)
            elif kind == CONTAINER and recorder.open(func, args, kwargs):
                return _through(recorder, number, func, args[0], "")
            return invoke(Call(number, func, args, kwargs, args))
        except BaseException as error:
            leave(error)
            raise

    return make_call


def _untouched(func: Any) -> Any:
    """A function that does not concern the framework, as the program's own frame would call it."""
    return as_caller(func) if looks_at_caller(func) else func


def _builtin(recorder: Recorder) -> Helper:
    """A builtin and its arguments, for the program itself to call: what it calls in turn sees the program's frame."""
    visits, origin, concerns = recorder.visits, recorder.origin, recorder.concerns
    make_call = _maker(recorder)

    def builtin(number: int, func: Any, /, *args: Any, **kwargs: Any) -> Any:
        kind = origin(func)
        if kind == USER or (kind == OTHER and not concerns((*args, *kwargs.values()))):
            visits[number] += 1
            return functools.partial(func, *args, **kwargs)
        try:
            return [make_call(number, func, kind, *args, **kwargs)].pop
        except BaseException as error:
            leave(error)
            raise

    return builtin


def _method(recorder: Recorder) -> Helper:
    visits, origin = recorder.visits, recorder.origin
    make_call = _method_maker(recorder)

    def method(number: int, base: Any, attribute: str, /) -> Any:
        try:
            try:
                if type(base) in _PLAIN:
                    return getattr(base, attribute)
                func = lookup(base, attribute)
            except Exception as error:
                if not (recorder.answers_absence(number) if type(base) in _PLAIN else refuses(base, error)):
                    raise
                return _absent_call(recorder, number, base, attribute, error)
            kind = origin(func)
            if kind == USER or _is_left_alone(base, attribute, func):
                visits[number] += 1
                return func
            if "." in attribute and isinstance(owner_of(func), _VALUES):
                visits[number] += 1
                func = _through_value(recorder, number, base, attribute)
                kind = origin(func)
                visits[number] -= 1
            return Seen(make_call, number, func, kind, base, attribute)
        except BaseException as error:
            leave(error)
            raise

    return method


def _is_left_alone(base: Any, attribute: str, func: Any) -> bool:
    """Whether a method looks at the frame that calls it, or is how Python asks an object."""
    return (type(func) is _BUILTIN and func in _FRAMED) or (type(base) is super and attribute in _PROTOCOL)


def _absent_call(recorder: Recorder, number: int, base: Any, attribute: str, error: Exception) -> Any:
    """A method that is not there: raised before the arguments are evaluated, unless torch's result stands in for it."""

    def absent(_number: int, _error: Exception, /, *args: Any, **_: Any) -> Any:
        recorder.visits[number] += 1
        try:
            return recorder.absent(number, base, attribute, error, args)
        except BaseException as raised:
            leave(raised)
            raise

    if recorder.answers_absence(number):
        return Seen(absent, number, error)
    recorder.visits[number] += 1
    return Seen(_given, recorder.absent(number, base, attribute, error, ()), error)


def _given(value: Any, _error: Exception, /, *_args: Any, **_kwargs: Any) -> Any:
    return value


def _method_maker(recorder: Recorder) -> Helper:
    """Makes a call of a method that is not the program's own."""
    visits, concerns, invoke, tensor = recorder.visits, recorder.concerns, recorder.invoke, recorder.backend.tensor

    def make_call(number: int, func: Any, kind: int, base: Any, attribute: str, /, *args: Any, **kwargs: Any) -> Any:
        visits[number] += 1
        try:
            if kind == OTHER:
                if asks_for_framework(func, args):
                    return _ask(recorder, Call(number, func, args, kwargs, args))
                if not concerns((*args, *kwargs.values())) and not recorder.expects(number):
                    return _untouched(func)(*args, **kwargs)
            elif kind == CONTAINER and recorder.open(func, args, kwargs):
                return _through(recorder, number, func, args[0], "")
            call = Call(number, func, args, kwargs, args)
            call.api = _method_name(recorder, call, base, attribute)
            if isinstance(base, tensor):
                call.given = (base, *args)
            return invoke(call)
        except BaseException as error:
            leave(error)
            raise

    return make_call


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


def _hand(recorder: Recorder) -> Helper:
    call = _call(recorder)

    def hand(number: int, func: Any, /) -> Any:
        return call(number, func) if callable(func) else func

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
        try:
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
        except BaseException as error:
            leave(error)
            raise

    return attribute


def _inherited(recorder: Recorder) -> Helper:
    """An attribute of ``self`` that the program does not set: where the class is a framework's layer's, it has it."""
    visits, backend = recorder.visits, recorder.backend

    def inherited(number: int, base: Any, name: str, /) -> Any:
        kind = type(base)
        try:
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
        except BaseException as error:
            leave(error)
            raise

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
        try:
            if not foreign(type(left)) and not (right and foreign(type(right[0]))):
                return union(number, left, *right) if name == "or_" else functions[name](left, *right)
            if name == "getitem" and isinstance(right[0], type):
                return left[right[0]]  # List[torch.Tensor]
            if isinstance(left, layer):
                return functions[name](left, *right)
            visits[number] += 1
            if type(left) in _PLAIN and name == "getitem":
                try:
                    return left[
                        right[0]
                    ]  # what lies in a list or dict of the program's is no result of the framework's
                except (TypeError, LookupError):
                    pass  # that the framework's object cannot be a place or key is
            operands = (left, *right)
            return invoke(Call(number, functions[name], operands, {}, operands, names[name]))
        except BaseException as error:
            leave(error)
            raise

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
        try:
            if not foreign(type(left)) and not foreign(type(right)):
                return inplace[name](left, right)
            visits[number] += 1
            operands = (left, right)
            return invoke(Call(number, inplace[name], operands, {}, operands, f"torch.Tensor.__{name}__"))
        except BaseException as error:
            leave(error)
            raise

    return augment


def _inplace_names() -> list[str]:
    return [n for n in nodes.BINARY.values() if hasattr(operator, f"i{n.rstrip('_')}") and n not in _UNARY]


def _augmented_places(augment: Helper) -> dict[str, Helper]:
    """Items and attributes that are computed with in place, and how their old values are read."""

    def augment_item(number: int, name: str, base: Any, index: Any, old: Any, value: Any, /) -> None:
        try:
            base[index] = augment(number, name, old, value)
        except BaseException as error:
            leave(error)
            raise

    def augment_attribute(number: int, name: str, base: Any, attribute: str, old: Any, value: Any, /) -> None:
        try:
            setattr(base, attribute, augment(number, name, old, value))
        except BaseException as error:
            leave(error)
            raise

    def old_item(base: Any, index: Any, /) -> tuple[Any, Any, Any]:
        try:
            return base, index, base[index]
        except BaseException as error:
            leave(error)
            raise

    def old_attribute(base: Any, attribute: str, /) -> tuple[Any, str, Any]:
        try:
            return base, attribute, getattr(base, attribute)
        except BaseException as error:
            leave(error)
            raise

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
        try:
            if not foreign(type(base)) or isinstance(base, layer):
                base[index] = value
                return
            visits[number] += 1
            operands = (base, index, value)
            invoke(Call(number, operator.setitem, operands, {}, operands, api))
        except BaseException as error:
            leave(error)
            raise

    return setitem


def _set_attribute(recorder: Recorder) -> Helper:
    visits, backend = recorder.visits, recorder.backend

    def set_attribute(number: int, value: Any, base: Any, name: str, /) -> None:
        visits[number] += 1
        try:
            if name == "data" and isinstance(base, backend.tensor):
                recorder.put_in_place(base, value)
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
        except BaseException as error:
            leave(error)
            raise

    return set_attribute


# -- statements --------------------------------------------------------------------------------------------------------


def _decorate(recorder: Recorder) -> Helper:
    visits = recorder.visits

    def decorate(number: int, decorator: Any, /) -> Any:
        visits[number] += 1
        if looks_at_caller(decorator) or recorder.origin(decorator) in (USER, OTHER, CONTAINER):
            return decorator  # Python itself applies it, in the program's own frame

        def apply(target: Any) -> Any:
            try:
                return recorder.decorated(number, decorator, target)
            except BaseException as error:
                leave(error)
                raise

        return apply

    return decorate


def _from_import(recorder: Recorder) -> Helper:
    """One name of a from-import after the other: a name is bound before the next one is looked up."""
    visits = recorder.visits
    loaded: dict[int, Any] = {}

    def from_import(number: int, module: str, names: tuple[str, ...], index: int, /) -> Any:
        try:
            if index == 0:
                visits[number] += 1
                try:
                    loaded[number] = _load(module, names)
                except ImportError:
                    loaded[number] = _Absent([_one_name(recorder, number, module, name) for name in names])
                else:
                    recorder.answered(number, loaded[number])
            source = loaded[number] if index + 1 < len(names) else loaded.pop(number)
            if type(source) is _Absent:
                return source.values[index]
            if names == ("*",):
                _program().f_locals.update(recorder.starred(number, module, source))
                return None
            return _imported_name(recorder, number, source, module, names[index])
        except BaseException as error:
            leave(error)
            raise

    return from_import


def _one_name(recorder: Recorder, number: int, module: str, name: str) -> Any:
    """One of several names of which some are not there, or whose module is not."""
    try:
        loaded = _load(module, (name,))
    except ImportError as error:
        return recorder.absent_import(number, module, (name,), error)[0]
    return _imported_name(recorder, number, loaded, module, name)


class _Absent:
    """What stands in for the names of a module of which some are not there."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def _program() -> types.FrameType:
    """The program's frame that is running."""
    frame = sys._getframe(1)
    while not is_program(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _load(module: str, names: tuple[str, ...] | None) -> Any:
    """What an import statement loads, by the ``__import__`` that the program has."""
    frame = _program()
    return frame.f_builtins["__import__"](module, frame.f_globals, None, names, 0)


def _bound_by(statement: str, loaded: Any) -> Any:
    """What an import statement binds to ``x``, once its module is loaded."""
    space: dict[str, Any] = {"__builtins__": {"__import__": lambda *_: loaded}}
    exec(_compiled(statement), space)
    return space["x"]


@functools.cache
def _compiled(statement: str) -> types.CodeType:
    return compile(statement, UNSEEN, "exec", dont_inherit=True).replace(co_filename=UNSEEN)


def _imported_name(recorder: Recorder, number: int, loaded: Any, module: str, name: str) -> Any:
    """What a from-import binds to a name."""
    try:
        value = _bound_by(f"from {module} import {name} as x", loaded)
    except ImportError as error:
        return recorder.absent_import(number, module, (name,), error)[0]
    return recorder.imported(number, f"{module}.{name}", value, name)


def _import(recorder: Recorder) -> Helper:
    visits = recorder.visits

    def import_(number: int, module: str, aliased: bool, /) -> Any:
        visits[number] += 1
        try:
            try:
                loaded = _load(module, None)
                value = _bound_by(f"import {module} as x", loaded) if aliased else loaded
            except ImportError as error:
                value = recorder.absent_import(number, module, (), error)[0]
                return value if aliased else _load(module.partition(".")[0], None)
            answer = sys.modules.get(module, value)
            recorder.answered(number, answer)
            recorder.imported(number, module, answer, "")
            return value
        except BaseException as error:
            leave(error)
            raise

    return import_


hide(sys.modules[__name__])
