"""The whole seam between a framework and us: what each side must answer about its own objects.

In: live objects of one framework. Out: encoded values (see ``migrate_lens.model.value``) and public names.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from migrate_lens.model.value import Encoded

# Largest tensor, in bytes, whose values are kept whole; of larger ones every stride-th element is kept.
WHOLE = 1 << 22
# The same where shapes and dtypes are all that is recorded.
STRUCTURE = -1
# The same where values are only compared: of more than this, a sample is enough to see that two results differ.
BRIEF = 1 << 14
SAMPLE = 1 << 12
ITEMS = 64
TEXT = 400
DEPTH = 4
# The public entry points whose result may depend on the random generator (torch docs, "Random sampling", "In-place
# random sampling", torch.nn.init, dropout and attention layers). Only for these is the generator's state looked at.
MAY_DRAW = re.compile(
    r"rand|normal|uniform|bernoulli|multinomial|poisson|dropout|cauchy|geometric|exponential|sample|gumbel|rrelu|"
    r"lowrank|attention|transformer|lstm|gru|rnn|perm|shuffle|init|xavier|kaiming|orthogonal|sparse_|fractional",
    re.IGNORECASE,
)
# Functions that write running statistics into their arguments without counting it as a write.
WRITES_UNSEEN = frozenset(["batch_norm", "instance_norm", "native_batch_norm"])
# Uninitialised memory: shape and dtype are all that these promise.
UNINITIALISED = frozenset(
    ["empty", "empty_like", "new_empty", "empty_strided", "empty_permuted", "resize_", "resize_as_", "new"]
)


class Backend:
    """What both sides share; a side fills in the abstract parts.

    Attributes:
        name: ``torch`` or ``paddle``.
        tops: top-level modules that are the framework.
        whole: bytes up to which values are kept whole.
        keep: what makes data of an array that is kept whole; None makes its bytes.
        tensor: the framework's tensor class.
        module: the framework's layer base class.
    """

    name: ClassVar[str]
    tops: ClassVar[frozenset[str]]

    def __init__(self, tensor: type, module: type, containers: tuple[Any, ...]) -> None:
        self.tensor = tensor
        self.module = module
        self.containers = containers
        self.whole = WHOLE
        self.keep: Callable[[Any], Any] | None = None
        self._names: dict[type, str] = {}
        self._foreign: dict[type, bool] = {}

    # -- each side answers ---------------------------------------------------------------------------------------

    def look(self, value: Any) -> Encoded:
        """``("T", dtype, shape, data, device, requires_grad)``; may raise for tensors that have none of these yet."""
        raise NotImplementedError

    def encode_tensor(self, value: Any) -> Encoded:
        """A tensor, or an opaque object where the framework refuses to be asked (an uninitialised parameter)."""
        try:
            return self.look(value)
        except Exception:  # noqa: BLE001 - the worker's edge: a tensor that cannot be described must not end the program
            return ("O", "torch.Tensor")

    def build_tensor(self, encoded: Encoded) -> Any:
        """A new tensor with a recorded shape, dtype and values; zeros where the values were not kept."""
        raise NotImplementedError

    def fill(self, tensor: Any, dtype: str, shape: tuple[int, ...], data: Any) -> bool:
        """Write recorded values into a tensor of the same shape and dtype, in place, outside the graph."""
        raise NotImplementedError

    def dtype_of(self, name: str) -> Any:
        """The framework's own dtype."""
        raise NotImplementedError

    def version(self, value: Any) -> int:
        """How many times a tensor was written in place."""
        raise NotImplementedError

    def versions(self, values: list[Any]) -> list[int]:
        """``version`` of each."""
        return [self.version(v) for v in values]

    def may_view(self, value: Any) -> bool:
        """Whether a result could lie in memory that it does not own."""
        return True

    def special(self, value: Any, kind: type) -> Encoded | None:
        """Sizes, dtypes and devices; None for anything else."""
        raise NotImplementedError

    def random_state(self) -> bytes:
        """The state of the default generator."""
        raise NotImplementedError

    def proxied(self, api: str, func: Any) -> bool:
        """Whether the proxy handed out another object than Paddle's compat package has under this name."""
        return False

    def registered_class(self, value: Any) -> str:
        """The name under ``torch.classes`` of an object of a class that a library registers; empty for all else."""
        return ""

    def differentiable(self, value: Any) -> bool:
        """Whether a tensor takes part in the gradient graph."""
        raise NotImplementedError

    def is_leaf(self, value: Any) -> bool:
        """Whether a tensor requires a gradient of its own."""
        return self.differentiable(value) and bool(value.is_leaf)

    def can_differentiate(self, value: Any) -> bool:
        """Whether a tensor's elements are floating-point or complex numbers."""
        raise NotImplementedError

    def leaf_of(self, value: Any) -> Any:
        """A copy of a tensor that requires a gradient."""
        raise NotImplementedError

    def held(self, layer: Any) -> Iterable[Any]:
        """Parameters and buffers of a layer and of the layers in it."""
        raise NotImplementedError

    def extent(self, value: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's elements; None where it has no memory of its own kind."""
        raise NotImplementedError

    def overlaps(self, value: Any, others: list[Any]) -> bool:
        """Whether a tensor or array lies in the memory of one of the others."""
        mine = self._memory(value) if others else None
        if mine is None:
            return False
        spans = (self._memory(o) for o in others)
        return any(s is not None and s[0] <= mine[0] < s[0] + s[1] for s in spans)

    def _memory(self, value: Any) -> tuple[int, int] | None:
        if isinstance(value, np.ndarray):
            return (value.__array_interface__["data"][0], max(1, value.nbytes))
        return self.extent(value) if isinstance(value, self.tensor) else None

    # -- names ---------------------------------------------------------------------------------------------------

    def foreign(self, kind: type) -> bool:
        """Whether a type belongs to the framework."""
        known = self._foreign.get(kind)
        if known is None:
            known = any((base.__module__ or "").partition(".")[0] in self.tops for base in kind.__mro__[:-1])
            self._foreign[kind] = known
        return known

    def own(self, kind: type) -> bool:
        """Whether a class is the framework's own, not a program's subclass."""
        return (getattr(kind, "__module__", None) or "").partition(".")[0] in self.tops

    def type_name(self, kind: type) -> str:
        """The documented name of the nearest class that is the framework's own."""
        name = self._names.get(kind)
        if name is None:
            own = [base for base in kind.__mro__ if self.own(base)]
            # A class made on the fly (the context of an autograd.Function) is documented by the base that can be named.
            named = [base for base in own if _reachable(base)]
            chosen = named[0] if own and named and named[0] is own[0] else (named or own or [kind])[-1]
            name = self._names[kind] = public_name(chosen)
        return name

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
        found = self.special(value, kind)
        if found is not None:
            return found
        return self._other(value, kind, depth)

    def _sequence(self, value: Any, kind: type, depth: int) -> Encoded:
        special = self.special(value, kind) if kind not in (list, tuple) else None
        if special is not None:
            return special
        items = self._items(value, depth)
        fields = getattr(value, "_fields", None)
        if fields is None and kind is not tuple and kind is not list and self.own(kind):
            fields = _struct_fields(kind)
        if fields is not None and kind is not list:
            return ("n", kind.__name__, tuple(map(str, fields)), items)
        return ("L" if kind is list else "t", items)

    def _items(self, values: Iterable[Any], depth: int) -> list[Encoded]:
        if depth >= DEPTH:
            return [("+", "nested")]
        items = []
        for index, item in enumerate(values):
            if index == ITEMS:
                items.append(("+", "items"))
                break
            items.append(self.encode(item, depth + 1))
        return items

    def _other(self, value: Any, kind: type, depth: int) -> Encoded:
        if kind is dict or (isinstance(value, dict) and self.own(kind)) or kind.__name__ == "OrderedDict":
            if depth >= DEPTH:
                return ("d", [])
            pairs = list(value.items())[:ITEMS]
            return ("d", [(self._key(k), self.encode(v, depth + 1)) for k, v in pairs])
        if kind is slice:
            return ("/", [self.encode(v) for v in (value.start, value.stop, value.step)])
        if kind is set or kind is frozenset:
            plain = [v for v in value if type(v) in _PLAIN]
            return ("s", sorted(plain, key=repr)[:ITEMS])
        if isinstance(value, np.ndarray):
            return ("N", str(value.dtype), value.shape, self.data_of(value))
        if isinstance(value, np.generic):
            return ("N", str(value.dtype), (), self.data_of(np.asarray(value)))
        if isinstance(value, str):
            return str(value)[:TEXT]
        if isinstance(value, type):
            return ("C", public_name(value), self._class_kind(value))
        if isinstance(value, types.ModuleType):
            return ("M", value.__name__)
        if isinstance(value, self.module):
            return ("K", self.type_name(kind), None)
        if callable(value) and not self.foreign(kind):
            return ("F", public_name(value))
        return ("O", public_name(kind))

    def _key(self, key: Any) -> Encoded:
        return key if type(key) in _PLAIN else repr(key)[:80]

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
        stride = max(1, values.size // SAMPLE)
        return ("S", stride, values.reshape(-1)[::stride].tobytes())

    def contents(self, tensors: list[Any]) -> list[Encoded]:
        """What tensors hold now, to be compared later: where a write to them may not count as one."""
        keep, self.keep = self.keep, None
        try:
            return [self.encode_tensor(t) for t in tensors]
        finally:
            self.keep = keep

    def in_full(self, encode: Callable[[Any], Encoded], value: Any) -> Encoded:
        """Encode with all values, whatever the level of this run: they will be handed over."""
        outer, self.whole = self.whole, self.whole if self.whole == STRUCTURE else max(self.whole, WHOLE)
        try:
            return encode(value)
        finally:
            self.whole = outer

    def encode_state(self, layer: Any) -> Encoded:
        """A layer with its parameters and buffers: ``("K", type name, [(name, dtype, shape, data)])``."""
        state = []
        for name, value in self.state(layer):
            encoded = self.in_full(self.encode_tensor, value)
            if encoded[0] == "T":
                state.append((name, *encoded[1:4]))
        return ("K", self.type_name(type(layer)), state)

    def state(self, layer: Any) -> list[tuple[str, Any]]:
        """Names and tensors of a layer's ``state_dict`` as the framework orders them."""
        return [(k, v) for k, v in layer.state_dict().items() if isinstance(v, self.tensor)]


_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


def _struct_fields(kind: type) -> tuple[str, ...] | None:
    """Field names of a C structure sequence (``torch.return_types.max``)."""
    count = getattr(kind, "n_sequence_fields", None)
    if count is None:
        return None
    names = [
        (n, d) for n, d in vars(kind).items() if isinstance(d, types.MemberDescriptorType | types.GetSetDescriptorType)
    ]
    return tuple(n for n, _ in names if not n.startswith("_"))[:count]


def public_name(value: Any) -> str:
    """The shortest dotted name by which the modules that are loaded hand out this very object."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__name__
    if not module:
        return _of_owner(value, name.rpartition(".")[2])
    if type(value) is types.BuiltinFunctionType:
        return _builtins(module.partition(".")[0]).get(id(value)) or _shorten(module, name, value)
    return _shorten(module, name, value)


def owner_of(func: Any) -> Any:
    """The object that a callable is bound to; one that makes up its attributes is not asked, it might refuse."""
    return None if hasattr(type(func), "__getattr__") else getattr(func, "__self__", None)


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
    found: dict[int, str] = {}
    public = (n for n in sys.modules if n.partition(".")[0] == top and not any(p.startswith("_") for p in n.split(".")))
    for name in sorted(public, key=lambda n: (n.count("."), n)):
        module = sys.modules[name]
        if isinstance(module, types.ModuleType):
            for key, value in list(vars(module).items()):
                if type(value) is types.BuiltinFunctionType and not key.startswith("_"):
                    found.setdefault(id(value), f"{name}.{key}")
    return found


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


Form = Callable[..., Any]
