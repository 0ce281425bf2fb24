"""A call in a file, in; what already guards it, and how its result is used, out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from fake_lab import FakeLab, finished, raised, tensor

from migrate_lens.model.report import BuildEntry, BuildKind, Library
from migrate_lens.model.trace import Finished, Place, PlaceKind, Trace
from migrate_lens.programs.sources import of_tree
from migrate_lens.remedies.fix.branches import gates
from migrate_lens.remedies.fix.defaults import defaults_of
from migrate_lens.remedies.fix.positions import Moved, is_named_so, moved
from migrate_lens.remedies.fix.slots import Edit, Form, Site
from migrate_lens.remedies.fix.strategies import Missing
from migrate_lens.remedies.fix.ways import Ways, repeats_a_guard
from migrate_lens.remedies.home import at_home
from migrate_lens.remedies.lab import Trial

_QUERY = '({call} if hasattr(torch, "xpu") else False)'
_PAIR = ("n", "max", ("values", "indices"), [tensor([1.0]), tensor([0], "int64")])


def _ways(source: str, want: object = False) -> Ways:
    tree = ast.parse(source)
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("ask"))
    return Ways(of_tree(tree), Site(Form.FUNCTION, "t.xpu.ask", (), (), node), want)


@pytest.mark.parametrize("source", [
    "import torch as t\nr = hasattr(t, 'xpu') and t.xpu.ask()\n",
    "import torch as t\nif getattr(t, \"xpu\", None):\n    r = t.xpu.ask()\n",
    "import torch as t\nr = t.xpu.ask() if hasattr(t, 'xpu') else 0\n",
    "import torch as t\ndef f():\n    if not hasattr(t, 'xpu'):\n        return 0\n    return t.xpu.ask()\n",
    "import torch as t\ntry:\n    r = t.xpu.ask()\nexcept (AttributeError, ImportError):\n    r = 0\n",
    "import torch as t\nassert hasattr(t, 'xpu')\nr = t.xpu.ask()\n",
])  # fmt: skip
def test_a_guard_that_stands_is_not_repeated(source: str, tmp_path: Path) -> None:
    assert repeats_a_guard(_QUERY.format(call="torch.xpu.ask()"), _ways(source))
    path = tmp_path / "m.py"
    path.write_text(source)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "ask()" in text)
    assert list(gates(path, line, Missing("torch", "xpu"))) == []


@pytest.mark.parametrize("source", [
    "import torch as t\nr = t.xpu.ask()\n",
    "import torch as t\nr = hasattr(t, 'cuda') and t.xpu.ask()\n",
    "import torch as t\nif other:\n    x = hasattr(t, 'xpu')\nr = t.xpu.ask()\n",
    "import torch as t\ntry:\n    r = t.xpu.ask()\nexcept ValueError:\n    r = 0\n",
    "import torch as t\ntry:\n    x = 1\nexcept AttributeError:\n    r = t.xpu.ask()\n",
    "import torch as t\nr = t.xpu.ask() and hasattr(t, 'xpu')\n",
])  # fmt: skip
def test_another_condition_is_no_guard(source: str) -> None:
    assert not repeats_a_guard(_QUERY.format(call="torch.xpu.ask()"), _ways(source))


@pytest.mark.parametrize(("line", "unpacked", "field"), [
    ("r = t.ask()[0]", True, ""), ("v, i = t.ask()", True, ""), ("r = t.ask().values", False, "0"),
    ("r = t.ask().indices", False, "1"), ("r = t.ask().shape", False, ""), ("r = t.ask()", False, ""),
    ("r = f(t.ask())", False, ""),
])  # fmt: skip
def test_how_a_result_is_used_says_whether_it_needs_its_names(line: str, unpacked: bool, field: str) -> None:
    ways = _ways(f"import torch as t\n{line}\n", _PAIR)
    assert ways.is_unpacked == unpacked
    edit = ways.as_item(f"import torch as t\n{line}\n".encode(), Edit(0, 1, "pair"))
    assert (edit.text if edit else "") == (f"pair[{field}]" if field else "")


# -- positions ---------------------------------------------------------------------------------------------------------


def _site(*keywords: str) -> Site:
    node = ast.parse("x", mode="eval").body
    return Site(Form.FUNCTION, "nn.Thing", keywords, (node,) * len(keywords), node)


def test_what_lost_its_keyword_is_known_with_its_position() -> None:
    assert moved(_site("", "dim", "keep"), "torch.linalg.f({0}, {2}, dim={1})") == [
        Moved(2, "keep", 1, "torch.linalg.f")
    ]
    assert moved(_site("", "dim"), "{0}.f({1}).g()") == [Moved(1, "dim", 1, "torch.Tensor.f")]
    assert moved(_site("", "dim"), "nn.Thing({0}, dim={1})") == []


@pytest.mark.parametrize(("names", "keyword", "lands"), [
    (["x", "axis"], "dim", True), (["x", "dim"], "dim", True), (["num", "weight_attr"], "device", False),
    (["x", "data_format"], "dtype", False), (["x"], "dim", False), ([], "dim", False),
])  # fmt: skip
def test_a_position_is_right_where_the_parameter_has_one_of_its_names(
    names: list[str], keyword: str, lands: bool
) -> None:
    lab = FakeLab(lambda source: Trial(raised("TypeError"), finished(("L", names))))
    assert is_named_so(Moved(1, keyword, 1, "nn.Thing"), ("from torch import nn",), lab) == lands


# -- files of a library that was built ---------------------------------------------------------------------------------


def test_a_place_of_a_library_that_was_built_is_in_its_tree(tmp_path: Path) -> None:
    (tmp_path / "lib" / "sub").mkdir(parents=True)
    for name in ("lib/__init__.py", "lib/one.py", "lib/sub/__init__.py"):
        (tmp_path / name).write_text("")
    build = BuildEntry(BuildKind.SETUPTOOLS, tmp_path / "setup.py", native=True)
    library = Library(tmp_path, "lib", None, tmp_path, ("lib",), ("lib",), build, (), (), "found")
    gone = [
        Place(module, f"/gone/target/{module}.py", 1, 0, 1, 1, PlaceKind.CALL, (), "")
        for module in ("lib", "lib.one", "lib.sub", "lib.made_by_the_build", "other.one")
    ]
    trace = Trace((), Finished(None, False), None, tuple(gone), {}, (), (), (), (), {})
    paths = [place.path for place in at_home(trace, library).places]
    assert paths[:3] == [str(tmp_path / name) for name in ("lib/__init__.py", "lib/one.py", "lib/sub/__init__.py")]
    assert paths[3:] == [place.path for place in gone[3:]]


# -- defaults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "defaults"), [
    ("(input, dim: int | None = None, _stacklevel: int = 3, eps: float = 1e-05) -> torch.Tensor",
     {"dim": "None", "eps": "1e-05"}),
    ("std(dim=None, *, correction=1, keepdim=False) -> Tensor",
     {"dim": "None", "correction": "1", "keepdim": "False"}),
    ("Returns the norm of a tensor.", {}), ("", {}), ("f(input, other=torch.strided)", {}), ("f(a, (b, c)) -> x", {}),
])  # fmt: skip
def test_defaults_are_read_from_a_signature_or_the_documentation(said: str, defaults: dict[str, str]) -> None:
    lab = FakeLab(lambda source: Trial(finished(said), raised("TypeError")))
    assert defaults_of("torch.nn.functional.f", lab) == defaults
