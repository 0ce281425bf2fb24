"""What a callable is and what it is called: live objects in, whose they are and their documented torch names out."""

from __future__ import annotations

import functools
import types
from typing import Any

from migrate_lens.protocol import places
from migrate_lens.worker.backends.kinds import Kinds, owner_of, public_name
from migrate_lens.worker.observe import frames
from migrate_lens.worker.observe.nodes import Node

USER, FRAMEWORK, OTHER, CONTAINER = 0, 1, 2, 3
# Python's operator names as torch documents them on Tensor.
DOCUMENTED = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and_": "__and__", "or_": "__or__",
    "xor": "__xor__", "lshift": "__lshift__", "rshift": "__rshift__", "invert": "__invert__", "pos": "positive",
    "getitem": "__getitem__", "setitem": "__setitem__",
}  # fmt: skip
_FUNCTION = types.FunctionType
_BOUND = types.MethodType
_BUILTIN = types.BuiltinMethodType
_WRAPPERS = frozenset(("contextlib", "functools"))
_MADE_BY = {"torch._library.custom_ops.CustomOpDef": "torch.library.custom_op"}
_OPERATORS = "torch._ops."  # where the classes of registered operators are
_RECORDS = "pybind11_builtins"  # what functions that pybind11 makes are bound to, which says nothing of whose they are
_CACHED = type(functools.lru_cache(lambda: None))


