"""Marks in C++ sources: what is marked, what is left alone, and that a marked program says what it did."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_lens.diagnosis.kernels.call_log import Record, read_log
from migrate_lens.diagnosis.kernels.call_marks import Mark, marked, marks
from migrate_lens.diagnosis.kernels.marked_build import MARKING
from migrate_lens.diagnosis.kernels.parting import Told, WhereApart, find_parting


def found(text: str, *, known: str = "") -> list[tuple[str, str]]:
    """Kind and text of each mark that is a call."""
    made = marks(text, "a.cc", lambda name: f"at::{name}" if name == known else "")
    return [(m.kind, text[m.begin : m.end]) for m in made if m.kind in ("function", "method", "cast")]


def body(code: str) -> str:
    return "int64_t run(const at::Tensor& x, int64_t k) {\n" + code + "\n}\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("at::arange(k);", [("function", "at::arange(k)")]),
        ("x.device().index();", [("method", "x.device()"), ("method", "x.device().index()")]),
        ("p->size(0);", [("method", "p->size(0)")]),
        ("x.item<int64_t>();", [("method", "x.item<int64_t>()")]),
        ("static_cast<int>(k);", [("cast", "static_cast<int>(k)")]),
        ("int64_t(k);", [("cast", "int64_t(k)")]),
        ("auto y = at::cat({at::ones(2), x}, 0);", [("function", "at::cat({at::ones(2), x}, 0)"),
                                                    ("function", "at::ones(2)")]),
        ("if (a < b && c > (d)) at::abs(x);", [("function", "at::abs(x)")]),
        ("TORCH_CHECK(x.dim() == 2, \"two, not \", k);", [("method", "x.dim()")]),
        ("std::vector<int> v(3); int n(k); helper(k);", []),
        ("// at::abs(x);\n/* x.t() */ auto s = \"x.t()\"; char c = '(';", []),
        ("static_assert(sizeof(at::max(x)) > 1); using T = decltype(x.t()); constexpr int n = f(at::max(1));", []),
        ("#define A at::abs(x)\n#if at::max(1)\n#endif", []),
        ("auto r = R\"(at::abs(x))\";", []),
    ],
)  # fmt: skip
def test_calls_in_a_function_are_marked_and_nothing_else(code: str, expected: list[tuple[str, str]]) -> None:
    assert found(body(code)) == expected


def test_lines_keep_their_numbers() -> None:
    text = body("auto y = x // so\n  .to(at::kLong)\n  /* and */ .sum(\n0);\nreturn y.numel(\n);")
    made = marks(text, "a.cc", lambda name: "")
    assert marked(text, enumerate(made, 1)).count("\n") == text.count("\n")
    assert [(m.name, m.line) for m in made if m.kind == "method"] == [("to", 3), ("sum", 4), ("numel", 6)]


def test_plain_names_are_marked_only_where_torch_has_them() -> None:
    assert found(body("return abs(x);"), known="abs") == [("function", "abs(x)")]
    assert found(body("Tensor abs(x);"), known="abs") == []


@pytest.mark.parametrize(
    "text",
    [
        "struct A : torch::CustomClassHolder { at::Tensor x = at::ones(2); };",
        "namespace n { at::Tensor x = at::ones(2); }",
        "TORCH_LIBRARY(n, m) { m.def(\"f\", &f); m.def(torch::schema(\"g() -> int\"), g); }",
        "PYBIND11_MODULE(n, m) { m.def(\"f\", &f, py::arg(\"x\")); }",
        "static PyMethodDef table[] = { {\"f\", wrap(at::f), 0} };",
        "at::Tensor f(at::Tensor x = at::ones(2));",
    ],
)  # fmt: skip
def test_what_is_no_code_of_a_kernel_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_the_body_of_a_lambda_that_is_registered_is_a_kernel() -> None:
    text = 'TORCH_LIBRARY(n, m) { m.def("f(Tensor x) -> Tensor", [](const at::Tensor& x) { return x.t(); }); }'
    assert found(text) == [("method", "x.t()")]
    entry = next(m for m in marks(text, "a.cc", lambda name: "") if m.kind == "entry")
    assert entry.told == ("x",)


@pytest.mark.parametrize(
    ("code", "closed"),
    [
        ("at::zeros({2, k}, at::kLong);", True), ("at::abs(x);", True), ("at::abs(x.t());", True),
        ("at::zeros(k + 1);", False), ("at::abs(v[0]);", False),
    ],
)  # fmt: skip
def test_a_call_is_closed_where_all_that_it_is_given_is_told(code: str, closed: bool) -> None:
    made = marks(body(code), "a.cc", lambda name: "")
    assert next(m for m in made if m.kind == "function").closed is closed


FRAMEWORK = """\
#pragma once
#include <cstdint>
#include <string>
#include <vector>
namespace at {
enum class ScalarType : int8_t { Byte, Char, Short, Int, Long, Half, Float, Double, ComplexFloat, ComplexDouble, Bool,
                                 BFloat16, Undefined };
struct Device {
  int index() const { return INDEX; }
  bool is_cuda() const { return false; }
  bool is_cpu() const { return true; }
};
struct Tensor {
  std::vector<int64_t> extents; mutable std::vector<float> values;
  bool defined() const { return true; }
  ScalarType scalar_type() const { return ScalarType::Float; }
  const std::vector<int64_t>& sizes() const { return extents; }
  std::vector<int64_t> strides() const { return {1}; }
  void* data_ptr() const { return values.data(); }
  Device device() const { return {}; }
  void zero() const { for (float& v : values) v = 0; }
  Tensor twice() const { Tensor r = *this; for (float& v : r.values) v *= FACTOR; return r; }
};
inline Tensor pair(float a, float b) { if (THROWS) throw 1; return Tensor{{2}, {a, b}}; }
}
"""
KERNEL = """\
#include "framework.h"
#include <memory>
struct Own { int n; int get() const { return n; } };
constexpr int three() { return 3; }
std::unique_ptr<Own> make(int n) { auto made = std::make_unique<Own>(Own{n}); return made; }
at::Tensor run(const at::Tensor& x, int64_t k) {
  Own own{2};
  x.zero();
  auto y = at::pair(k, own.get());
  const auto& z = y.twice();
  int64_t i = z.device().index();
  return i > 5 ? x : z.twice();
}
int main() { try { run(at::pair(1, 2), three()); } catch (int) { return 0; } return make(0)->get(); }
"""


def logged(folder: Path, marks_of_it: tuple[Mark, ...], *macros: str) -> Path:
    """The log of the kernel above, compiled with marks and run."""
    folder.mkdir()
    (folder / "framework.h").write_text(FRAMEWORK)
    (folder / "a.cc").write_text(marked(KERNEL, enumerate(marks_of_it, 1)))
    program, log = folder / "program", folder / "log"
    command = ["g++", "-std=c++17", "-O0", *MARKING, *macros, str(folder / "a.cc"), "-o", str(program)]
    subprocess.run(command, check=True)
    log.write_text('["@",1,1,""]\n')
    subprocess.run([str(program)], env=os.environ | {"MIGRATE_LENS_KERNEL_LOG": str(log)}, check=True)
    return log


@pytest.mark.native
def test_a_marked_program_does_the_same_and_says_where_two_builds_go_apart(tmp_path: Path) -> None:
    made = marks(KERNEL, "a.cc", lambda name: "")
    told = {n: Told(m.closed, False, m.kind not in ("return", "entry")) for n, m in enumerate(made, 1)}
    usual = ("-DINDEX=0", "-DFACTOR=2", "-DTHROWS=0")
    base, same, other, device, throws = (
        read_log(logged(tmp_path / str(n), made, *macros))[1, 1, ""]
        for n, macros in enumerate([
            usual, usual, ("-DINDEX=0", "-DFACTOR=3", "-DTHROWS=0"), ("-DINDEX=-1", "-DFACTOR=2", "-DTHROWS=0"),
            ("-DINDEX=0", "-DFACTOR=2", "-DTHROWS=1"),
        ])
    )  # fmt: skip
    assert find_parting(base, same, told).how == WhereApart.SAME

    def blamed(got: tuple[Record, ...]) -> list[str]:
        verdict = find_parting(base, got, told)
        assert verdict.how == WhereApart.CONSTRUCT
        return [made[b.mark - 1].name for b in verdict.blames]

    assert blamed(other)[0] == "twice"
    assert blamed(device) == ["index"]
    assert blamed(throws) == ["at::pair"]
    tensor = next(r.values[0] for r in base if r.sign == "<" and made[r.mark - 1].name == "twice")
    assert tensor[:3] == ("T", "float32", (2,))


@pytest.mark.native
def test_what_the_library_itself_computes_is_not_blamed_on_a_call(tmp_path: Path) -> None:
    made = marks(KERNEL, "a.cc", lambda name: "")
    told = {n: Told(m.closed, False, m.kind not in ("return", "entry")) for n, m in enumerate(made, 1)}
    usual = ("-DINDEX=0", "-DFACTOR=2", "-DTHROWS=0")
    base = read_log(logged(tmp_path / "a", made, *usual))[1, 1, ""]
    other = [replace(r, values=("other",)) if made[r.mark - 1].name == "twice" and r.sign == ">" else r for r in base]
    assert find_parting(base, other, told).how == WhereApart.OWN
