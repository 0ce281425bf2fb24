"""A C++ name as a compiler spells it goes in; the name that torch documents, and what sort of name it is, come out."""

from __future__ import annotations

import re

FRAMEWORK = ("at", "torch", "c10", "caffe2", "paddle", "phi")

# The compat layer's own spelling of a torch type, as it shows up in messages.
TYPES = {
    "at::TensorBase": "at::Tensor",
    "torch::Tensor": "at::Tensor",
    "paddle::Tensor": "at::Tensor",
    "c10::Scalar": "at::Scalar",
    "torch::Scalar": "at::Scalar",
    "paddle::experimental::ScalarBase": "at::Scalar",
    "paddle::experimental::Scalar": "at::Scalar",
    "phi::DataType": "at::ScalarType",
    "c10::ScalarType": "at::ScalarType",
    "phi::Place": "c10::Device",
    "at::Device": "c10::Device",
    "torch::Device": "c10::Device",
    "torch::DispatchKey": "c10::DispatchKey",
    "torch::IValue": "c10::IValue",
    "at::IValue": "c10::IValue",
    "torch::intrusive_ptr": "c10::intrusive_ptr",
    "torch::TensorOptions": "c10::TensorOptions",
    "at::TensorOptions": "c10::TensorOptions",
    "at::ArrayRef": "c10::ArrayRef",
    "paddle::experimental::IntArrayBase": "c10::IntArrayRef",
    "at::Half": "c10::Half",
    "at::BFloat16": "c10::BFloat16",
}

# Names of the operator registry: what stands in or around TORCH_LIBRARY.
_REGISTRY = re.compile(
    r"^(?:TORCH_LIBRARY\w*|STABLE_TORCH_LIBRARY\w*|TORCH_FN\w*|TORCH_SELECTIVE_\w+|TORCH_BOX\w*|TORCH_OPERATOR\w*"
    r"|torch::Library\b.*|torch::CppFunction\b.*|torch::class_\b.*|torch::init\b|torch::CustomClassHolder\b.*|torch::RegisterOperators\b.*"
    r"|torch::(?:dispatch|schema|fallthrough|selective_class_)\b.*|torch::jit::(?:CustomClassHolder|custom_class|RegisterOperators|FunctionSchema)\b.*"
    r"|c10::(?:DispatchKey\w*|Dispatcher|OperatorHandle|OperatorName|TypedOperatorHandle|FunctionSchema|Argument|RegisterOperators|KernelFunction|BoxedKernel|intrusive_ptr\w*|make_intrusive|Stack|OperatorKernel)\b.*"
    r"|at::(?:Tag|AutoDispatch\w+|AutoNonVariableTypeMode|FunctionSchema)\b.*|(?:at|c10)::impl::(?:ExcludeDispatchKeyGuard|IncludeDispatchKeyGuard)\b.*"
    r"|schema type .*)$"
)
_REGISTRY_HEADERS = re.compile(
    r"^(?:torch/library\.h|torch/custom_class\w*\.h|ATen/core/(?:dispatch|op_registration|boxing)/.*|ATen/core/(?:function_schema|enum_tag|LegacyTypeDispatch)\w*\.h"
    r"|c10/core/(?:DispatchKey\w*|impl/LocalDispatchKeySet)\.h|c10/util/intrusive_ptr\.h|torch/csrc/jit/runtime/(?:custom_)?operator\.h|torch/op_registration\.h"
    r"|torch/csrc/stable/library\.h)$"
)
_PRIVATE_PART = re.compile(r"^(?:native|detail|details|impl|internal|_\w*|\w+_impl)$")
_PRIVATE_TYPES = re.compile(
    r"^c10::(?:Dispatcher|OperatorHandle|TypedOperatorHandle|KernelFunction|BoxedKernel|TensorImpl|StorageImpl|UndefinedTensorImpl)\b"
    r"|^torch::autograd::(?:Node|Engine|VariableHooks)\b|^at::(?:TensorIteratorBase|LegacyTypeDispatch)\b|^torch::(?:dynamo|inductor|lazy|profiler)\b"
)
_PRIVATE_HEADERS = re.compile(
    r"/(?:native|detail|details|impl|internal)/|^ATen/native/|^ATen/core/(?:dispatch|boxing)/|^c10/core/(?:TensorImpl|StorageImpl|UndefinedTensorImpl)\.h"
    r"|^torch/csrc/(?!api/|autograd/|utils/pybind\.h|stable/|inductor/aoti_torch/)"
)
# The types that an operator's schema can speak of, by the C++ type that carries them.
_SCHEMA_TYPES = {
    "std::map": "Dict",
    "std::unordered_map": "Dict",
    "c10::Dict": "Dict",
    "c10::impl::GenericDict": "Dict",
    "c10::List": "List",
    "std::vector": "List",
    "std::optional": "Optional",
    "std::tuple": "Tuple",
    "std::array": "Array",
    "std::basic_string_view": "str",
    "std::basic_string": "str",
    "std::complex": "complex",
    "c10::complex": "complex",
    "c10::intrusive_ptr": "class",
}


