"""Programs over a framework that is none, in; what is recorded of them, by which name, and what is left alone, out."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_backend import SPACE, FakeBackend, Module, Observed, Tensor, calls, plain, programs, rewritten

from migrate_lens.protocol import journal as wire
from migrate_lens.worker.backends.kinds import owner_of
from migrate_lens.worker.observe import forms, nodes
from migrate_lens.worker.observe.naming import OTHER, Naming

Record = Callable[[str], Observed]


def add(left: Tensor, right: object = 1, *, alpha: int = 1) -> Tensor:
    return left + right


def boom(*args: object, **kwargs: object) -> None:
    raise ValueError("boom")


def make() -> Tensor:
    return Tensor([])


def fake_torch() -> types.ModuleType:
    """A module called torch, with a few names in it."""
    torch = types.ModuleType("torch")
    nn = types.ModuleType("torch.nn")
    nn.__dict__.update(Module=Module, __name__="torch.nn")
    members: dict[str, Any] = {"Tensor": Tensor, "nn": nn, "version": "1"}
    for name, value in members.items():
        setattr(torch, name, value)
    for function in (add, boom, make):
        space = {**SPACE, "ValueError": ValueError, "Tensor": Tensor}
        torch.__dict__[function.__name__] = types.FunctionType(function.__code__, space, function.__name__, (1,))
    torch.__dict__["add"].__kwdefaults__ = {"alpha": 1}
    return torch


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    torch = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.nn", torch.nn)

    def run(source: str) -> Observed:
        observed = rewritten(source, tmp_path)
        assert observed.behaviour == plain(source)
        return observed

    return run


NAMES = {
    "x = torch.add(x)": ["torch.add"],
    "x = torch.add(x, alpha=2).sum()": ["torch.add", "torch.Tensor.sum"],
    "f = torch.add\nx = f(x)": ["torch.add", "torch.add"],
    "x = x + 1": ["torch.Tensor.add"],
    "x = -x": ["torch.Tensor.neg"],
    "x += 1": ["torch.Tensor.__iadd__"],
    "x = x[1:2, ..., None]": ["torch.Tensor.__getitem__"],
    "x[0] = 3": ["torch.Tensor.__setitem__"],
    "x = x < 3": ["torch.Tensor.lt"],
    "x = x.a(1).b(2)": ["torch.Tensor.a", "torch.Tensor.b"],
    "x.log": ["torch.Tensor.log"],
    "input = x\ninput.size(0)": ["torch.Tensor.size"],
    "def f(input, filter, type): return input.size(filter)\nf(x, 1, 2)": ["torch.Tensor.size"],
    "def f(time): return time.mean()\nf(x)": ["torch.Tensor.mean"],
    "isinstance(x, torch.Tensor)": ["torch.Tensor", "torch.Tensor"],
    "y = len([x])": ["builtins.len"],
    "for i in range(3): x.a()": ["torch.Tensor.a"] * 3,
    "[y.a() for y in (x, x)]": ["torch.Tensor.a"] * 2,
    "f = lambda y: y.a()\nf(x)": ["torch.Tensor.a"],
    "class A:\n    def __init__(self, y): self.y = y.a()\nA(x)": ["torch.Tensor.a"],
    "class A:\n    def __call__(self, y): return y.a()\nA()(x)": ["torch.Tensor.a"],
    "import functools\nfunctools.partial(lambda y: y.a())(x)": ["torch.Tensor.a"],
    "import functools\nx = functools.partial(torch.add)(x)": ["torch.add", "torch.add"],
    "y = list(map(torch.add, [x, x]))": ["torch.add", "builtins.map", "torch.add", "torch.add"],
    "f = torch.add\ny = list(filter(f, [x]))": ["torch.add", "torch.add"],
    "from functools import reduce\ny = reduce(torch.add, [x, x])": ["torch.add", "torch.add", "functools.reduce"],
    "import itertools as it\ny = list(it.accumulate([x, x], func=torch.add))": ["torch.add", "itertools.accumulate"],
    "y = list(map(torch.Tensor.size, [x]))": ["torch.Tensor.size", "builtins.map", "torch.Tensor.size"],
    "y = sorted([x], key=torch.Tensor.size)": ["torch.Tensor.size", "torch.Tensor.size", "builtins.sorted"],
    "def map(f, y): return f\nmap(torch.add, x)": ["torch.add"],
    "print(1, 'a'.upper(), [1, 2].count(1), {}.get(1), (1).real)": [],
    "def f(a, b=2): return a + b\nf(1)": [],
    "import math\ny = math.floor(2.5) + 1": [],
    "from torch import add as plus\nplus(x)": ["torch.add", "torch.add"],
    "import torch.nn as nn\nnn.Module": ["torch.nn", "torch.nn.Module"],
    "if x is not None and not isinstance(3, int): x.a()": [],
}  # fmt: skip


@pytest.mark.parametrize("body", NAMES)
def test_what_concerns_the_framework_is_recorded_by_its_documented_name(body: str, record: Record) -> None:
    observed = record(f"import torch\nx = torch.make()\n{body}\nresult = x.log\n")
    assert observed.behaviour.ending == "finished", observed.behaviour.detail
    assert calls(observed)[2:-1] == NAMES[body]


def test_what_a_call_raises_is_recorded_and_is_the_same_object(record: Record) -> None:
    source = """
