"""What travels of a live object: any value of a program in, an encoded value (``migrate_lens.model.value``) out.

This is all that the encoder asks of a framework.
"""

from __future__ import annotations

import types
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from migrate_lens.model.value import (
    ARRAY,
    CLASS,
    DICT,
    FUNCTION,
    LAYER,
    LEFT_OUT,
    LIST,
    MODULE,
    NAMED_TUPLE,
    OBJECT,
    SAMPLE,
    SAMPLE_SIZE,
    SET,
    SLICE,
    TENSOR,
    TUPLE,
    Encoded,
)
from migrate_lens.worker.backends.kinds import Kinds, public_name
from migrate_lens.worker.observe.frames import is_interruption

# Largest tensor, in bytes, whose values are kept whole; of larger ones every stride-th element is kept.
WHOLE = 1 << 22
# The same where shapes and dtypes are all that is recorded.
STRUCTURE = -1
# The same where values are only compared: of more than this, a sample is enough to see that two results differ.
BRIEF = 1 << 14
ITEMS = 64
TEXT = 400
DEPTH = 4

_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


def items_of(value: Any) -> Iterator[Any] | None:
    """What lies in a list, tuple or dict, read past whatever the program's own class does when it is asked."""
    if isinstance(value, dict):
        return iter(dict.values(value))
    if isinstance(value, list):
        return list.__iter__(value)
    return tuple.__iter__(value) if isinstance(value, tuple) else None


