"""Strategies: what is suggested for a call; whether it works is tried elsewhere."""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest
from fake_lab import FakeLab, finished, raised, tensor

from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, EventKind, Place, PlaceKind
from migrate_lens.remedies.fix.candidates import candidates
from migrate_lens.remedies.fix.importing import edits, shims
from migrate_lens.remedies.fix.slots import apply, site_of
from migrate_lens.remedies.fix.strategies import Missing, Troubled
from migrate_lens.remedies.lab import Trial


def _templates(text: str, api: str, symptom: str, values: tuple[Any, ...], want: Any = None, **more: Any) -> list[str]:
    node = ast.parse(text).body[0]
    call = node.value if isinstance(node, ast.Expr) else node
    place = Place("m", "m.py", 1, 0, 1, 1, PlaceKind.CALL, (), text)
    event = Event(EventKind.CALL, place, 1, "", api, (), want)
    site = site_of(event, call)
    assert site is not None
    return [c.template for c in candidates(Troubled(api, Symptom(symptom), site, values, want, **more))]


_X, _N = tensor([1.0, 2.0]), tensor([1, 2], "int64")


@pytest.mark.parametrize(("text", "api", "symptom", "values", "want", "template"), [
    ("torch.std(x, dim=0)", "torch.std", "missing_argument", (_X, 0), _X, "torch.std({0}, {1})"),
    ("torch.add(x, 1)", "torch.add", "exception", (_X, 1), _X, "({0} + {1})"),
    ("x.add_(1)", "torch.Tensor.add_", "exception", (_X, 1), _X, "{0}.copy_({0} + {1})"),
    ("x + y", "torch.Tensor.add", "exception", (_X, _N), _X, "{0} + {1}.to(torch.float32)"),
    ("torch.allclose(x, y)", "torch.allclose", "value", (_X, _X), True, "bool(torch.allclose({0}, {1}))"),
    ("torch.cat([x, y])", "torch.cat", "exception", (("L", [_N, _X]),), _X,
     "torch.cat([t.to(torch.float32) for t in {0}])"),
    ("x.det()", "torch.Tensor.det", "missing_api", (_X,), _X, "torch.linalg.det({0})"),
    ("torch.square(x, out=b)", "torch.square", "missing_argument", (_X, _X), _X, "{1}.copy_(torch.square({0}))"),
    ("x += y", "torch.Tensor.iadd", "alias", (_X, _X), _X, "{0}.add_({1})"),
    ("torch.max(x, dim=1)", "torch.max", "missing_argument", (_X, 1), None,
     "(lambda t, i: (t.gather({1}, i).squeeze({1}), i.squeeze({1})))({0}, torch.argmax({0}, {1}, True))"),
    ("nn.ReLU(inplace=True)", "torch.nn.ReLU", "missing_argument", (True,), None, "nn.ReLU()"),
], ids=str)  # fmt: skip
def test_a_way_is_suggested(text: str, api: str, symptom: str, values: Any, want: Any, template: str) -> None:
    assert template in _templates(text, api, symptom, values, want)


def test_a_query_that_is_not_there_gets_a_gate() -> None:
    found = _templates("torch.backends.mps.is_available()", "torch.backends.mps.is_available", "missing_api", (), False,
                       missing=Missing("torch", "backends"))  # fmt: skip
    assert '(torch.backends.mps.is_available() if hasattr(torch, "backends") else False)' in found


def test_an_answer_that_depends_on_a_variable_gets_none() -> None:
    found = _templates("torch.can_cast(a, b)", "torch.can_cast", "missing_api", (("D", "int32"), ("D", "int64")), True,
                       missing=Missing("torch", "can_cast"))  # fmt: skip
    assert not any("hasattr" in template for template in found)


# -- imports -----------------------------------------------------------------------------------------------------------


def _rewritten(source: bytes, name: str, lab: FakeLab) -> list[str]:
    node = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom))
    place = Place("m", "m.py", 1, 0, 1, 1, PlaceKind.FROM_IMPORT, (), "")
    event = Event(EventKind.CALL, place, 1, name, f"{node.module}.{name}", ())
    return [apply(source, [made]).decode() for made, _ in edits(event, node, source, lab)]


def test_a_public_module_with_the_same_object_is_named() -> None:
    lab = FakeLab(lambda source: Trial(finished("torch.nn import" in source), finished("torch.nn import" in source)))
    source = b"import torch\nfrom torch.nn.modules.linear import Linear, Bilinear as B  # kept\n"
    assert _rewritten(source, "Linear", lab) == [
        "import torch\nfrom torch.nn.modules.linear import Bilinear as B; from torch.nn import Linear  # kept\n"
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_private_helper_gets_a_stand_in_where_it_is_missing(newline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    lab = FakeLab(lambda source: Trial(raised("ImportError"), raised("ImportError")))
    source = newline.join(["def f(x):", "    from torch.nn.modules.utils import _pair as p", "    return p(x)", ""])
    (text,) = _rewritten(source.encode(), "_pair", lab)
    space: dict[str, Any] = {}
    exec(text, space)
    assert space["f"](3) == (3, 3)
    assert space["f"]([1, 2]) == (1, 2)
    assert text.count("\n") == text.count(newline)


def test_every_stand_in_defines_its_name_and_nothing_else() -> None:
    for name, shim in shims().items():
        names = [n.name for n in ast.parse(shim.code).body if isinstance(n, ast.FunctionDef)]
        assert names == [name.rpartition(".")[2]]