import torch
try:
    torch.boom(1)
except ValueError as e:
    result = str(e), e.__context__, e.__cause__
"""
    observed = record(source)
    raised = [frame for frame in observed.frames if frame[0] == "raise"]
    assert [frame[4] for frame in raised] == ["torch.boom"]
    assert raised[0][6]["types"][:2] == ["ValueError", "Exception"]


def test_a_name_that_is_not_there_is_recorded_and_raised_on(record: Record) -> None:
    source = """
import torch
result = 0
try:
    torch.nothing.at.all(1)
except AttributeError as e:
    result = e.name
torch.nn.no
"""
    observed = record(source)
    absent = [(frame[0], frame[4]) for frame in observed.frames if frame[0] == "absent"]
    assert absent == [("absent", "torch.nothing.at.all"), ("absent", "torch.nn.no")]
    assert observed.behaviour.ending == "AttributeError"


def test_a_name_that_an_object_of_the_frameworks_refuses_in_its_own_words_is_absent(record: Record) -> None:
    observed = record("""
import torch
class Registry:
    __module__ = "torch"
    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")
made = Registry()
result = []
for f in (lambda: made.bump(1), lambda: made.bump, lambda: made.bump(len(result))):
    try:
        f()
    except RuntimeError as e:
        result.append(str(e))
class Own:
    def __getattr__(self, name):
        raise RuntimeError(name)
Own().other(1)
""")
    absent = [frame[4] for frame in observed.frames if frame[0] == "absent"]
    assert [name.rpartition(".")[2] for name in absent] == ["bump", "bump", "bump"]
    assert (observed.behaviour.ending, observed.behaviour.detail) == ("RuntimeError", "other")


class Refuses:
    def __getattr__(self, name: str) -> object:
        raise ValueError(name)


def test_an_object_that_refuses_to_be_asked_is_not_asked_who_it_is_bound_to() -> None:
    items: list[int] = []
    assert (owner_of(items.append), owner_of(Refuses())) == (items, None)
    assert Naming(FakeBackend()).origin(Refuses()) == OTHER


def test_an_attribute_that_a_program_lacks_itself_is_its_own_affair(record: Record) -> None:
    observed = record("class A: pass\ntry:\n    A().x\nexcept AttributeError:\n    result = 1\nA().y()\n")
    assert calls(observed) == []


def test_a_missing_module_is_recorded(record: Record) -> None:
    source = """
try:
    import torch.nowhere
except ImportError as e:
    result = e.name