class Naming:
    """Tells the program's own callables from the framework's, and names the latter as torch documents them.

    Args:
        backend: the framework's side of the seam.

    Attributes:
        nodes: the observed places, by number; number 0 is none.
    """

    def __init__(self, backend: Kinds) -> None:
        self.backend = backend
        self.nodes: list[Node | None] = [None]
        self._origins: dict[Any, int] = {}
        self._names: dict[tuple[int, Any], str] = {}

    def adopt_module(self, name: str) -> None:
        """Know the functions of a module as the program's own."""
        frames.adopt(name)
        self._origins[name] = USER

    # -- what a callable is --------------------------------------------------------------------------------------

    def origin(self, func: Any) -> int:
        """Whether a callable is the program's own, the framework's, a container layer, or anything else."""
        kind = type(func)
        if kind is _BUILTIN and isinstance(func.__self__, self.backend.tensor):
            return FRAMEWORK
        if kind is _BOUND:
            func = func.__func__
            kind = type(func)
        if kind is _FUNCTION:
            name = func.__globals__.get("__name__")
            # ``@contextmanager`` in the framework is the framework's
            return self._of_module(func.__module__ if name in _WRAPPERS else name)
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
            # As it stands in the class: a descriptor of a scripted layer's answers for objects alone.
            forward = next(vars(base)["forward"] for base in kind.__mro__ if "forward" in vars(base))
            known = CONTAINER if forward in self.backend.containers else FRAMEWORK
            if self._rewritten(forward):
                known = USER
            self._origins[kind] = known
        return known

    def _of_class(self, kind: type) -> int:
        if self.backend.own(kind) or self._is_made_by_framework(kind):
            return FRAMEWORK
        makers = (getattr(kind, "__init__", None), getattr(kind, "__new__", None))
        if self.backend.foreign(kind) or any(map(self._rewritten, makers)):
            return USER
        # A named tuple's own methods are made elsewhere; its module says whose it is.
        return USER if self._of_module(kind.__module__) == USER else OTHER

    def _rewritten(self, func: Any) -> bool:
        """Whether a function is the program's own."""
        return type(func) is _FUNCTION and self._of_module(func.__globals__.get("__name__")) == USER

    def makes_layer(self, func: Any) -> bool:
        """Whether a call is ``super().__init__(...)`` in a program's class that extends a layer of the framework's."""
        if type(func) is not _BOUND or func.__name__ != "__init__":
            return False
        return isinstance(func.__self__, self.backend.module) and self.backend.extends(type(func.__self__))

    def _is_made_by_framework(self, kind: type) -> bool:
        """Whether a program's class leaves the making of its layers to the framework's layer that it extends."""
        if not self.backend.extends(kind):
            return False
        own = (base for base in kind.__mro__ if not self.backend.own(base))
        return not any("__init__" in vars(base) or "__new__" in vars(base) for base in own if base is not object)

    def _of_builtin(self, func: Any, kind: type) -> int:
        if kind is functools.partial:
            return self.origin(func.func)
        if kind is _CACHED:
            return self.origin(func.__wrapped__)
        if self._rewritten(getattr(kind, "__call__", None)):  # noqa: B004 - whose the method is, not whether there is one
            return USER
        owner = owner_of(func)
        if owner is not None and not isinstance(owner, types.ModuleType) and type(owner).__module__ != _RECORDS:
            owner_kind = owner if isinstance(owner, type) else type(owner)
            return FRAMEWORK if self.backend.foreign(owner_kind) else OTHER
        if self.backend.foreign(kind):
            return FRAMEWORK
        return self._of_module(getattr(func, "__module__", None))

    def concerns(self, values: Any) -> bool:
        """Whether any of the values, or of the items of short lists of them, is the framework's."""
        foreign, proxy = self.backend.foreign, self.backend.proxy
        for value in values:
            kind = type(value)
            if foreign(kind) or (kind is type and foreign(value)):
                return True
            if (kind is list or kind is tuple) and value and foreign(type(value[0])):
                return True
            if kind is types.ModuleType or (kind.__name__ == proxy and isinstance(value, types.ModuleType)):
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
                return f"{self._as_torch(public_name(owner))}.{attribute}"
        name = self.backend.type_name(kind)
        if not attribute.startswith("_") and name.startswith(_OPERATORS):
            name = operator_path(base)
        elif not name.startswith(_OPERATORS):
            name = self._as_torch(name)
        return f"{name}.{attribute}"  # what torch keeps to itself about an operator is no name of the registry's

    def function_name(self, number: int, func: Any, args: tuple[Any, ...]) -> str:
        """The documented name of what is called."""
        while isinstance(func, functools.partial):
            func = func.func
        node = self.nodes[number]
        if isinstance(func, self.backend.module):
            return self._type_as_torch(type(func))
        if type(func).__module__ == _OPERATORS.rstrip("."):
            return operator_path(func)
        if node is not None and "." in node.name and node.kind != places.METHOD:
            return node.name
        if isinstance(func, type):
            return self._observer_name(func, args) or self._type_as_torch(func)
        return self._observer_name(func, args) or self._as_torch(public_name(func))

    def _observer_name(self, func: Any, args: tuple[Any, ...]) -> str:
        """Builtins that look at the framework's object are named by what they look at."""
        module = getattr(func, "__module__", None)
        if module not in ("builtins", "_operator") or not args:
            return ""
        name = func.__name__
        if module == "_operator":
            return self._operator_name(name, args)
        if name in ("hasattr", "getattr") and len(args) > 1:
            return self._looked_up(args[0], str(args[1]))
        return self._looked_at(name, args[0])

    def _looked_at(self, name: str, first: Any) -> str:
        if isinstance(first, self.backend.tensor):
            return "torch.Tensor" if name in ("isinstance", "issubclass") else f"torch.Tensor.__{name}__"
        kind = first if isinstance(first, type) else type(first)
        if not self.backend.foreign(kind):
            return f"builtins.{name}"
        owner = self._type_as_torch(kind)
        return owner if name in ("isinstance", "issubclass", "hash") else f"{owner}.__{name}__"

    def _operator_name(self, name: str, args: tuple[Any, ...]) -> str:
        """``operator.add`` of a tensor is what ``+`` is."""
        known = hasattr(self.backend.tensor, f"__{name.strip('_')}__")
        tensors = any(isinstance(a, self.backend.tensor) for a in args[:2])
        return f"torch.Tensor.{DOCUMENTED.get(name, name)}" if known and tensors else ""

    def _looked_up(self, base: Any, attribute: str) -> str:
        if type(base).__name__ in self.backend.registries:
            return "torch.ops"
        if isinstance(base, types.ModuleType):
            return f"{self._as_torch(base.__name__)}.{attribute}"
        kind = base if isinstance(base, type) else type(base)
        owner = "torch.Tensor" if issubclass(kind, self.backend.tensor) else self._type_as_torch(kind)
        return owner if owner == "torch.ops" else f"{owner}.{attribute}"

    def _type_as_torch(self, kind: type) -> str:
        return self._as_torch(self.backend.type_name(kind))

    def _as_torch(self, name: str) -> str:
        """A public name as torch's users know it; the torch side's own name wins where the two are aligned."""
        return "torch.ops" if name.startswith(_OPERATORS) else _MADE_BY.get(name) or self.backend.as_torch(name)


def operator_path(value: Any) -> str:
    """Where torch has an operator, an overload of it, or a namespace of them: ``torch.ops.aten.add.Tensor``."""
    name = vars(value).get("_name") or vars(value).get("_qualified_op_name") or vars(value).get("name") or ""
    return f"torch.ops.{name.replace('::', '.')}" if isinstance(name, str) and name else "torch.ops"


def exported(module: Any) -> list[str]:
    """Names that a star import of a module binds."""
    names = getattr(module, "__all__", None)
    return list(names) if names is not None else [n for n in dir(module) if not n.startswith("_")]
