"""Stand-ins for what Paddle lacks: torch's recorded value in, an object of the same kind out, so that a run goes on.

A stand-in answers only what torch's recording answers; left to itself it does nothing: called as a decorator it hands
back what it was given, as a context manager it does nothing, as a base class it is empty.
"""

from __future__ import annotations

import builtins
import collections
import importlib.abc
import importlib.machinery
import itertools
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import paddle

from migrate_lens.model.value import SEQUENCES, Encoded, difference, tag
from migrate_lens.worker.backends.paddle.backend import _SIZE, PaddleBackend

MARK = "__ml_stand_in__"
LOADER = "torch.utils.data.DataLoader"


class StandInMeta(type):
    """Class of stand-in classes: unknown class attributes are stand-ins too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Object(f"{cls.__name__}.{name}")

    def __or__(cls, other: Any) -> Any:
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls


class Object(metaclass=StandInMeta):
    """An instance of something that Paddle does not have."""

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


class Layer(paddle.nn.Layer):  # type: ignore[misc]
    """A layer that Paddle does not have, with torch's parameters; its calls answer torch's recorded results."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args else None


class Factory:
    """Makes stand-ins and rebuilds recorded values as Paddle's objects; one object per missing name.

    Args:
        backend: Paddle's side of the seam.
        items: what torch's data loaders handed out, by the number of the iteration.
    """

    def __init__(self, backend: PaddleBackend, items: Mapping[int, Sequence[Encoded]] = MappingProxyType({})) -> None:
        self._backend = backend
        self._items = items
        self._iterations = itertools.count(1)
        self._classes: dict[str, type] = {}
        self._others: dict[str, Any] = {}
        self._tuples: dict[tuple[str, ...], Any] = {}

    def is_stand_in(self, value: Any) -> bool:
        """Whether a value, or the class that it is, stands in for something missing."""
        if isinstance(value, Object):
            return True
        if isinstance(value, type):
            return MARK in value.__dict__ or value is Object
        return MARK in type(value).__dict__ or isinstance(value, _Module)

    def is_empty(self, func: Any) -> bool:
        """Whether a call would only reach the empty ``forward`` of a layer that stands in, as a base class does."""
        if type(func) is types.MethodType:
            return func.__func__ is Layer.forward
        return isinstance(func, Layer) and type(func).forward is Layer.forward

    def from_stand_in(self, kind: type) -> bool:
        """Whether a program's class has a stand-in among its bases."""
        return any(MARK in base.__dict__ or base is Object for base in kind.__mro__)

    def class_of(self, name: str, kind: str) -> type:
        """The stand-in class for a missing class."""
        known = self._classes.get(name)
        if known is None:
            base = {"module": Layer, "exception": Exception, "tensor": paddle.Tensor}.get(kind, Object)
            meta: Any = type(base)
            try:
                space = {MARK: True, "__module__": name.rpartition(".")[0]}
                if name == LOADER:
                    space["__iter__"] = lambda _: self._iterate(next(self._iterations))
                known = meta(name.rpartition(".")[2], (base,), space)
            except TypeError:
                known = StandInMeta(name.rpartition(".")[2], (Object,), {MARK: True})
            self._classes[name] = known
        return known

    def _iterate(self, number: int) -> Iterator[Any]:
        """The items that torch's loader handed out in the n-th iteration of any."""
        return (self.rebuild(item) for item in self._items.get(number, ()))

    def rebuild(self, want: Encoded, got: Any = None, *, has: bool = False) -> Any:
        """Torch's value as a Paddle object.

        Args:
            want: what torch returned.
            got: what Paddle returned; kept wherever it agrees.
            has: whether there is a ``got``.
        """
        if has and difference(want, self._backend.encode(got)) is None:
            return got
        kind = tag(want)
        if kind == "T":
            return self._tensor(want, got if has else None)
        if kind and kind in SEQUENCES:
            return self._sequence(want, kind, got if has else None)
        if not kind:
            return want
        return _REBUILD[kind](self, want)

    def _tensor(self, want: Encoded, got: Any) -> Any:
        # A new tensor, never a write into Paddle's: that one may be a view of memory that belongs to others.
        new = self._backend.build_tensor(want)
        if isinstance(got, self._backend.tensor) and self._backend.differentiable(got):
            return self._backend.grafted(new, got)
        return new

    def _sequence(self, want: Encoded, kind: str, got: Any) -> Any:
        items = want[-1]
        old = list(got) if isinstance(got, list | tuple) and len(got) == len(items) else None
        new = [self.rebuild(w, old[i] if old else None, has=old is not None) for i, w in enumerate(items)]
        if kind == "L":
            return new
        if kind == "s":
            return set(new)
        return tuple(new) if kind == "t" else self._named(want[2])(*new)

    def _named(self, fields: tuple[str, ...]) -> Any:
        if fields not in self._tuples:
            self._tuples[fields] = collections.namedtuple("Result", fields, rename=True)
        return self._tuples[fields]

    def _array(self, want: Encoded) -> Any:
        _, dtype, shape, data = want
        if not isinstance(data, bytes):
            return np.zeros(shape, dtype)
        array = np.frombuffer(data, dtype).reshape(shape).copy()
        return array if shape else array[()]

    def _size(self, want: Encoded) -> Any:
        try:
            return _SIZE(want[1])
        except TypeError:
            return tuple(want[1])

    def _dtype(self, want: Encoded) -> Any:
        return getattr(paddle, want[1], None) or self._other(f"torch.{want[1]}")

    def _device(self, want: Encoded) -> Any:
        return paddle.CPUPlace() if want[1] == "cpu" else self._other(f"device {want[1]}")

    def _dict(self, want: Encoded) -> Any:
        return {k: self.rebuild(v) for k, v in want[1]}

    def _class(self, want: Encoded) -> Any:
        builtin = getattr(builtins, want[1], None)
        return builtin if isinstance(builtin, type) else self.class_of(want[1], want[2])

    def _module(self, want: Encoded) -> Any:
        if want[1] not in self._others:
            self._others[want[1]] = _Module(want[1])
        return self._others[want[1]]

    def _object(self, want: Encoded) -> Any:
        kind: Any = self.class_of(want[1], "")
        return kind.__new__(kind)

    def _other(self, name: str) -> Any:
        if name not in self._others:
            self._others[name] = Object(name)
        return self._others[name]

    def _layer(self, want: Encoded) -> Any:
        layer = self.class_of(want[1], "module")()
        for name, dtype, shape, data in want[2] or ():
            self._parameter(layer, name, self._backend.build_tensor(("T", dtype, shape, data, "cpu", False)))
        return layer

    def _parameter(self, layer: Any, path: str, tensor: Any) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            if parent not in layer._sub_layers:
                layer.add_sublayer(parent, Layer())
            layer = layer._sub_layers[parent]
        if "float" in str(tensor.dtype) and not name.startswith("running_"):
            layer.add_parameter(name, paddle.nn.Parameter(tensor))
        else:
            layer.register_buffer(name, tensor)


class _Module(types.ModuleType):
    """A module that Paddle does not have."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Object(f"{self.__name__}.{name}")


_REBUILD: dict[str, Any] = {
    "N": Factory._array, "Z": Factory._size, "D": Factory._dtype, "V": Factory._device, "d": Factory._dict,
    "C": Factory._class, "M": Factory._module, "K": Factory._layer, "O": Factory._object,
    "F": lambda self, want: self._other(want[1]), "+": lambda self, want: None,
}  # fmt: skip


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
    """Let extension modules that could not be built be imported as stand-ins."""
    sys.meta_path.insert(0, _Unbuilt(names))
