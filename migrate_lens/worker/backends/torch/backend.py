"""The torch side of the seam: live torch objects in, encoded values and names out."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from migrate_lens.model.value import DEVICE, DTYPE, SIZE, TENSOR, Data, Encoded, TensorValue
from migrate_lens.worker.backends.encoding import STRUCTURE
from migrate_lens.worker.backends.framework import Backend

# As they are before a program may put others in their place.
_DETACH, _NUMPY = torch.Tensor.detach, torch.Tensor.numpy


class TorchBackend(Backend):
    """Answers about torch's own objects."""

    name = "torch"
    tops = frozenset(("torch", "functorch"))

    def __init__(self) -> None:
        super().__init__(torch.Tensor, torch.nn.Module, (torch.nn.Sequential.forward,))
        self._dtypes = {v: k for k, v in vars(torch).items() if isinstance(v, torch.dtype)}
        self._dtypes.update(
            {getattr(torch, n): n for n in ("float16", "float32", "float64", "int16", "int32", "int64")}
        )
        self._dtypes.update({torch.complex64: "complex64", torch.complex128: "complex128"})
        self._plain = frozenset((torch.Tensor, torch.nn.Parameter))

    def global_hooks(self) -> bool:
        hooks = torch.nn.modules.module
        return bool(
            hooks._global_forward_hooks
            or hooks._global_forward_pre_hooks
            or hooks._global_backward_hooks
            or hooks._global_backward_pre_hooks
        )

    def foreign(self, kind: type) -> bool:
        # Nodes of the autograd graph (MulBackward0) say that they are builtins; they are torch.autograd.graph.Node.
        known = self._foreign.get(kind)
        if known is None:
            known = super().foreign(kind)
            if not known and kind.__module__ == "builtins" and kind.__name__ not in vars(builtins):
                known = self._foreign[kind] = issubclass(kind, torch.autograd.graph.Node)
        return known

    def type_name(self, kind: type) -> str:
        node = kind.__module__ == "builtins" and self.foreign(kind)
        return "torch.autograd.graph.Node" if node else super().type_name(kind)

    def look(self, value: Any) -> Encoded:
        dtype = self._dtypes[value.dtype]
        data = None if self.whole == STRUCTURE else self._data(value)
        return (TENSOR, dtype, tuple(value.shape), data, value.device.type, value.requires_grad)

    def _data(self, value: Any) -> Any:
        if type(value) not in self._plain or value.layout is not torch.strided or value.device.type == "meta":
            return self._unusual(value)
        try:
            return self.data_of(_NUMPY(_DETACH(value)))
        except (RuntimeError, TypeError):
            return self._unusual(value)

    def _unusual(self, value: Any) -> Any:
        """Values of tensors that numpy cannot look at directly, None where they cannot be had."""
        if value.layout is not torch.strided or value.device.type == "meta" or value.is_quantized:
            return None
        try:
            plain = torch._C.TensorBase.detach(value).as_subclass(torch.Tensor).resolve_conj().resolve_neg().cpu()
            plain = plain.float() if plain.dtype is torch.bfloat16 else plain
            return self.data_of(plain.numpy())
        except (RuntimeError, TypeError, NotImplementedError):
            return None

    def can_differentiate(self, value: Any) -> bool:
        return bool(value.is_floating_point() or value.is_complex())

    def leaf_of(self, value: Any) -> Any:
        return value.detach().clone().requires_grad_(True)

    def build_tensor(self, encoded: Encoded) -> Any:
        want = TensorValue._make(encoded)
        kind = np.dtype("float32" if want.dtype == "bfloat16" else want.dtype)
        if isinstance(want.data, bytes):
            values = np.frombuffer(want.data, kind).reshape(want.shape).copy()
        else:
            values = np.zeros(want.shape, kind)
        tensor = torch.from_numpy(values).to(device=want.device, dtype=getattr(torch, want.dtype))
        return tensor.requires_grad_(True) if want.requires_grad else tensor

    def fill(self, tensor: Any, dtype: str, shape: tuple[int, ...], data: Data) -> bool:
        if tuple(tensor.shape) != shape or self._dtypes[tensor.dtype] != dtype or not isinstance(data, bytes):
            return False
        with torch.no_grad():
            tensor.copy_(self.build_tensor((TENSOR, dtype, shape, data, "cpu", False)))
        return True

    def dtype_of(self, name: str) -> Any:
        return getattr(torch, name)

    def version(self, value: Any) -> int:
        try:
            return int(value._version)
        except (RuntimeError, AttributeError):
            return 0

    def versions(self, values: list[Any]) -> list[int]:
        try:
            return [v._version for v in values]
        except (RuntimeError, AttributeError):
            return [self.version(v) for v in values]

    def may_view(self, value: Any) -> bool:
        return not isinstance(value, torch.Tensor) or value._is_view()

    def special(self, value: Any, kind: type) -> Encoded | None:
        if kind is torch.Size:
            return (SIZE, tuple(value))
        if kind is torch.dtype:
            return (DTYPE, self._dtypes[value])
        if kind is torch.device:
            return (DEVICE, value.type)
        return None

    def random_state(self) -> bytes:
        return bytes(torch.default_generator.get_state().numpy().tobytes())

    def held(self, layer: Any) -> list[Any]:
        if not (layer._modules or layer._parameters or layer._buffers):
            return []
        if not layer._modules:
            return _held_itself(layer)
        return [tensor for inner in _layers_in(layer, set()) for tensor in _held_itself(inner)]

    def extent(self, value: Any) -> tuple[int, int] | None:
        if value.layout is not torch.strided or value.device.type == "meta":
            return None
        try:
            storage = value.untyped_storage()
            return (value.data_ptr(), max(1, storage.nbytes() - value.storage_offset() * value.element_size()))
        except (RuntimeError, NotImplementedError):
            return None

    def registered_class(self, value: Any) -> str:
        if type(value) is not torch.ScriptObject:
            return ""
        return str(value._type().qualified_name()).removeprefix("__torch__.")

    def differentiable(self, value: Any) -> bool:
        return bool(value.requires_grad)


def _layers_in(layer: Any, seen: set[int]) -> Iterator[Any]:
    """A layer and those in it, each once, in the order of ``modules``; no method of the program's is called."""
    if id(layer) in seen:
        return
    seen.add(id(layer))
    yield layer
    for child in layer._modules.values():
        if child is not None:
            yield from _layers_in(child, seen)


def _held_itself(layer: Any) -> list[Any]:
    """Parameters and buffers of a layer, without those of the layers in it."""
    return [tensor for tensor in (*layer._parameters.values(), *layer._buffers.values()) if tensor is not None]
