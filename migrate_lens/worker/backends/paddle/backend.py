"""The Paddle side of the seam: live Paddle objects in, encoded values and names out, and encoded values back in."""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy as np
import paddle

from migrate_lens.model.value import DEVICE, DTYPE, RAW, SIZE, TENSOR, Data, Encoded, TensorValue
from migrate_lens.worker.backends.encoding import STRUCTURE
from migrate_lens.worker.backends.framework import TargetBackend

_SIZE: Any = type(paddle.to_tensor([0.0]).shape)
# A size that can be a key, as torch's can.
_KEY: Any = type("Size", (_SIZE,), {"__hash__": lambda size: hash(tuple(size))})


_LARGE = 1 << 16  # bytes


class PaddleBackend(TargetBackend):
    """Answers about Paddle's own objects, by the names that torch has for them."""

    name = "paddle"
    tops = frozenset(("paddle",))
    proxy = "ProxyModule"
    registries = TargetBackend.registries | {"OpNameSpace"}

    def __init__(self) -> None:
        super().__init__(paddle.Tensor, paddle.nn.Layer, (paddle.nn.Sequential.forward,))
        self._dtypes: dict[Any, str] = {}
        self._dtype = paddle.dtype
        self._compat: dict[str, Any] = {}

    def look(self, value: Any) -> Encoded:
        dtype = self.dtype_name(value.dtype)
        data = None if self.whole == STRUCTURE else self._data(value, dtype)
        place = "gpu" if value.place.is_gpu_place() else "cpu"
        device = "cuda" if place == "gpu" else place
        return (TENSOR, dtype, tuple(value.shape), data, device, not value.stop_gradient)

    def dtype_name(self, dtype: Any) -> str:
        """``float32`` for ``paddle.float32``."""
        name = self._dtypes.get(dtype)
        if name is None:
            name = self._dtypes[dtype] = str(dtype).rpartition(".")[2]
        return name

    def _data(self, value: Any, dtype: str) -> Any:
        # .numpy() of a sparse tensor kills the process (measured on 3.3.1), so ask first.
        if not value.is_dense() or value.size == 0:
            return b"" if value.is_dense() else None
        if not value._is_initialized():
            return None
        if dtype == "bfloat16":
            with paddle.no_grad():
                return self.data_of(value.detach().astype("float32").numpy())
        if dtype.startswith("float8"):
            return None
        return self.data_of(self._values(value, np.dtype(dtype)))

    def _values(self, value: Any, kind: np.dtype[Any]) -> Any:
        """The values of a tensor: of a large one that lies plainly in memory, right there; ``numpy()`` copies it."""
        size = value.size
        if size * kind.itemsize < _LARGE or not value.place.is_cpu_place() or not value.is_contiguous():
            return value.numpy()
        memory = (ctypes.c_char * (size * kind.itemsize)).from_address(value.data_ptr())
        return np.frombuffer(memory, kind, size).reshape(tuple(value.shape))

    def version(self, value: Any) -> int:
        return int(value.inplace_version)

    def special(self, value: Any, kind: type) -> Encoded | None:
        if kind is _SIZE or kind is _KEY:
            return (SIZE, tuple(map(int, value)))
        if kind is self._dtype or kind.__name__ == "DataType":
            return (DTYPE, self.dtype_name(value))
        if kind.__name__.endswith("Place") or kind.__name__ == "Device":
            return (DEVICE, "cuda" if "gpu" in str(value).lower() else "cpu")
        return None

    def random_state(self) -> bytes:
        return str(paddle.base.core.default_cpu_generator().get_state()).encode()

    def proxied(self, api: str, func: Any) -> bool:
        if isinstance(func, self.module) or not api.startswith("torch.") or api.startswith("torch.Tensor."):
            return False
        if api not in self._compat:
            self._compat[api] = _of_compat(api)
        known = self._compat[api]
        return known is not None and known is not func

    def as_torch(self, name: str) -> str:
        if not name.startswith("paddle."):
            return name
        return "torch." + name.removeprefix("paddle.").removeprefix("compat.")

    def is_proxy(self, module: types.ModuleType) -> bool:
        return hasattr(module, "_original_module")

    def differentiable(self, value: Any) -> bool:
        return not value.stop_gradient

    def can_differentiate(self, value: Any) -> bool:
        return self.dtype_name(value.dtype).startswith(("float", "bfloat", "complex"))

    def leaf_of(self, value: Any) -> Any:
        leaf = value.detach().clone()
        leaf.stop_gradient = False
        return leaf

    def held(self, layer: Any) -> list[Any]:
        return [*layer.parameters(), *layer.buffers()]

    def extent(self, value: Any) -> tuple[int, int] | None:
        if not value.is_dense() or not value._is_initialized():
            return None
        return (value.data_ptr(), max(1, value.size * value.element_size()))

    # -- the way back: handing torch's recorded values to the program ---------------------------------------------

    def build_tensor(self, encoded: Encoded) -> Any:
        want = TensorValue._make(encoded)
        with paddle.no_grad():
            tensor = paddle.to_tensor(self._array(want.dtype, want.shape, want.data))
            if self.dtype_name(tensor.dtype) != want.dtype:
                tensor = tensor.astype(want.dtype)
        tensor.stop_gradient = not want.requires_grad
        return tensor

    def dtype_of(self, name: str) -> Any:
        return getattr(paddle, name)

    def grafted(self, value: Any, node: Any) -> Any:
        if value.shape != node.shape or value.dtype != node.dtype or not bool(paddle.isfinite(node).all()):
            return value
        return (node - node.detach()) + value.detach()

    def linked(self, value: Any, sources: list[Any]) -> Any:
        if not self.differentiable(value):
            return value
        for source in sources:
            same = self.differentiable(source) and source.dtype == value.dtype
            if same and bool(paddle.isfinite(source).all()):
                value = value + (source * 0.0).sum()
        return value

    def as_key(self, value: Any) -> Any:
        return _KEY(value) if type(value) is _SIZE else value

    def size_of(self, extents: tuple[int, ...]) -> Any:
        return _SIZE(extents)

    def device_of(self, name: str) -> Any:
        return paddle.CPUPlace() if name == "cpu" else None

    def child_of(self, layer: Any, name: str) -> Any:
        return layer._sub_layers.get(name)

    def entry_of(self, layer: Any, name: str) -> Any:
        held = (layer._sub_layers, layer._parameters, layer._buffers)
        return next((some[name] for some in held if some.get(name) is not None), None)

    def add_child(self, layer: Any, name: str, child: Any) -> None:
        layer.add_sublayer(name, child)

    def add_tensor(self, layer: Any, name: str, tensor: Any, *, trained: bool) -> None:
        if trained:
            layer.add_parameter(name, paddle.nn.Parameter(tensor))
        else:
            layer.register_buffer(name, tensor)

    def _array(self, dtype: str, shape: tuple[int, ...], data: Data) -> Any:
        kind = np.dtype("float32" if dtype == "bfloat16" or dtype.startswith("float8") else dtype)
        if not isinstance(data, RAW):
            return np.zeros(shape, kind)
        return np.frombuffer(data, kind).reshape(shape).copy()

    def fill(self, tensor: Any, dtype: str, shape: tuple[int, ...], data: Data) -> bool:
        if tuple(tensor.shape) != shape or self.dtype_name(tensor.dtype) != dtype or not isinstance(data, RAW):
            return False
        if not data or not tensor.is_dense():
            return True
        values = self._array(dtype, shape, data)
        with paddle.no_grad():
            tensor.set_value(paddle.to_tensor(values).astype(dtype) if dtype == "bfloat16" else values)
        return True


def _of_compat(api: str) -> Any:
    """The function or class that Paddle's own package for torch's names has under a name; None where it has none."""
    value: Any = getattr(paddle, "compat", None)
    for part in api.split(".")[1:]:
        if value is None:
            return None
        value = getattr(value, part, None)
    return value if callable(value) else None
