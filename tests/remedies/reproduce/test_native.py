"""Native sources: what is cut, what a project of it looks like, and bridges as edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_reports import gap

from migrate_lens.model.report import Site
from migrate_lens.remedies.fix import bridges
from migrate_lens.remedies.fix.patches import Comment, patched
from migrate_lens.remedies.fix.trials import Replacement
from migrate_lens.remedies.reproduce.native import (
    MAIN,
    SMALL,
    UNIT,
    chunks,
    cuts,
    library_project,
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


@given(st.lists(st.sampled_from(["int a;", "// b {", "struct S {", "};", "#if X", "#endif", 'auto s = "}{";', ""])))
def test_chunks_lose_nothing(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert "".join(chunks(text)) == text


def test_a_project_builds_on_either_side_by_one_file() -> None:
    project = unit_project("int x;\n", "x", own_entry=False)
    assert set(project.files) == {"setup.py", UNIT, MAIN}
    assert "PyInit_mre" in project.files[UNIT]
    assert "import mre" in project.files[MAIN]


def test_a_large_library_is_not_its_own_reproduction(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("x = 1\n" * (SMALL + 1))
    assert library_project(tmp_path, None, "x", "") is None


def test_a_small_library_takes_its_probe_and_a_check(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    probe = tmp_path / "smoke.py"
    probe.write_text("import lib\nresult = lib.f()\n")
    project = library_project(tmp_path, probe, "", "assert result == 3, result")
    assert project is not None
    assert project.files[MAIN].rstrip().endswith("result = lib.f()\nassert result == 3, result")
    assert "smoke.py" not in project.files


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
