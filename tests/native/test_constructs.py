"""Diagnostics, in; the names that an issue's title would have, with follow-on errors folded, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_samples import SAMPLES, FakeTorch

from migrate_lens.cpp.naming import (
    documented,
    function_name,
    is_private,
    is_registry,
    plain_type,
    schema_type,
)
from migrate_lens.native.constructs import Construct, collect
from migrate_lens.native.diagnostics import parse


def constructs(text: str, root: Path = SAMPLES, torch: FakeTorch | None = None) -> tuple[Construct, ...]:
    return collect(parse(text, root, lambda path: path.is_relative_to(root)), torch or FakeTorch())


def names(found: tuple[Construct, ...]) -> list[str]:
    return [construct.api for construct in found]


MIXED = [
    "TORCH_VERSION_MAJOR",
    "TORCH_VERSION_MAJOR",
    "torch::autograd::Function",
    "at::Tensor::narrow",
    "at::Tensor::select",
    "at::Tensor::flatten",
    "c10::List",
    "c10::intrusive_ptr",
    "c10::make_intrusive",
    "at::bincount",
    "AT_DISPATCH_FLOATING_TYPES",
    "AT_ERROR",
    "AT_ASSERTM",
    "TORCH_CHECK_VALUE",
    "at::AutoDispatchBelowAutograd",
    "at::globalContext",
    "torch::tensor",
    "c10::DispatchKey",
    "at::kMPS",
    "std::unordered_set",
    "torch::nn::functional::relu",
    "torch::jit::script::Module",
    "at::Tensor::item",
    "at::Tensor::requires_grad",
    "at::Tensor::index",
    "at::Tensor::operator==",
    "at::Tensor::operator+=",
    "at::Tensor::sym_sizes",
    "at::native::resize_output",
    "at::TensorIterator",
    "at::cumsum",
    "torch::Generator",
    "torch::RegisterOperators",
    "torch::Library::set_python_module",
    "TORCH_SELECTIVE_SCHEMA",
    "at::Tag",
    "torch::Library::def(schema,tags)",
    "torch::Library::impl_abstract_pystub",
    "torch::dispatch",
    "c10::DispatchKey",
    "c10::DispatchKey::Meta",
    "torch::CppFunction::makeFallthrough",
    "c10::DispatchKey::AutogradCPU",
    "TORCH_FN",
    "c10::DispatchKey::Autograd",
    "torch::Library::fallback",
    "torch::CppFunction::makeFallthrough",
]


def test_a_mixed_unit_gives_every_construct_and_nothing_else() -> None:
    found = constructs((SAMPLES / "mixed.txt").read_text())
    assert [name.replace(" ", "") for name in names(found)] == MIXED
    assert sum(construct.folded for construct in found) == 12
    assert [c.api for c in found if c.private] == ["at::native::resize_output"]


def test_types_that_the_registry_cannot_carry_are_named_as_a_schema_would() -> None:
    found = constructs((SAMPLES / "registry.txt").read_text())
    assert {"schema type Dict", "schema type Device", "PYBIND11_MODULE", "at::TensorList"} <= set(names(found))
    assert {c.kind for c in found if c.api.startswith("schema")} == {"registry"}


def test_a_method_that_is_not_const_under_paddle_is_named_by_the_note(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("at::Tensor f(const at::Tensor& x) { return x.slice(0, 0, 4, 2); }\n")
    text = (
        "a.cc:1:44: error: passing 'const at::Tensor' as 'this' argument discards qualifiers [-fpermissive]\n"
        "/opt/compat/ATen/core/TensorBody.h:9:10: note:   in call to 'at::Tensor at::Tensor::slice(int64_t, int64_t)'\n"
    )
    assert names(constructs(text, tmp_path)) == ["at::Tensor::slice"]


def test_a_dispatch_macro_is_the_cause_of_the_errors_in_its_body(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(
        'void f(at::Tensor x) {\n  AT_DISPATCH_ALL_TYPES(x.type(), "f", [&] {\n'
        "    scalar_t* p = x.data_ptr<scalar_t>();\n    at::bincount(x);\n  });\n}\n"
    )
    text = (
        "a.cc:3:5: error: 'scalar_t' was not declared in this scope\n"
        "a.cc:3:15: error: 'p' was not declared in this scope\n"
        "a.cc:3:30: error: no matching function for call to 'at::Tensor::data_ptr<scalar_t>()'\n"
        "a.cc:4:9: error: 'bincount' is not a member of 'at'\n"
        "a.cc:2:3: error: 'AT_DISPATCH_ALL_TYPES' was not declared in this scope\n"
    )
    found = constructs(text, tmp_path)
    assert names(found) == ["at::bincount", "AT_DISPATCH_ALL_TYPES"]
    assert sum(c.folded for c in found) == 3


def test_a_plain_name_is_torchs_only_where_a_namespace_of_torchs_is_open(tmp_path: Path) -> None:
    text = (
        "a.cc:2:3: error: 'cumsum' was not declared in this scope\n"
        "a.cc:3:3: error: 'AT_ERROR' was not declared in this scope\n"
    )
    torch = FakeTorch(["at::cumsum"])
    (tmp_path / "a.cc").write_text("using namespace at;\n  cumsum(x, 0);\n  AT_ERROR(1);\n")
    assert names(constructs(text, tmp_path, torch)) == ["at::cumsum", "AT_ERROR"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.cc").write_text("int y;\n  cumsum(x, 0);\n  AT_ERROR(1);\n")
    assert names(constructs(text, other, torch)) == ["AT_ERROR"]


def test_an_error_directive_is_about_the_macros_of_its_condition(tmp_path: Path) -> None:
    lines = ["#if MY_OWN_FLAG", "#if TORCH_VERSION_MAJOR >= 2", "int x;", "#else", "#error old", "#endif", "#endif"]
    (tmp_path / "a.cc").write_text("\n".join(lines))
    assert names(constructs("a.cc:5:2: error: #error old\n", tmp_path)) == ["TORCH_VERSION_MAJOR"]


def test_an_error_that_names_nothing_of_torchs_stands_for_itself_if_it_is_alone() -> None:
    found = constructs("mixed.cc:3:1: error: expected ';' before 'int'\nmixed.cc:4:1: error: expected '}' at end\n")
    assert len(found) == 1
    assert found[0].folded == 1


def test_no_errors_no_constructs() -> None:
    assert constructs("") == ()


@pytest.mark.parametrize(
    ("spelled", "want"),
    [
        ("const class at::TensorBase&", "at::Tensor"),
        ("const c10::Scalar {aka 'const class paddle::experimental::ScalarBase<paddle::Tensor>'}", "at::Scalar"),
        ("torch::class_<Acc<int> >", "torch::class_"),
        ("std::__cxx11::basic_string<char>", "std::basic_string"),
    ],
)
def test_plain_types(spelled: str, want: str) -> None:
    assert plain_type(spelled) == want


@pytest.mark.parametrize(
    ("signature", "want"),
    [
        ("at::cumsum(const at::Tensor&, long int)", ("at::cumsum", "const at::Tensor&, long int")),
        ("float const* at::Tensor::const_data_ptr<float, 0>() const", ("at::Tensor::const_data_ptr", "")),
        ("std::map<int, f(int)> at::x(int)", ("at::x", "int")),
        ("torch::Library& torch::Library::def(const std::string&) &", ("torch::Library::def", "const std::string&")),
    ],
)
def test_function_names(signature: str, want: tuple[str, str]) -> None:
    assert function_name(signature) == want


@pytest.mark.parametrize(
    ("spelled", "want"),
    [
        ("c10::Device", "Device"),
        ("paddle::experimental::ScalarBase<paddle::Tensor>", "Scalar"),
        ("std::optional<c10::ScalarType>", "ScalarType?"),
        ("std::map<std::string, long int>", "Dict"),
    ],
)
def test_schema_types(spelled: str, want: str) -> None:
    assert schema_type(spelled) == want


@pytest.mark.parametrize(
    ("name", "registry", "private"),
    [
        ("TORCH_FN", True, False),
        ("TORCH_LIBRARY_FRAGMENT", True, False),
        ("TORCH_WARN", False, False),
        ("c10::DispatchKey::Meta", True, False),
        ("c10::Dispatcher::singleton", True, True),
        ("c10::intrusive_ptr", True, False),
        ("torch::class_::def_pickle", True, False),
        ("torch/custom_class.h", True, False),
        ("ATen/core/dispatch/Dispatcher.h", True, True),
        ("ATen/native/Resize.h", False, True),
        ("torch/csrc/jit/ir/ir.h", False, True),
        ("torch/csrc/autograd/custom_function.h", False, False),
        ("torch/script.h", False, False),
        ("at::native::resize_output", False, True),
        ("at::detail::make_tensor", False, True),
        ("at::_ops::add::call", False, True),
        ("at::Tensor::index_put_", False, False),
    ],
)
def test_registry_and_private_names(name: str, registry: bool, private: bool) -> None:
    assert (is_registry(name), is_private(name)) == (registry, private)


def test_the_compat_layers_own_spelling_is_replaced_by_torchs() -> None:
    assert documented("torch::DispatchKey::Meta") == "c10::DispatchKey::Meta"
    assert documented("at::TensorBase::narrow") == "at::Tensor::narrow"
    assert documented("torch::full_like") == "torch::full_like"


def test_a_failed_overload_is_named_once_and_without_its_inner_workings(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text('m.impl("b", [](const at::Tensor& x) { return x; });\n')
    text = (
        "a.cc:1:7: error: no matching function for call to "
        "'torch::CppFunction::CppFunction(init_2(torch::Library&)::<lambda(const at::Tensor&)>)'\n"
        "a.cc:1:7: error: no type named 'type' in 'struct std::enable_if<false, void>'\n"
    )
    assert names(constructs(text, tmp_path)) == ["torch::CppFunction(lambda)"]
