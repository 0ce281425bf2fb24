"""Messages of imports that failed, in; the constructs that were not there, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_samples import library

from migrate_lens.model.report import Site, Stage, Symptom
from migrate_lens.native.imports import link_finding, symbol_construct

CONST_DATA = "_ZNK2at6Tensor14const_data_ptrIfLi0EEEPKT_v"


@pytest.mark.parametrize(
    ("spelled", "want"),
    [
        ("float const* at::Tensor::const_data_ptr<float, 0>() const", ("at::Tensor::const_data_ptr<T>", "method")),
        (
            "paddle::experimental::ScalarBase<paddle::Tensor> "
            "torch::generic_to<paddle::experimental::ScalarBase<paddle::Tensor> >"
            "(torch::IValue const&, torch::_fake_type<paddle::experimental::ScalarBase<paddle::Tensor> >)",
            ("schema type Scalar", "registry"),
        ),
        (
            "c10::operator<<(std::basic_ostream<char, std::char_traits<char> >&, c10::TensorOptions const&)",
            ("c10::operator<<(TensorOptions)", "function"),
        ),
        ("at::tensor(c10::ArrayRef<double>, c10::TensorOptions const&)", ("at::tensor", "function")),
        ("vtable for torch::CustomClassHolder", ("torch::CustomClassHolder", "registry")),
        ("scan_rows(long, long)", ("scan_rows", "own")),
    ],
)
def test_a_symbol_is_mapped_back_to_its_construct(spelled: str, want: tuple[str, str]) -> None:
    assert symbol_construct(spelled)[:2] == want


def test_an_undefined_symbol_names_the_lines_that_use_it(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("#include <x>\n// const_data_ptr\nauto p = x.const_data_ptr<float>();\n")
    found = link_finding(f"ImportError: /x/_C.so: undefined symbol: {CONST_DATA}", library(tmp_path), None)
    assert found is not None
    assert (found.key.symptom, found.key.api) == (Symptom.LINK_ERROR, "at::Tensor::const_data_ptr<T>")
    assert (found.stage, found.sites) == (Stage.IMPORT, (Site("a.cc", 3),))


def test_a_library_of_torchs_that_is_not_there(tmp_path: Path) -> None:
    message = "ImportError: libc10.so: cannot open shared object file: No such file or directory"
    found = link_finding(message, library(tmp_path), None)
    assert found is not None
    assert (found.key.api, found.facts["torch_library"]) == ("libc10.so", True)


def test_an_init_function_of_another_name(tmp_path: Path) -> None:
    message = "ImportError: dynamic module does not define module export function (PyInit__C)"
    found = link_finding(message, library(tmp_path), None)
    assert found is not None
    assert found.facts["construct_kind"] == "init"


def test_an_extension_built_under_another_name(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (target / "pkg").mkdir(parents=True)
    (target / "pkg" / "_C_pd_.so").write_bytes(b"")
    root = tmp_path / "pkg"
    root.mkdir()
    found = link_finding("ModuleNotFoundError: No module named 'pkg._C'", library(root), target)
    assert found is not None
    assert found.key.symptom is Symptom.IMPORT_ERROR
    assert link_finding("ModuleNotFoundError: No module named 'numpy.x'", library(root), target) is None


def test_other_messages_are_not_ours(tmp_path: Path) -> None:
    assert link_finding("AttributeError: module 'paddle' has no attribute 'x'", library(tmp_path), None) is None
