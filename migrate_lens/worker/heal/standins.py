"""Stand-ins for what the target lacks: torch's recorded value in, an object of the same kind out, so a run goes on.

A stand-in answers only what torch's recording answers; left to itself it does nothing: called as a decorator it hands
back what it was given, as a context manager it does nothing, as a base class it is empty.
"""

from __future__ import annotations

import abc
import builtins
import collections
import importlib.abc
import importlib.machinery
import importlib.metadata
import itertools
import sys
import types
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_lens.model.value import (
    ArrayValue,
    ClassValue,
    DeviceValue,
    DictValue,
    DtypeValue,
    Encoded,
    FunctionValue,
    LayerValue,
    LeftOutValue,
    ListValue,
    ModuleValue,
    NamedTupleValue,
    ObjectValue,
    ParameterValue,
    SequenceValue,
    SetValue,
    SizeValue,
    TensorValue,
    TupleValue,
    difference,
    typed,
)
from migrate_lens.worker.backends.building import built_array
from migrate_lens.worker.backends.framework import TargetBackend
from migrate_lens.worker.backends.kinds import ADOPTED

MARK = "__ml_stand_in__"
LOADER = "torch.utils.data.DataLoader"


class StandInMeta(abc.ABCMeta):
    """Class of stand-in classes: unknown class attributes are stand-ins too, and abstract classes may be bases too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Object(f"{cls.__name__}.{name}")

    def __or__(cls, other: Any) -> Any:
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls


class Object(metaclass=StandInMeta):
    """An instance of something that the target does not have."""

    __ml_adopted__ = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and isinstance(args[0], str):
            self.__dict__["_ml_name"] = args[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Object(name)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Any:
        return iter(())

    def __getitem__(self, item: Any) -> Any:
        return self

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (Object,)


def layer_class(base: Any) -> Any:
    """The class of layers that the target does not have.

    Such a layer has torch's parameters, and its calls answer torch's recorded results.
    """

    class Layer(base):  # type: ignore[misc]
        __ml_adopted__ = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__()

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return args[0] if args else None

    return Layer


class Installed(importlib.metadata.Distribution):
    """What the lists of installed packages say of torch.

    Args:
        version: its version.
    """

    def __init__(self, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path: Any) -> Path:
        return Path(path)


class Factory:
    """Makes stand-ins and rebuilds recorded values as the target's objects; one object per missing name.

    Args:
        backend: the target's side of the seam.
        items: what torch's data loaders handed out, by the number of the iteration.
        version: torch's.
        behaving: by their torch names, classes that do what the missing ones promise, so that a program's own run on.
    """

    def __init__(
        self,
        backend: TargetBackend,
        items: Mapping[int, Sequence[Encoded]] = MappingProxyType({}),
        version: str = "0",
        behaving: Mapping[str, type] = MappingProxyType({}),
    ) -> None:
        self._backend = backend
        self._version = version
        self._items = items
        self._behaving = behaving
        self._layer_class = layer_class(backend.module)
        self._bases = {"module": self._layer_class, "exception": Exception, "tensor": backend.tensor}
        self._iterations = itertools.count(1)
        self._classes: dict[str, type] = {}
        self._others: dict[str, Any] = {}
        self._devices: dict[str, Any] = {}
        self._tuples: dict[tuple[str, ...], Any] = {}
        self._elsewhere: dict[int, weakref.ref[Any]] = {}

    def is_stand_in(self, value: Any) -> bool:
        """Whether a value, or the class that it is, stands in for something missing."""
        if isinstance(value, Object) or self.is_elsewhere(value):
            return True
        if isinstance(value, type):
            return MARK in value.__dict__ or value is Object
        return MARK in type(value).__dict__ or isinstance(value, _Module)

    def is_elsewhere(self, value: Any) -> bool:
        """Whether a tensor stands in for one without values, on a device that the target does not have."""
        known = self._elsewhere.get(id(value)) if self._elsewhere else None
        return known is not None and known() is value

    def answers_for(self, base: Any) -> bool:
        """Whether an object is there only since torch has it, so that what it says is no word of the target's."""
        return self.is_stand_in(base) or any(base is device for device in self._devices.values())

    def is_empty(self, func: Any) -> bool:
        """Whether a call would only reach the empty ``forward`` of a layer that stands in, as a base class does."""
        if type(func) is types.MethodType:
            return func.__func__ is self._layer_class.forward
        return isinstance(func, self._layer_class) and type(func).forward is self._layer_class.forward

    def from_stand_in(self, kind: type) -> bool:
        """Whether a program's class has a stand-in among its bases."""
        return any(MARK in base.__dict__ or base is Object for base in kind.__mro__)

    def class_of(self, name: str, kind: str) -> type:
        """The stand-in class for a missing class."""
        if name not in self._classes:
            base = self._behaving.get(name) or self._bases.get(kind, Object)
            self._classes[name] = self._make_class(name, base)
        return self._classes[name]

    def _make_class(self, name: str, base: Any) -> type:
        last = name.rpartition(".")[2]
        space: dict[str, Any] = {MARK: True, ADOPTED: True, "__module__": name.rpartition(".")[0]}
        if name == LOADER:
            space["__iter__"] = lambda _: self._iterate(next(self._iterations))
        kind: Any = type(base)
        try:
            made: type = kind(last, (base,), space)
        except TypeError:  # a class that nothing may be derived from
            return StandInMeta(last, (Object,), {**space})
        return made

    def _iterate(self, number: int) -> Iterator[Any]:
        """The items that torch's loader handed out in the n-th iteration of any."""
        return (self.rebuild(item) for item in self._items.get(number, ()))

    def rebuild(self, want: Encoded, got: Any = None, *, has: bool = False) -> Any:
        """Torch's value as an object of the target's.

        Args:
            want: what torch returned.
            got: what the target returned; kept wherever it agrees.
            has: whether there is a ``got``.
        """
        if has and difference(want, self._backend.encode(got)) is None:
            return got
        match typed(want):
            case TensorValue() as tensor:
                return self._tensor(tensor, got if has else None)
            case ListValue() | TupleValue() | NamedTupleValue() | SetValue() as sequence:
                return self._sequence(sequence, got if has else None)
            case DictValue(pairs=pairs):
                return {key: self.rebuild(value) for key, value in pairs}
            case tuple() as other:
                return self._without_tensors(other)
        return want

    def _without_tensors(self, want: Encoded) -> Any:
        """Torch's value, which holds no tensors of its own, as an object of the target's."""
        match want:
            case ArrayValue():
                return built_array(want)
            case SizeValue(extents=extents):
                return self._size(extents)
            case DtypeValue(name=name):
                return self._dtype(name)
            case DeviceValue(name=name):
                return self._device(name)
            case LayerValue():
                return self._layer(want)
            case LeftOutValue():
                return None
        return self._named_object(want)

    def _named_object(self, want: Encoded) -> Any:
        """What is known by its name alone."""
        match want:
            case ClassValue(name=name, base=base):
                known = getattr(builtins, name, None)
                return known if isinstance(known, type) else self.class_of(name, base)
            case ModuleValue(name=name):
                return self._module(name)
            case ObjectValue(name=name) if name.endswith("Distribution"):
                return Installed(self._version)
            case ObjectValue(name=name):
                kind: Any = self.class_of(name, "")
                return kind.__new__(kind)
            case FunctionValue(name=name):
                return self._other(name)
        raise KeyError(want.tag)

    def _tensor(self, want: TensorValue, got: Any) -> Any:
        # A new tensor, never a write into the target's: that one may be a view of memory that belongs to others.
        new = self._backend.build_tensor(want)
        if want.data is None and self._backend.device_of(want.device) is None:
            self._elsewhere[id(new)] = weakref.ref(new)
        if isinstance(got, self._backend.tensor) and self._backend.differentiable(got):
            return self._backend.grafted(new, got)
        return new

    def _sequence(self, want: SequenceValue, got: Any) -> Any:
        items = want.items
        if isinstance(got, list | tuple) and len(got) == len(items):
            pairs = zip(items, got, strict=True)
            new = [self.rebuild(value, old, has=True) for value, old in pairs]
        else:
            new = [self.rebuild(value) for value in items]
        match want:
            case ListValue():
                return new
            case SetValue():
                return set(new)
            case TupleValue():
                return tuple(new)
            case NamedTupleValue(fields=fields):
                return self._named(fields)(*new)

    def _named(self, fields: tuple[str, ...]) -> Any:
        if fields not in self._tuples:
            plain: Any = collections.namedtuple("Result", fields, rename=True)  # type: ignore[misc]
            self._tuples[fields] = type("Result", (plain,), {"__slots__": (), ADOPTED: True})
        return self._tuples[fields]

    def _size(self, extents: tuple[int, ...]) -> Any:
        try:
            return self._backend.size_of(extents)
        except TypeError:
            return tuple(extents)

    def _dtype(self, name: str) -> Any:
        try:
            return self._backend.dtype_of(name)
        except AttributeError:
            return self._other(f"torch.{name}")

    def _device(self, name: str) -> Any:
        if name not in self._devices:
            device = self._backend.device_of(name)
            self._devices[name] = self._other(f"device {name}") if device is None else device
        return self._devices[name]

    def _module(self, name: str) -> Any:
        if name not in self._others:
            self._others[name] = _Module(name)
        return self._others[name]

    def _other(self, name: str) -> Any:
        if name not in self._others:
            self._others[name] = Object(name)
        return self._others[name]

    def _layer(self, want: LayerValue) -> Any:
        layer: Any = self.class_of(want.name, "module")()
        self.put_state(layer, want.parameters)
        return layer

    def put_state(self, layer: Any, state: Sequence[ParameterValue]) -> None:
        """Give a layer torch's parameters and buffers in place of its own."""
        for parameter in state:
            self._add_tensor(layer, parameter.name, self._backend.build_tensor(parameter.tensor))
        if self._backend.held(layer) and all(parameter.data is None for parameter in state):
            self._elsewhere |= {id(tensor): weakref.ref(tensor) for tensor in self._backend.held(layer)}

    def _add_tensor(self, layer: Any, path: str, tensor: Any) -> None:
        """Put a parameter or buffer where its dotted name says, below layers that are made where there are none."""
        *parents, name = path.split(".")
        for parent in parents:
            child = self._backend.child_of(layer, parent)
            if child is None:
                child = self._layer_class()
                self._backend.add_child(layer, parent, child)
            layer = child
        trained = "float" in str(tensor.dtype) and not name.startswith("running_")
        self._backend.add_tensor(layer, name, tensor, trained=trained)


class _Module(types.ModuleType):
    """A module that the target does not have."""

    __ml_adopted__ = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Object(f"{self.__name__}.{name}")


class _Unbuilt(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for extension modules that could not be built."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(fullname, self) if fullname in self._names else None

    def create_module(self, spec: Any) -> Any:
        return _Module(spec.name)

    def exec_module(self, module: Any) -> None:
        """Nothing to run."""


def import_unbuilt(names: frozenset[str]) -> None:
    """Let extension modules that could not be built be imported as stand-ins, and be found by their folder."""
    finder = _Unbuilt(names)
    sys.meta_path.insert(0, finder)
    by_path, last = importlib.machinery.PathFinder.find_spec, {name.rpartition(".")[2] for name in names}

    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        found = by_path(fullname, path, target)
        if found is not None or path is None or fullname not in last:
            return found
        return importlib.machinery.ModuleSpec(fullname, finder, origin=str(Path(*path[:1], f"{fullname}.so")))

    # A static method, since it is called on the class and on its objects alike.
    importlib.machinery.PathFinder.find_spec = staticmethod(find_spec)  # type: ignore[method-assign]
