"""The torch side of the seam: live torch objects in, encoded values and names out."""

from __future__ import annotations

import builtins
import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from migrate_lens.model.value import DEVICE, DTYPE, RAW, SIZE, TENSOR, Data, Encoded, TensorValue
from migrate_lens.worker.backends.encoding import STRUCTURE
from migrate_lens.worker.backends.framework import Backend
from migrate_lens.worker.observe.frames import hide

# As they are before a program may put others in their place.
_ENTRY = (torch.nn.Module._wrapped_call_impl, torch.nn.Module._call_impl)
_STATE = (torch.nn.Module.state_dict, torch.nn.Module._save_to_state_dict)
_NoFunction, _NoDispatch = torch._C.DisableTorchFunction, torch._C._DisableTorchDispatch
_TRACED, _DISPATCHED = torch._C._get_tracing_state, torch._C._len_torch_dispatch_stack
_MODE, _COMPILER = torch._C._get_dispatch_mode, torch.compiler
# Modes that make a graph of what runs: make_fx, export and what stands on them.
_GRAPHS = (torch._C._TorchDispatchModeKey.PROXY, torch._C._TorchDispatchModeKey.FUNCTIONAL)
_READ = 0x100  # PyBUF_READ
_SMALL = 1 << 14
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_COPIED = ctypes.pythonapi.PyBytes_FromStringAndSize
_COPIED.restype, _COPIED.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t)
_LENT = ctypes.pythonapi.PyMemoryView_FromMemory
_LENT.restype, _LENT.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def _numeric(name: str) -> np.dtype[Any] | None:
    """How numpy reads a dtype's elements; None where it cannot."""
    try:
        return np.dtype("uint16" if name == "bfloat16" else name)
    except TypeError:
        return None


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
        self._numeric = {dtype: _numeric(name) for dtype, name in self._dtypes.items()}

    def opaque(self, container: Any) -> bool:
        hooks, kind = torch.nn.modules.module, type(container)
        if container._compiled_call_impl is not None or (kind._wrapped_call_impl, kind._call_impl) != _ENTRY:
            return True
        return super().opaque(container) or bool(
            hooks._global_forward_hooks
            or hooks._global_forward_pre_hooks
            or hooks._global_backward_hooks
            or hooks._global_backward_pre_hooks
        )

    def captured(self) -> bool:
        if _COMPILER._is_compiling_flag or _TRACED() is not None:
            return True
        return _DISPATCHED() > 0 and any(_MODE(kind) is not None for kind in _GRAPHS)

    def unseen(self, look: Callable[..., Any], *args: Any) -> Any:
        if not _DISPATCHED():
            with _NoFunction():
                return look(*args)
        with _NoFunction(), _NoDispatch():
            return look(*args)

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
        """Values as they lie in memory, None where they cannot be had; no operator is called and nothing is shared."""
        kind = self._numeric.get(value.dtype)
        if kind is None or value.layout is not torch.strided:
            return None
        try:
            storage = value.untyped_storage()
            # A tensor class may give any answer, its storage gives the true one, and takes longer.
            place = (value if type(value) in _TENSORS else storage).device.type
            if place != "cpu":
                return None if place == "meta" else self.data_of(self._elsewhere(value))
            size = value.nbytes
            if 0 < size <= _SMALL and size <= self.whole and self._lies_plainly(value) and storage.nbytes() >= size:
                return _COPIED(value.data_ptr(), size)
            array = self._array(value, kind, storage)
            return None if array is None else self.data_of(array)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            return None

    def _lies_plainly(self, value: Any) -> bool:
        """Whether a tensor's bytes are its values one after the other."""
        if value.is_contiguous() and value.data_ptr() and not value.is_neg():
            return value.dtype is not torch.bfloat16 and not value.is_conj()
        return False

    def _array(self, value: Any, kind: np.dtype[Any], storage: Any) -> Any:
        """A tensor's elements in the memory of this machine, which is lent for as long as they are looked at."""
        shape, size, address = tuple(value.shape), kind.itemsize, storage.data_ptr()
        if 0 in shape:
            return np.empty(shape, kind)
        if not address:
            return None
        memory, offset = _LENT(address, storage.nbytes(), _READ), value.storage_offset() * size
        array = np.ndarray(shape, kind, memory, offset, [step * size for step in value.stride()])
        if value.dtype is torch.bfloat16:
            return (array.astype("uint32") << 16).view("float32")
        array = array.conj() if value.is_conj() else array
        return -array if value.is_neg() else array

    def _elsewhere(self, value: Any) -> Any:
        """Values that lie on another device."""
        plain = torch._C.TensorBase.detach(value).as_subclass(torch.Tensor).resolve_conj().resolve_neg().cpu()
        return (plain.float() if plain.dtype is torch.bfloat16 else plain).numpy()

    def can_differentiate(self, value: Any) -> bool:
        return bool(value.is_floating_point() or value.is_complex())

    def leaf_of(self, value: Any) -> Any:
        return value.detach().clone().requires_grad_(True)

    def build_tensor(self, encoded: Encoded) -> Any:
        want = TensorValue._make(encoded)
        kind = np.dtype("float32" if want.dtype == "bfloat16" else want.dtype)
        if isinstance(want.data, RAW):
            values = np.frombuffer(want.data, kind).reshape(want.shape).copy()
        else:
            values = np.zeros(want.shape, kind)
        tensor = torch.from_numpy(values).to(device=want.device, dtype=getattr(torch, want.dtype))
        return tensor.requires_grad_(True) if want.requires_grad else tensor

    def fill(self, tensor: Any, dtype: str, shape: tuple[int, ...], data: Data) -> bool:
        if tuple(tensor.shape) != shape or self._dtypes[tensor.dtype] != dtype or not isinstance(data, RAW):
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
            return (SIZE, tuple(map(int, value)))
        if kind is torch.dtype:
            return (DTYPE, self._dtypes[value])
        if kind is torch.device:
            return (DEVICE, value.type)
        return None

    def random_state(self) -> bytes:
        state = torch.default_generator.get_state()
        return bytes(self._array(state, np.dtype("uint8"), state.untyped_storage()).tobytes())

    def state(self, layer: Any) -> list[tuple[str, Any]]:
        """Read from the layers themselves where each leaves it to torch what its state is; that detaches nothing."""
        inner = list(layer.named_modules(remove_duplicate=False))
        if not all(_keeps_plainly(one) for _, one in inner):
            return super().state(layer)
        return [(f"{at}.{name}" if at else name, value) for at, one in inner for name, value in _persistent(one)]

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


def _keeps_plainly(layer: Any) -> bool:
    """Whether a layer's state is what torch's base class makes of it."""
    kind = type(layer)
    plain = kind.state_dict is _STATE[0] and kind._save_to_state_dict is _STATE[1]
    return plain and not (layer._state_dict_hooks or layer._state_dict_pre_hooks or "state_dict" in vars(layer))


def _persistent(layer: Any) -> list[tuple[str, Any]]:
    """Parameters and buffers that a layer itself keeps in its state."""
    buffers = [item for item in layer._buffers.items() if item[0] not in layer._non_persistent_buffers_set]
    return [item for item in (*layer._parameters.items(), *buffers) if item[1] is not None]


hide(sys.modules[__name__])
