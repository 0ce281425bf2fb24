"""Whose an object is and what it is called: live objects of one framework in; yes, no and public names out.

This is all that naming asks of a framework.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from abc import ABC
from typing import Any, ClassVar

_FRAMES = frozenset(("currentframe", "_getframe", "getouterframes", "stack"))
_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_forward_post_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
ADOPTED = "__ml_adopted__"  # in the namespace of a class that counts as the framework's own


class Kinds(ABC):
    """Tells a framework's own classes and objects from all others, and names them.

    Args:
        tensor: the framework's tensor class.
        module: the framework's layer base class.
        containers: the ``forward`` of each class of layers that only calls the layers in it, one after the other.

    Attributes:
        name: of the framework, as ``backends.load`` knows it.
        tops: top-level modules that are the framework.
        proxy: the class of the module that answers ``import torch`` in the framework's place; empty where torch itself
            does.
        registries: classes of the objects behind ``torch.ops``.
    """

    name: ClassVar[str]
    tops: ClassVar[frozenset[str]]
    proxy: ClassVar[str] = ""
    registries: ClassVar[frozenset[str]] = frozenset(("_OpNamespace", "_Ops"))

    def __init__(self, tensor: type, module: type, containers: tuple[Any, ...]) -> None:
        self.tensor = tensor
        self.module = module
        self._entry = module.__call__  # before a program may put another in its place
        self.containers = containers
        self._names: dict[type, str] = {}
        self._foreign: dict[type, bool] = {}
        self._extends: dict[type, bool] = {}

    def opaque(self, container: Any) -> bool:
        """Whether something sees the call of a container layer itself: hooks of its own or of all layers, another
        ``forward`` on the object or its class, another way to be called."""
        kind = type(container)
        if "forward" in vars(container) or kind.__call__ is not self._entry:
            return True
        return any(getattr(container, hook, None) for hook in _HOOKS) or kind.forward not in self.containers

    def captured(self) -> bool:
        """Whether the framework makes a graph of what runs now, in which what the recorder does would be found."""
        return False

    def foreign(self, kind: type) -> bool:
        """Whether a type belongs to the framework."""
        known = self._foreign.get(kind)
        if known is None:
            known = any(map(self.own, kind.__mro__[:-1]))
            self._foreign[kind] = known
        return known

    def own(self, kind: type) -> bool:
        """Whether a class is the framework's own, or stands in for one that it lacks, and is no program's subclass."""
        if (getattr(kind, "__module__", None) or "").partition(".")[0] in self.tops:
            return True
        return isinstance(kind, type) and ADOPTED in vars(kind)

    def extends(self, kind: type) -> bool:
        """Whether a class is a program's that is made from one of the framework's layers, not from their base alone."""
        known = self._extends.get(kind)
        if known is None:
            known = not self.own(kind) and issubclass(kind, self.module) and self._nearest(kind) is not self.module
            self._extends[kind] = known
        return known

    def defines(self, kind: type, name: str) -> bool:
        """Whether a class of the program's gives its objects a name."""
        return any(name in vars(base) for base in kind.__mro__ if not self.own(base))

    def type_name(self, kind: type) -> str:
        """The public name of the nearest class that is the framework's own."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = public_name(self._nearest(kind))
        return name

    def _nearest(self, kind: type) -> type:
        """A class made on the fly (the context of an autograd.Function) is documented by the base that can be named."""
        own = [base for base in kind.__mro__ if self.own(base)]
        if not own:
            return kind
        named = [base for base in own if _reachable(base)]
        if not named:
            return own[-1]
        return named[0] if named[0] is own[0] else named[-1]

    def as_torch(self, name: str) -> str:
        """A public name of the framework's as torch's users know it."""
        return name

    def is_proxy(self, module: types.ModuleType) -> bool:
        """Whether a module stands for one of torch's."""
        return False

    def proxied(self, api: str, func: Any) -> bool:
        """Whether the proxy, where there is one, handed out another object than the framework itself has."""
        return False

    def registered_class(self, value: Any) -> str:
        """The name under ``torch.classes`` of an object of a class that a library registers; empty for all else."""
        return ""


def public_name(value: Any) -> str:
    """The shortest dotted name by which the modules that are loaded hand out this very object."""
    module = _said(value, "__module__")
    name = _said(value, "__qualname__") or _said(value, "__name__") or type(value).__name__
    if not module:
        return _of_owner(value, name.rpartition(".")[2])
    if type(value) is types.BuiltinFunctionType:
        return _builtins(module.partition(".")[0]).get(id(value)) or _shorten(module, name, value)
    return _shorten(module, name, value)


def _said(value: Any, attribute: str) -> str | None:
    """What an object says of itself; one that makes up its attributes is not asked, it would answer anything."""
    if isinstance(value, type) or not hasattr(type(value), "__getattr__"):
        said = getattr(value, attribute, None)
    else:
        said = inspect.getattr_static(value, attribute, None)
    return said if isinstance(said, str) else None


def owner_of(func: Any) -> Any:
    """The object that a callable is bound to; one that makes up its attributes is not asked, it might refuse."""
    return None if hasattr(type(func), "__getattr__") else getattr(func, "__self__", None)


def looks_at_caller(func: Any) -> bool:
    """Whether a function asks which frame called it, so that none of ours may stand between."""
    code = None if hasattr(type(func), "__getattr__") else getattr(func, "__code__", None)
    return isinstance(code, types.CodeType) and not _FRAMES.isdisjoint(code.co_names)


def _of_owner(value: Any, name: str) -> str:
    """A method of a C class is named by the object that it is bound to."""
    owner = owner_of(value)
    if owner is None:
        return name
    if not isinstance(owner, type | types.ModuleType):
        return f"{public_name(type(owner))}.{name}"
    return _shorten(getattr(owner, "__module__", None) or type(owner).__module__, name, value)


@functools.cache
def _builtins(top: str) -> dict[int, str]:
    """Names by which a package's public modules hand out functions written in C: these say where they are made."""
    names: dict[int, str] = {}
    for module_name in _public_modules(top):
        module = sys.modules[module_name]
        if not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if type(value) is types.BuiltinFunctionType and not key.startswith("_"):
                names.setdefault(id(value), f"{module_name}.{key}")
    return names


def _public_modules(top: str) -> list[str]:
    """Loaded modules of a package without a private part in their names, those with the shortest names first."""
    loaded = [name.split(".") for name in sys.modules if name.partition(".")[0] == top]
    public = [".".join(parts) for parts in loaded if not any(part.startswith("_") for part in parts)]
    return sorted(public, key=lambda name: (name.count("."), name))


def _reachable(kind: type) -> bool:
    """Whether a class can be got by its public name."""
    private = kind.__name__.startswith("_")
    return not private and getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind


def _shorten(module: str, name: str, value: Any) -> str:
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        prefix = ".".join(parts[:length])
        loaded = sys.modules.get(prefix)
        if loaded is not None and getattr(loaded, name, None) is value:
            return f"{prefix}.{name}"
    return f"{module}.{name}" if module != "builtins" else name
