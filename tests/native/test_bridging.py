"""Sources with missing constructs, in; the copy in which throw-away stand-ins let a compiler go on, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_samples import FakeTorch

from migrate_lens.native.bridging import PRELUDE, Bridge, hides
from migrate_lens.native.constructs import Construct, ConstructKind
from migrate_lens.native.diagnostics import Location

TORCH = FakeTorch(tensors=["at::Tensor::select", "at::cumsum"])


def at(path: Path, api: str, kind: str, line: int = 1) -> Construct:
    text = path.read_text().splitlines()[line - 1]
    column = text.index(api.rpartition("::")[2].removeprefix("operator")) + 1
    return Construct(api, ConstructKind(kind), Location(path, line, column), "said")


def bridged(root: Path, text: str, *wanted: tuple[str, str]) -> tuple[bool, str, str]:
    (root / "lib").mkdir()
    source = root / "lib" / "a.cc"
    source.write_text(text)
    bridge = Bridge(root / "lib", root / "copy")
    bridge.start()
    grown = bridge.add([at(source, api, kind) for api, kind in wanted], TORCH)
    prelude = bridge.copy / PRELUDE
    assert source.read_text() == text
    return grown, (bridge.copy / "a.cc").read_text(), prelude.read_text() if prelude.exists() else ""


def test_a_method_in_a_chain_is_stood_in_for(tmp_path: Path) -> None:
    grown, copy, _ = bridged(tmp_path, "y = x.select(0, 1).flatten();\n", ("at::Tensor::select", "method"))
    assert grown
    assert copy == "y = x.MIGRATE_LENS_METHOD(0, 1).flatten();\n"


def test_a_function_in_an_expression_is_stood_in_for(tmp_path: Path) -> None:
    grown, copy, _ = bridged(tmp_path, "y = at::cumsum(x, 0) * 2;\n", ("at::cumsum", "function"))
    assert grown
    assert copy == "y = MIGRATE_LENS_FUNCTION(x, 0) * 2;\n"


def test_an_operator_a_macro_and_a_class_get_declarations(tmp_path: Path) -> None:
    text = 'struct T : torch::autograd::Function<T> { int x = a * b; f() { AT_DISPATCH_ALL_TYPES(t, "n", [] {}); } };\n'
    wanted = [
        ("torch::autograd::Function", "type"),
        ("at::Tensor::operator*", "operator"),
        ("AT_DISPATCH_ALL_TYPES", "macro"),
    ]
    grown, copy, prelude = bridged(tmp_path, text, *wanted)
    assert grown
    assert copy == text
    assert "template <class...> struct Function {" in prelude
    assert "Tensor operator*(const Tensor&, const T&);" in prelude
    assert "#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...)" in prelude


def test_a_call_that_gives_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    grown, copy, _ = bridged(tmp_path, "auto n = x.item().toInt();\n", ("at::Tensor::item", "method"))
    assert not grown
    assert copy == "auto n = x.item().toInt();\n"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("return x.select(0, 1);", False),
        ("at::Tensor y = x.select(f(0),\n  1);", False),
        ("auto y = x.select(0, 1);", True),
        ("return x.select(0, 1) + y;", True),
        ("return f(x.select(0, 1));", True),
        ("g = &x.select;", True),
    ],
)
def test_what_may_hide_something(tmp_path: Path, text: str, want: bool) -> None:
    (tmp_path / "a.cc").write_text(text)
    assert hides(at(tmp_path / "a.cc", "at::Tensor::select", "method")) is want
