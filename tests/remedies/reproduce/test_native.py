"""Native sources: what is cut, what a project of it looks like, and bridges as edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_reports import gap

from migrate_lens.model.report import Site
from migrate_lens.remedies.fix import bridges
from migrate_lens.remedies.fix.patches import Comment, patched
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.reproduce.native import (
    MAIN,
    SMALL,
    UNIT,
    cuts,
    fewer_parts,
    library_projects,
    unit_project,
)
from migrate_lens.remedies.reproduce.native_reproduce import needle_of

_UNIT = """\
#include <ATen/ATen.h>
#define TWICE(x) \\
  ((x) * 2)

// helper; not needed
static int unused() { return '{'; }

static int64_t dim() {
  return 0;
}

at::Tensor run(const at::Tensor& x) {
  return at::cumsum(x, dim());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("run", &run);
}
"""
_LINE = _UNIT.splitlines().index("  return at::cumsum(x, dim());") + 1


def test_a_unit_is_cut_to_what_stands_at_the_line() -> None:
    least, needed, whole = cuts(_UNIT, _LINE)
    assert "cumsum" in least
    assert "unused" not in least
    assert "#include <ATen/ATen.h>" in least
    assert "int64_t dim()" in needed
    assert "unused" not in needed
    assert "unused" in whole
    assert "PYBIND11" not in whole


def test_a_project_builds_on_either_side_by_one_file() -> None:
    project = unit_project("int x;\n", "x", own_entry=False)
    assert set(project.files) == {"setup.py", UNIT, MAIN}
    assert "PyInit_mre" in project.files[UNIT]
    assert "import mre" in project.files[MAIN]


_LIBRARY = {
    "setup.py": """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension  # by jane

setup(
    name="lib",
    author="Jane Doe",
    packages=["lib"],
    ext_modules=[CppExtension(name="lib._C", sources=["csrc/ops.cc", "csrc/other.cc"])],
    cmdclass={"build_ext": BuildExtension},
)
""",
    "lib/__init__.py": """\
'''Jane's library.'''
import torch
import json
from . import _C

ops = torch.ops.lib
def unused():
    return json.dumps({})
""",
    "lib/extra.py": "import torch\n",
    "csrc/ops.h": "#pragma once\n#include <ATen/ATen.h>\nnamespace lib { int64_t dim(); }\n",
    "csrc/ops.cc": """\
// Copyright Jane Doe, token ghp_a1B2c3D4e5F6g7H8i9J0
#include <Python.h>
#include "ops.h"
#include <torch/library.h>
namespace lib {
int64_t dim() { return 0; }  // zero
at::Tensor run(const at::Tensor& x) { return at::cumsum(x, dim()); }
at::Tensor other(const at::Tensor& x) { return x; }
}
extern "C" PyObject* PyInit__C(void) {
  static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr};
  return PyModule_Create(&def);
}
TORCH_LIBRARY(lib, m) {
  m.def("run(Tensor x) -> Tensor", &lib::run);
  m.def("other(Tensor x) -> Tensor", &lib::other);
}
""",
    "csrc/other.cc": "#include <ATen/ATen.h>\n/* Jane */ int nothing() { return 1; }\n",
}
_SMOKE = """\
import torch
import lib

print('by jane')


def unused():
    pass