class Encoding(Kinds):
    """Encodes values; a framework says how its tensors look, and what else of its own it has to show.

    Attributes:
        whole: bytes up to which values are kept whole.
        keep: what makes data of an array that is kept whole; None makes its bytes.
    """

    def __init__(self, tensor: type, module: type, containers: tuple[Any, ...]) -> None:
        super().__init__(tensor, module, containers)
        self.whole = WHOLE
        self.keep: Callable[[Any], Any] | None = None

    # -- a framework answers -------------------------------------------------------------------------------------

    @abstractmethod
    def look(self, value: Any) -> Encoded:
        """A tensor as ``model.value.TensorValue`` has it; may raise for those that have no shape or values yet."""

    @abstractmethod
    def special(self, value: Any, kind: type) -> Encoded | None:
        """Sizes, dtypes and devices; None for anything else."""

    @abstractmethod
    def differentiable(self, value: Any) -> bool:
        """Whether a tensor takes part in the gradient graph."""

    def state(self, layer: Any) -> list[tuple[str, Any]]:
        """Names and tensors of a layer's ``state_dict`` as the framework orders them."""
        return [(k, v) for k, v in layer.state_dict().items() if isinstance(v, self.tensor)]

    # -- values --------------------------------------------------------------------------------------------------

    def encode(self, value: Any, depth: int = 0) -> Encoded:
        """Encode any value; never runs the program's own code beyond containers."""
        kind = type(value)
        if kind in _PLAIN:
            return value if kind not in (str, bytes) or len(value) <= TEXT else value[:TEXT]
        if isinstance(value, self.tensor):
            return self.encode_tensor(value)
        if kind is list or isinstance(value, tuple):
            return self._sequence(value, kind, depth)
        special = self.special(value, kind)
        if special is not None:
            return special
        return self._other(value, kind, depth)

    def encode_tensor(self, value: Any) -> Encoded:
        """A tensor, or an opaque object where the framework refuses to be asked (an uninitialised parameter)."""
        try:
            return self.look(value)
        except Exception as error:  # the worker's edge: a tensor that cannot be described must not end the program
            if self.own(type(value)) and is_interruption(error):
                raise
            return (OBJECT, "torch.Tensor")

    def _sequence(self, value: Any, kind: type, depth: int) -> Encoded:
        special = self.special(value, kind) if kind not in (list, tuple) else None
        if special is not None:
            return special
        items = self._items(value, depth)
        if kind is list:
            return (LIST, items)
        fields = None if kind is tuple else self._fields(value, kind)
        if fields is None:
            return (TUPLE, items)
        return (NAMED_TUPLE, kind.__name__, tuple(map(str, fields)), items)

    def _fields(self, value: Any, kind: type) -> tuple[str, ...] | None:
        """Names of a tuple's items, where it has names for them."""
        fields: tuple[str, ...] | None = getattr(kind, "_fields", None)
        if fields is None and self.own(kind):
            return _struct_fields(kind)
        return fields

    def _items(self, values: Iterable[Any], depth: int) -> list[Encoded]:
        if depth >= DEPTH:
            return [(LEFT_OUT, "nested")]
        items = []
        for index, item in enumerate(items_of(values) or ()):
            if index == ITEMS:
                items.append((LEFT_OUT, "items"))
                break
            items.append(self.encode(item, depth + 1))
        return items

    def _other(self, value: Any, kind: type, depth: int) -> Encoded:
        if self._is_dict(value, kind):
            return (DICT, self._pairs(value, depth))
        if kind is slice:
            return (SLICE, [self.encode(v) for v in (value.start, value.stop, value.step)])
        if kind is set or kind is frozenset:
            plain = [v for v in value if type(v) in _PLAIN]
            return (SET, sorted(plain, key=repr)[:ITEMS])
        if isinstance(value, np.ndarray):
            return (ARRAY, str(value.dtype), value.shape, self.data_of(value))
        if isinstance(value, np.generic):
            return (ARRAY, str(value.dtype), (), self.data_of(np.asarray(value)))
        if isinstance(value, str):
            return str(value)[:TEXT]
        return self._by_name(value, kind)

    def _is_dict(self, value: Any, kind: type) -> bool:
        """Whether a value is a dict, and no program's subclass, which may do anything when it is asked."""
        if kind is dict or kind.__name__ == "OrderedDict":
            return True
        return isinstance(value, dict) and self.own(kind)

    def _pairs(self, value: dict[Any, Any], depth: int) -> list[tuple[Encoded, Encoded]]:
        if depth >= DEPTH:
            return []
        pairs = list(dict.items(value))[:ITEMS]
        return [(self._key(k), self.encode(v, depth + 1)) for k, v in pairs]

    def _key(self, key: Any) -> Encoded:
        return key if type(key) in _PLAIN else repr(key)[:80]

    def _by_name(self, value: Any, kind: type) -> Encoded:
        """What has no value to compare: what it is, and what it is called."""
        if isinstance(value, type):
            return (CLASS, public_name(value), self._class_kind(value))
        if isinstance(value, types.ModuleType):
            return (MODULE, value.__name__)
        if isinstance(value, self.module):
            return (LAYER, self.type_name(kind), None)
        if callable(value) and not self.foreign(kind):
            return (FUNCTION, public_name(value))
        return (OBJECT, public_name(kind))

    def _class_kind(self, value: type) -> str:
        if issubclass(value, self.module):
            return "module"
        if issubclass(value, BaseException):
            return "exception"
        return "tensor" if issubclass(value, self.tensor) else ""

    def data_of(self, values: Any) -> Any:
        """Data of a numpy array in C order, a sample of a large one, None for objects."""
        if values.dtype.kind not in "biufc" or self.whole == STRUCTURE:
            return None
        if values.nbytes <= self.whole:
            return self.keep(values) if self.keep is not None else values.tobytes()
        stride = max(1, values.size // SAMPLE_SIZE)
        return (SAMPLE, stride, values.reshape(-1)[::stride].tobytes())

    def in_full(self, encode: Callable[[Any], Encoded], value: Any) -> Encoded:
        """Encode with all values, whatever the level of this run: they will be handed over."""
        outer = self.whole
        if outer != STRUCTURE:
            self.whole = max(outer, WHOLE)
        try:
            return encode(value)
        finally:
            self.whole = outer

    def without_values(self, value: Any) -> Encoded:
        """A tensor with its shape and dtype, and without data."""
        outer = self.whole
        self.whole = STRUCTURE
        try:
            return self.encode_tensor(value)
        finally:
            self.whole = outer

    def encode_state(self, layer: Any) -> Encoded:
        """A layer with its parameters and buffers, as ``model.value.LayerValue`` has it."""
        state = []
        for name, value in self.state(layer):
            encoded = self.in_full(self.encode_tensor, value)
            if encoded[0] == TENSOR:
                _, dtype, shape, data, *_ = encoded
                state.append((name, dtype, shape, data))
        return (LAYER, self.type_name(type(layer)), state)


def _struct_fields(kind: type) -> tuple[str, ...] | None:
    """Field names of a C structure sequence (``torch.return_types.max``)."""
    count: int | None = getattr(kind, "n_sequence_fields", None)
    if count is None:
        return None
    members = (types.MemberDescriptorType, types.GetSetDescriptorType)
    names = [name for name, value in vars(kind).items() if isinstance(value, members)]
    return tuple(name for name in names if not name.startswith("_"))[:count]