def plain_type(spelled: str) -> str:
    """A type without qualifiers, references and template arguments, under torch's name for it."""
    text = re.sub(r"\s*\{aka .*\}", "", spelled)
    text = re.sub(r"\b(?:const|volatile|class|struct|enum|union|typename)\b\s*", "", text).strip(" &*")
    text = strip_arguments(text).replace("::__cxx11", "").strip(" &*")
    return TYPES.get(text, text)


def strip_arguments(name: str) -> str:
    """A name without template arguments, at any depth; ``operator<`` and its like are kept."""
    kept, depth = [], 0
    for index, letter in enumerate(name):
        operator = name[:index].rstrip("<>=").endswith("operator")
        if letter == "<" and not operator:
            depth += 1
        elif letter == ">" and not operator:
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(letter)
    return "".join(kept)


def function_name(signature: str) -> tuple[str, str]:
    """The full name of a function and the text of its arguments, from a signature with or without a result type."""
    text = re.sub(r"\s*\[with .*\]$", "", signature)
    depth = start = 0
    for index, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth <= 0 and not text[:index].endswith("operator"):
            return _last_word(text[start:index]), text[index + 1 : text.rfind(")")]
    return _last_word(text), ""


def _last_word(text: str) -> str:
    return strip_arguments(text).split(" ")[-1].strip("&*")


def schema_type(spelled: str) -> str:
    """The schema's word for a C++ type: ``Scalar``, ``Device``, ``Dict``."""
    name = plain_type(spelled)
    if name == "std::optional" and (inner := re.search(r"<(.*)>", spelled)):
        return schema_type(inner[1]) + "?"
    return _SCHEMA_TYPES.get(name, name.rpartition("::")[2])


def of_framework(name: str) -> bool:
    """Whether a qualified name starts in a namespace of torch, or of what answers for it."""
    return name.removeprefix("::").partition("::")[0] in FRAMEWORK and "::" in name


def mentions_framework(text: str) -> bool:
    """Whether a message speaks of a framework's name anywhere."""
    return re.search(rf"\b(?:{'|'.join(FRAMEWORK)})::\w", text) is not None


def documented(name: str) -> str:
    """The name that torch documents: the owner's alias is replaced, everything else stays as the library wrote it."""
    name = name.removeprefix("::")
    owner, sep, last = name.rpartition("::")
    if name in TYPES:
        return TYPES[name]
    if sep and owner in TYPES:
        return f"{TYPES[owner]}::{last}"
    return name


def is_registry(api: str) -> bool:
    """Whether the name, or the header, belongs to the operator registry."""
    return bool(_REGISTRY.match(api) or _REGISTRY_HEADERS.match(api))


def is_private(api: str) -> bool:
    """Whether torch does not offer this name or header to extension authors."""
    if "/" in api or api.endswith(".h"):
        return bool(_PRIVATE_HEADERS.search(api))
    parts = strip_arguments(api).split("::")
    return bool(_PRIVATE_TYPES.match(api)) or any(_PRIVATE_PART.match(part) for part in parts)


def looks_like_macro(name: str) -> bool:
    """Whether a name is spelled like a macro of torch."""
    return re.fullmatch(r"[A-Z][A-Z0-9_]+", name) is not None and "_" in name
