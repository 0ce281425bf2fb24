"""Small compat headers and constructs, in; how Paddle lacks each, and where it is declared, out."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_lens.native.constructs import Construct, ConstructKind
from migrate_lens.native.offered import Offered, Presence
from migrate_lens.native.units import UnitCheck

HEADERS = {
    "ATen/ops/sum.h": "#pragma once\nnamespace at {\n// sum(x) is explained\nat::Tensor sum(const at::Tensor& x);\n}\n",
    "ATen/Tensor.h": "namespace at {\nclass Tensor : public Base {\n public:\n  Tensor view(int64_t n) const;\n};\n}\n",
    "c10/macros.h": "#define C10_CHECK(x) \\\n  check(x)\n",
    "c10/device.h": "namespace c10 {\nstruct Device {\n  int index;\n};\n}\n",
}


@pytest.fixture
def offered(tmp_path: Path) -> Offered:
    for name, text in HEADERS.items():
        path = tmp_path / "compat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "lib/ATen").mkdir(parents=True)
    command = ("g++", f"-I{tmp_path}/lib", f"-I{tmp_path}/compat", "-I/usr/include")
    return Offered.of([UnitCheck("a.cc", (), True, command=command)], tmp_path / "lib")


def test_only_compat_folders_are_read(offered: Offered, tmp_path: Path) -> None:
    assert offered.roots == (tmp_path / "compat",)


@pytest.mark.parametrize(
    ("api", "kind", "message", "presence", "said"),
    [
        ("at::cumsum", "function", "'cumsum' is not a member of 'at'", Presence.MISSING, "missing altogether"),
        ("at::sum", "function", "'sum' is not a member of 'at'", Presence.ELSEWHERE, "ATen/ops/sum.h:4"),
        ("at::sum", "function", "no matching function for call to 'sum(int)'", Presence.SIGNATURE, "ATen/ops/sum.h:4"),
        (
            "at::Tensor::narrow",
            "method",
            "'class at::Tensor' has no member named 'narrow'",
            Presence.MISSING,
            "missing",
        ),
        (
            "at::Tensor::view",
            "method",
            "no matching function for call to 'at::Tensor::view(std::string)'",
            Presence.SIGNATURE,
            "ATen/Tensor.h:4",
        ),
        ("C10_CHECK", "macro", "'C10_CHECK' was not declared in this scope", Presence.ELSEWHERE, "c10/macros.h:1"),
        ("c10::Device", "type", "'Device' is not a member of 'c10'", Presence.ELSEWHERE, "c10/device.h:2"),
        ("torch/script.h", "header", "torch/script.h: No such file or directory", Presence.MISSING, "missing"),
        ("AT_ERROR", "macro", "'AT_ERROR' was not declared in this scope", Presence.MISSING, "missing"),
    ],
)
def test_how_a_construct_is_lacking(
    offered: Offered, api: str, kind: str, message: str, presence: Presence, said: str
) -> None:
    found, line = offered.presence(Construct(api, ConstructKind(kind), None, message))
    assert found is presence
    assert said in line
