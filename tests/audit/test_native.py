"""C++, CMake and packaging sources, in; the torch uses that a reader would point at, out."""

from __future__ import annotations

import pytest

from migrate_lens.audit.native import scan_cmake, scan_native, scan_pyproject
from migrate_lens.cpp.headers import Declared, read_header

SEEN = [
    ("#include <torch/script.h>", "include", "torch/script.h", 1),
    ("\n  at::Tensor f();", "name", "at::Tensor", 2),
    ('TORCH_WARN("x");', "macro", "TORCH_WARN", 1),
    ("TORCH_LIBRARY_IMPL(ns, CPU, m) {\n}", "library", "TORCH_LIBRARY_IMPL", 1),
    ("TORCH_LIBRARY(ns, m) {\n  m.impl_abstract_pystub(1);\n}", "method", "torch::Library::impl_abstract_pystub", 2),
    ("void f(const at::Tensor& x) {\n  x\n    .narrow(0, 1, 2);\n}", "method", "Tensor::narrow", 3),
    ("auto t = torch::empty({1});\nt.view(2);", "method", "Tensor::view", 2),
    (
        'auto d = py::module_::import("torch.distributed");\nd.attr("get_rank")();',
        "attr",
        "torch.distributed.get_rank",
        2,
    ),
    ('TORCH_LIBRARY(ns, m) {\n  m.def("f(Tensor a) -> Tensor");\n}', "schema", "torch::Library::def", 2),
]


@pytest.mark.parametrize(("source", "event", "api", "line"), SEEN)
def test_a_use_is_seen_on_its_line(source: str, event: str, api: str, line: int) -> None:
    found = {(use.event, use.api, use.line) for use in scan_native(source.encode()).uses}
    assert (event, api, line) in found


NOT_SEEN = [
    "// at::Tensor f();",
    "/* TORCH_WARN(1);\n at::cumsum */",
    "mytorch::Tensor x;",
    "std::vector<int> v; v.view(1);",
    "#include <torchvision/vision.h>",
    "#define AT_ERROR(x) throw x\nAT_ERROR(1);",
]


@pytest.mark.parametrize("source", NOT_SEEN)
def test_what_is_not_torch_is_not_seen(source: str) -> None:
    assert scan_native(source.encode()).uses == ()


def test_cmake_counts_only_where_torch_is_found() -> None:
    with_torch = scan_cmake(b"find_package(Torch REQUIRED)\ntarget_link_libraries(a b)\n")
    assert [(use.api, use.line) for use in with_torch.uses] == [("find_package", 1), ("target_link_libraries", 2)]
    assert scan_cmake(b"# find_package(Torch)\ntarget_link_libraries(a b)\n").uses == ()


def test_only_build_requirements_on_torch_count() -> None:
    source = b'[build-system]\nrequires = [\n  "setuptools",\n  "torch>=2",\n]\n[project]\ndependencies = ["torch"]\n'
    assert [use.line for use in scan_pyproject(source).uses] == [4]


HEADER = """
#pragma once
#define TWICE(x) \\
  hidden(x)
namespace at {
// at::commented();
enum class Kind { First, Second = 2 };
using Alias = int;
using std::vector;
template <typename T> inline T made(T x, int y = called(3)) { return inner(x); }
Tensor plain(const Tensor& self);
class API Tensor : public TensorBase {
 public:
  Tensor narrow(int dim) const { return body(dim); }
  template <typename T> T* data_ptr() const;
};
namespace cuda { void stream(); }
}
"""


def test_a_header_says_what_it_declares_and_nothing_of_its_bodies() -> None:
    found = Declared()
    read_header(HEADER, found)
    assert {"Kind", "First", "Second", "Alias", "vector", "made", "plain", "Tensor", "stream"} <= found.names
    assert not {"commented", "inner", "body", "called", "hidden", "narrow"} & found.names
    assert {"narrow", "data_ptr"} <= found.methods["Tensor"]
    assert found.macros == {"TWICE"}
