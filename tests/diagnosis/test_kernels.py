"""Logs of marked kernels, in; what is at fault inside of a kernel, and what it is called, out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.diagnosis.kernels.call_log import Record, read_log
from migrate_lens.diagnosis.kernels.call_marks import Mark, MarkKind
from migrate_lens.diagnosis.kernels.construct_at_fault import name_of, registration
from migrate_lens.diagnosis.kernels.parting import Told, WhereApart, find_parting
from migrate_lens.model.report import Outcome, Runtime, Site, Stage, StageResult
from migrate_lens.native.build import BuildRun
from migrate_lens.native.casters import declared_for_others, lacks_caster
from migrate_lens.native.compiler import CompilerCall

CONSTRUCT, NOT_ENTERED, ARGUMENTS = WhereApart.CONSTRUCT, WhereApart.NOT_ENTERED, WhereApart.ARGUMENTS
OWN, SAME = WhereApart.OWN, WhereApart.SAME
# 1 enters the kernel, 2 and 3 are calls, 4 is a call whose inputs are not all told, 5 is random, 9 returns.
TOLD = {n: Told(n != 4, n == 5, n not in (1, 9)) for n in range(1, 10)}


def tensor(dtype: str, data: str = "00000000", strides: tuple[int, ...] = (1,), size: int = 1) -> list[Any]:
    return ["T", dtype, [size], data, "cpu", list(strides)]


def log(folder: Path, *rows: list[Any]) -> tuple[Record, ...]:
    path = folder / "log"
    path.write_text("".join(json.dumps(row) + "\n" for row in (["@", 1, 1, ""], *rows)))
    return read_log(path)[1, 1, ""]


def called(mark: int, result: Any, *given: Any) -> list[list[Any]]:
    return [[">", mark, "const at::Tensor&", list(given)], ["<", mark, result]]


FLOAT, LONG, ENTRY = tensor("float32"), tensor("int64", "0000000000000000"), ["=", 1, [3]]

PAIR, APART = (tensor("float32", "00" * 8, (stride,), 2) for stride in (1, 2))


@pytest.mark.parametrize(
    ("want", "got", "how", "blamed"),
    [
        ([ENTRY, *called(2, LONG, 3)], [ENTRY, *called(2, LONG, 3)], SAME, []),
        ([ENTRY, *called(2, LONG, 3)], [ENTRY, *called(2, FLOAT, 3)], CONSTRUCT, [2]),
        ([ENTRY, *called(2, LONG, 3)], [ENTRY, *called(2, FLOAT, 4)], OWN, []),
        ([ENTRY, *called(2, LONG, 3)], [], NOT_ENTERED, []),
        ([ENTRY], [["=", 1, [4]]], ARGUMENTS, []),
        ([ENTRY, *called(2, LONG, 3)], [ENTRY, [">", 2, "", [3]]], CONSTRUCT, [2]),
        ([ENTRY, *called(2, LONG, 3), *called(3, 1, 3)], [ENTRY, *called(2, FLOAT, 3), *called(3, 2, 3)],
         CONSTRUCT, [2]),
        ([ENTRY, *called(2, LONG, 3), *called(3, LONG, 3)], [ENTRY, *called(2, FLOAT, 3), *called(3, FLOAT, 3)],
         CONSTRUCT, [2, 3]),
        ([ENTRY, *called(2, LONG, 3), *called(3, LONG, LONG)], [ENTRY, *called(2, FLOAT, 3), *called(3, FLOAT, FLOAT)],
         CONSTRUCT, [2]),
        ([ENTRY, *called(2, LONG, 3), *called(4, LONG, 3)], [ENTRY, *called(2, FLOAT, 3), *called(4, FLOAT, 3)],
         CONSTRUCT, [2]),
        ([ENTRY, [">", 3, "", []], *called(2, LONG, 3), ["<", 3, LONG]],
         [ENTRY, [">", 3, "", []], *called(2, FLOAT, 3), ["<", 3, FLOAT]], CONSTRUCT, [2]),
        ([ENTRY, *called(5, FLOAT)], [ENTRY, *called(5, tensor("float32", "0000803f"))], SAME, []),
        ([ENTRY, ["<", 9, 3]], [ENTRY, ["<", 9, 4]], OWN, []),
        ([ENTRY, *called(6, 1)], [ENTRY, *called(7, 1)], SAME, []),
        ([ENTRY, *called(2, 1), *called(3, 1)], [ENTRY, *called(3, 1), *called(2, 1)], OWN, []),
        ([ENTRY, *called(2, LONG)], [ENTRY], OWN, []),
        ([ENTRY, *called(2, PAIR)], [ENTRY, *called(2, APART)], CONSTRUCT, [2]),
        ([ENTRY, *called(2, FLOAT)], [ENTRY, *called(2, tensor("float32", strides=(7,)))], SAME, []),
    ],
)  # fmt: skip
def test_where_two_runs_of_a_kernel_go_apart(
    want: list[list[Any]], got: list[list[Any]], how: str, blamed: list[int], tmp_path: Path
) -> None:
    verdict = find_parting(log(tmp_path, *want), log(tmp_path, *got) if got else (), TOLD)
    assert (verdict.how, [blame.mark for blame in verdict.blames]) == (how, blamed)


def test_a_dtype_that_differs_is_a_matter_of_dtypes(tmp_path: Path) -> None:
    pairs = [
        (["D", "int64"], ["D", "float32"]),
        (["t", [["D", "int64"], ["V", "cpu"]]], ["t", [["D", "bool"], ["V", "cpu"]]]),
    ]
    for one, other in pairs:
        verdict = find_parting(log(tmp_path, ENTRY, *called(2, one)), log(tmp_path, ENTRY, *called(2, other)), TOLD)
        assert [blame.differs.aspect for blame in verdict.blames if blame.differs] == ["dtype"]


def test_a_log_that_a_crash_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('["<",1,2]\n["@",4,2,""]\n["<",1,3]\n["@",0,0,""]\n["<",1,5]\n["@",5,1,""]\n[">",2,"at')
    assert {call: [r.values for r in records] for call, records in read_log(path).items()} == {
        (4, 2, ""): [(3,)], (5, 1, ""): [],
    }  # fmt: skip
    assert read_log(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("kind", "name", "receiver", "generic", "api"),
    [
        ("method", "to", "const at::Tensor&", False, "at::Tensor::to"),
        ("method", "index", "c10::Device", False, "c10::Device::index"),
        ("method", "dtype", "c10::TensorOptions", True, "c10::TensorOptions::dtype<T>"),
        ("function", "torch::empty", "void", False, "torch::empty"),
        ("cast", "int", "c10::ScalarType", False, "static_cast<int>(at::ScalarType)"),
    ],
)
def test_a_call_is_named_as_torch_documents_it(kind: str, name: str, receiver: str, generic: bool, api: str) -> None:
    assert name_of(Mark(MarkKind(kind), name, "a.cc", 1, generic, True, 0, 1), receiver)[0] == api


def test_a_method_of_a_class_is_named_by_the_form_of_its_registration(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(
        'm.class_<A>("A")\n  .def("get", &A::get)\n  .def("bump",\n    [](P self) { return 1; })\n'
        '  .def_static("make", make);\n'
    )
    assert registration(tmp_path, "bump") == ("torch::class_::def(lambda)", Site("a.cc", 3))
    assert registration(tmp_path, "get") == ("torch::class_::def(pointer)", Site("a.cc", 2))
    assert registration(tmp_path, "make") == ("torch::class_::def_static(function)", Site("a.cc", 5))
    assert registration(tmp_path, "other") is None


PYBIND = """\
#pragma once
namespace pybind11::detail {
struct type_caster_generic {};
template <class T> struct type_caster : type_caster_generic {};
template <> struct type_caster<int> {};
#ifdef OTHER_BUILD
template <>
struct type_caster<at::Tensor> {};
#endif
template <class T> using make_caster = type_caster<T>;
}
namespace at { struct Tensor; }
"""


@pytest.mark.native
def test_a_caster_is_asked_for_by_compiling(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "extension.h").write_text(PYBIND)
    args = ("-std=c++17", "-I", str(tmp_path), "-c", "a.cc", "-o", "a.o")
    call = CompilerCall("g++", ("g++",), args, tmp_path, 0.0, 0, "", tmp_path / "a.cc", tmp_path / "a.o")
    build = BuildRun(StageResult(Runtime.TARGET, Stage.BUILD, "build", Outcome.PASSED, 0.0), tmp_path, compiles=(call,))
    asked = {kind: lacks_caster(build, kind, tmp_path / "work") for kind in ("int", "at::Tensor", "at::Nothing")}
    assert asked == {"int": False, "at::Tensor": True, "at::Nothing": None}
    assert declared_for_others(build, "at::Tensor") == "torch/extension.h"
    assert declared_for_others(build, "at::Nothing") == ""