from torch.nowhere import a, b
"""
    observed = record(source)
    assert [frame[4] for frame in observed.frames if frame[0] == "absent"] == ["torch.nowhere", "torch.nowhere.a"]


def test_visits_are_counted_by_place(record: Record) -> None:
    observed = record("import torch\nx = torch.make()\nfor i in range(3):\n    x.a()\nx.b()\n")
    made = [(frame[4], frame[2]) for frame in observed.frames if frame[0] == "call"]
    assert made[2:] == [("torch.Tensor.a", 1), ("torch.Tensor.a", 2), ("torch.Tensor.a", 3), ("torch.Tensor.b", 1)]


def test_a_call_is_in_flight_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Operand:
        """What ``torch.add`` adds to; it looks into the trace file meanwhile."""

        def __add__(self, other: object) -> None:
            seen.append(wire.read(next(tmp_path.iterdir()))[0])

    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    observed = rewritten("import torch\ntorch.add(operand)\nresult = 1\n", tmp_path, operand=Operand())
    (number,) = seen
    table = next(frame for frame in observed.frames if frame[0] == "module")
    assert table[4][number - table[3]][-1] == "torch.add(operand)"


def test_the_exceptions_that_a_program_handles_are_known(tmp_path: Path) -> None:
    source = """
try:
    a.b()
    try:
        a.c()
    except (KeyError, x.OSError): pass
except: pass
else:
    a.d()
def f(): a.e()
"""
    caught = {node.name: node.caught for node in nodes.rewrite(source, "f", 1).nodes}
    assert caught["b"] == ("BaseException",)
    assert caught["c"] == ("BaseException", "KeyError", "OSError")
    assert caught["d"] == caught["e"] == ()


# -- planted defects: what the comparison of behaviours must not miss -------------------------------------------------


def twice(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper that does everything twice."""

    def planted(*args: Any, **kwargs: Any) -> Any:
        helper(*args, **kwargs)
        return helper(*args, **kwargs)

    return planted


def called_twice(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper whose callee is called twice."""
    return lambda *place: twice(helper(*place))


def without_keywords(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper whose callee loses keywords."""
    return lambda *place: lambda *args, **kwargs: helper(*place)(*args)


def late(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper that looks its callee up when it is called."""
    return lambda *place: lambda *args, **kwargs: helper(*place)(*args, **kwargs)


def empty(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper that returns nothing."""
    return lambda *args, **kwargs: None


ONCE = "augmented assignment, once and in order"
PLANTED = [
    (nodes.CALL, called_twice, "assignment evaluates its value first"), (nodes.CALL, without_keywords, "star args"),
    (nodes.METHOD, called_twice, ONCE), (nodes.METHOD, without_keywords, "keywords named like the helpers' own"),
    (nodes.INPLACE, twice, "augmented assignment of every kind"), (nodes.INPLACE_ITEM, twice, ONCE),
    (nodes.INPLACE_ATTRIBUTE, twice, ONCE), (nodes.OLD_ITEM, twice, ONCE), (nodes.OLD_ATTRIBUTE, twice, ONCE),
    (nodes.OPERATOR, empty, "slices"), (nodes.SETITEM, empty, "assignment evaluates its value first"),
    (nodes.SLICE, empty, "slices"), (nodes.ATTRIBUTE, empty, "mangled names"), (nodes.DECORATE, empty, "decorators"),
    (nodes.METHOD, late, "a method is looked up before its arguments are evaluated"),
]  # fmt: skip


@pytest.mark.parametrize(("helper", "defect", "program"), PLANTED)
def test_a_helper_with_a_defect_does_not_go_unnoticed(
    helper: str, defect: Callable[..., Any], program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = programs("python.txt")[program]
    right = forms.make
    monkeypatch.setattr(forms, "make", lambda recorder: {**right(recorder), helper: defect(right(recorder)[helper])})
    assert rewritten(source, tmp_path).behaviour != plain(source)