result = lib.ops.run(torch.ones(2))
"""


def _library(folder: Path, **others: str) -> Path:
    for name, text in {**_LIBRARY, "smoke.py": _SMOKE, **others}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "smoke.py"


def test_a_library_is_cut_to_what_its_program_reaches(tmp_path: Path) -> None:
    probe = _library(tmp_path)
    project, *_ = library_projects(tmp_path, probe, "", "assert result.sum() == 3")
    assert set(project.sources) == {"setup.py", "lib/__init__.py", "csrc/ops.h", "csrc/ops.cc"}
    everything = "\n".join(project.files.values())
    assert [
        word for word in ("Jane", "jane", "ghp_", "//", "/* ", "other", "unused", "json") if word in everything
    ] == []
    assert "at::cumsum(x, dim())" in project.sources["csrc/ops.cc"]
    assert "int64_t dim()" in project.sources["csrc/ops.cc"]
    assert project.files[MAIN].rstrip().endswith("result = lib.ops.run(torch.ones(2))\nassert result.sum() == 3")


def test_a_library_that_stays_large_is_not_its_own_reproduction(tmp_path: Path) -> None:
    calls = "\n".join(f"x{n} = lib.ops.run(torch.ones(2))" for n in range(SMALL))
    looked_at = ", ".join(f"x{n}" for n in range(SMALL))
    probe = _library(tmp_path, **{"smoke.py": f"import torch\nimport lib\n{calls}\nresult = [{looked_at}]\n"})
    assert list(library_projects(tmp_path, probe, "x", "")) == []


def test_parts_are_left_out_one_at_a_time(tmp_path: Path) -> None:
    probe = _library(tmp_path)
    project, *_ = library_projects(tmp_path, probe, "", "")
    smaller = list(fewer_parts(project))
    assert all(one.length <= project.length for one in smaller)
    assert any("torch/library.h" not in one.sources["csrc/ops.cc"] for one in smaller)
    assert any("csrc/ops.h" not in one.sources for one in smaller)
    assert all("PyInit__C" in one.sources["csrc/ops.cc"] for one in smaller)


@pytest.mark.parametrize(("api", "symptom", "needle"), [
    ("at::cumsum", "compile_error", "cumsum"),
    ("torch/torch.h", "missing_header", "torch/torch.h"),
    ("at::Tensor::const_data_ptr<T>", "import_error", "const_data_ptr"),
    ("torch::Library::def(schema, tags)", "compile_error", "def"),
])  # fmt: skip
def test_what_a_failure_must_name(api: str, symptom: str, needle: str) -> None:
    assert needle_of(gap(api, symptom)) == needle


# -- bridges -----------------------------------------------------------------------------------------------------------

_COMMENT = Comment("me", "TORCH_FN", "it is missing", "the same address", "take it out")


def _bridged(folder: Path, text: str, api: str, line: int) -> str:
    (folder / "a.cc").write_text(text)
    found = bridges.find(gap(api, "compile_error", sites=(Site("a.cc", line),)), folder)
    assert isinstance(found, tuple)
    assert all(isinstance(one, Replacement) for one in found)
    return patched(text.encode(), [(found, _COMMENT)]).decode()


@pytest.mark.parametrize(
    ("symbol", "needle"),
    [
        (
            "c10::operator<<(std::basic_ostream<char, std::char_traits<char> >&, c10::TensorOptions const&)",
            "run|TensorOptions",
        ),
        ("at::Tensor::const_data_ptr<float>() const", "run|const_data_ptr"),
        ("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)", "run|add_Tensor"),
        ("c10::operator*(c10::Scalar const&, double)", "run|Scalar"),
    ],
)
def test_a_failure_names_the_symbol_that_is_undefined_or_what_was_called(symbol: str, needle: str) -> None:
    assert needle_of(gap("x::run(T)", "link_error", actual=f"undefined symbol: {symbol}")) == needle


def test_names_are_added_below_the_includes(tmp_path: Path) -> None:
    text = _bridged(tmp_path, "#include <a.h>\n#include <b.h>\nint x = TORCH_FN(f);\n", "TORCH_FN", 3)
    lines = text.splitlines()
    assert lines[:2] == ["#include <a.h>", "#include <b.h>"]
    assert lines[2].startswith("// TODO(me): remove this workaround after Paddle compat supports TORCH_FN")
    assert lines.index("#ifndef TORCH_FN") < lines.index("int x = TORCH_FN(f);")


def test_a_missing_header_is_asked_for_first(tmp_path: Path) -> None:
    text = _bridged(tmp_path, "#include <torch/torch.h>\nint x;\n", "torch/torch.h", 1)
    assert "#if __has_include(<torch/torch.h>)\n#include <torch/torch.h>\n#else\n" in text
    assert text.endswith("#endif\nint x;\n")


def test_a_call_site_is_changed_on_its_line_only(tmp_path: Path) -> None:
    before = "auto a = x.const_data_ptr<float>();\nauto b = y.const_data_ptr<float>();\n"
    text = _bridged(tmp_path, before, "at::Tensor::const_data_ptr<T>", 2)
    assert text.startswith("auto a = x.const_data_ptr<float>();\n// TODO(me)")
    assert text.endswith("auto b = static_cast<const at::TensorBase&>(y).const_data_ptr<float>();\n")
