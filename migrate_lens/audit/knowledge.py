"""What anyone knows about torch's own types: which class a call returns, which names belong to one class only.

Facts about torch, in; a receiver's type, out. No verdict about Paddle is kept here: those are asked.
"""

from __future__ import annotations

from typing import NamedTuple

from migrate_lens.model.uses import words

TENSOR = "torch.Tensor"
CTX = "torch.autograd.function.FunctionCtx"
GROUP = "torch.distributed.ProcessGroup"
STREAM = "torch.cuda.Stream"
CUSTOM_OP = "torch.library.CustomOpDef"


class Held(NamedTuple):
    """What a call returns or an attribute holds: an instance of a class, or several of them in a sequence."""

    of: str
    several: bool = False


# Calls whose result is of another class than Tensor; an empty string says that the result is nothing of interest.
RETURNS = {
    "torch.device": "torch.device",
    "torch.Size": "torch.Size",
    "torch.Generator": "torch.Generator",
    "torch.cuda.current_stream": STREAM,
    "torch.cuda.default_stream": STREAM,
    "torch.cuda.Stream": STREAM,
    "torch.cuda.ExternalStream": STREAM,
    "torch.cuda.Event": "torch.cuda.Event",
    "torch.cuda.get_device_properties": "torch.cuda.DeviceProperties",
    "torch.cuda.get_device_capability": "",
    "torch.distributed.new_group": GROUP,
    "torch.distributed.distributed_c10d._get_default_group": GROUP,
    "torch.get_default_dtype": "torch.dtype",
    "torch.promote_types": "torch.dtype",
    "torch.result_type": "torch.dtype",
    "torch.library.Library": "torch.library.Library",
    "torch.nn.Parameter": TENSOR,
    "torch.nn.parameter.Parameter": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.Tensor": TENSOR,
    "torch.finfo": "torch.finfo",
    "torch.iinfo": "torch.iinfo",
}

# Root and Tensor functions whose result is no tensor.
NO_TENSOR = words(
    "numel dim ndimension item tolist is_tensor is_storage is_complex is_floating_point is_nonzero equal typename "
    "load save manual_seed seed initial_seed get_rng_state set_rng_state set_default_dtype set_default_device compile "
    "set_printoptions get_num_threads set_num_threads no_grad enable_grad inference_mode set_grad_enabled autocast "
    "is_grad_enabled use_deterministic_algorithms split chunk unbind tensor_split hsplit vsplit dsplit meshgrid "
    "broadcast_tensors where_ nonzero_tuple unique unique_consecutive max min sort topk kthvalue mode median nanmedian "
    "cummax cummin qr svd lu eig symeig slogdet frexp aminmax histogramdd backward stride size element_size data_ptr "
    "storage untyped_storage storage_offset numpy is_contiguous is_pinned get_device type register_hook is_cuda "
    "compiled_with_cxx11_abi vmap split_with_sizes memory_format finfo iinfo is_inference nelement"
)

TENSOR_SPACES = frozenset(
    ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.Tensor")
)

# Attributes of a known receiver and the class that they hold.
ATTRIBUTES = {
    f"{TENSOR}.shape": Held("torch.Size"),
    f"{TENSOR}.device": Held("torch.device"),
    f"{TENSOR}.dtype": Held("torch.dtype"),
    **{f"{TENSOR}.{name}": Held(TENSOR) for name in ("grad", "data", "T", "mT", "H", "real", "imag")},
    f"{CTX}.saved_tensors": Held(TENSOR, several=True),
}

# Names that only one of torch's classes has: enough to know the receiver without knowing its flow.
DISTINCTIVE = {
    "cuda_stream": STREAM,
    "saved_tensors": CTX,
    "needs_input_grad": CTX,
    "save_for_backward": CTX,
    "mark_non_differentiable": CTX,
    "mark_dirty": CTX,
    "set_materialize_grads": CTX,
    "requires_grad_": TENSOR,
    "untyped_storage": TENSOR,
    "data_ptr": TENSOR,
    "numel": TENSOR,
    "element_size": TENSOR,
    "new_empty": TENSOR,
    "new_zeros": TENSOR,
    "new_tensor": TENSOR,
    "masked_fill_": TENSOR,
    "record_stream": TENSOR,
    "expand_as": TENSOR,
    "type_as": TENSOR,
    "is_contiguous": TENSOR,
    "multi_processor_count": "torch.cuda.DeviceProperties",
}

# Annotations that stand for one of torch's classes under another path.
SAME = {
    "torch.nn.Parameter": TENSOR,
    "torch.nn.parameter.Parameter": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.IntTensor": TENSOR,
    "torch.BoolTensor": TENSOR,
    "torch.distributed.distributed_c10d.ProcessGroup": GROUP,
    "torch.cuda.streams.Stream": STREAM,
    "torch.types.Device": "torch.device",
}

# Constants that are instances of torch.dtype: their attributes are dtype's.
DTYPES = words(
    "torch.float torch.float16 torch.float32 torch.float64 torch.half torch.double torch.bfloat16 torch.int torch.int8 "
    "torch.int16 torch.int32 torch.int64 torch.long torch.short torch.uint8 torch.bool torch.complex64 torch.complex128"
)
MODULE = "torch.nn.Module"

PAIRS = frozenset(("max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax", "cummin"))


def result_of(api: str) -> Held | None:
    """What calling a torch name returns; None for what is of no interest."""
    if api in RETURNS:
        return Held(RETURNS[api]) if RETURNS[api] else None
    space, _, name = api.rpartition(".")
    is_class = name[:1].isupper()
    if space not in TENSOR_SPACES:
        return Held(api) if is_class else None
    if name in PAIRS:
        return Held(TENSOR, several=True)
    if is_class or name in NO_TENSOR or name.startswith(("is_", "set_", "get_", "_")):
        return None
    return Held(TENSOR)
