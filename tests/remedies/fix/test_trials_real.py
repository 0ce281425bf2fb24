"""Replacements that give torch's values, with real torch and real Paddle; those that do something else are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from real_lab import Lab, opened_lab

from migrate_lens.programs.sources import module, node_at
from migrate_lens.programs.synthesis import probe_record
from migrate_lens.remedies.bench_lab import BenchLab
from migrate_lens.remedies.fix.fixing import NoReplacement, find
from migrate_lens.remedies.fix.slots import Edit, apply, site_of
from migrate_lens.remedies.fix.strategies import Candidate, Kind
from migrate_lens.remedies.fix.trials import Replacement, Tried, Verdict, bases
from migrate_lens.remedies.reproduce.reproduce import occurrences

__all__ = ["opened_lab"]
pytestmark = pytest.mark.real
_X = "import torch\nimport torch.nn.functional as F\nx = torch.tensor([[1.0, 3.0], [2.0, 4.0]], requires_grad=True)\n"
_I = "import torch\nfrom torch import int32\ni = torch.tensor([2, 3], dtype=torch.int32)\n"


@dataclass(frozen=True)
class Room:
    """Where programs are diagnosed, and replacements are tried."""

    lab: Lab
    bench: BenchLab

    def holds(self, program: str, template: str) -> bool:
        """Whether a replacement holds at the last call of a program, which has one gap."""
        diagnosis = self.lab.diagnose(program)
        (gap,) = diagnosis.gaps
        occurrence = next(occurrences(gap, [probe_record(diagnosis.base.trace)]))
        node = node_at(occurrence.event.place)
        site = site_of(occurrence.event, node)
        base = next(bases(gap, occurrence, self.bench))
        assert site is not None
        made = Replacement(Path("p.py"), Edit(0, 0, ""), Candidate(Kind.EQUAL_API, template, "planted"), 1)
        return base.judge(Tried(made, site), self.bench) is Verdict.HOLDS

    def fixed(self, program: str) -> str:
        """The last line of a program with the workarounds that are found; why there are none where there are none."""
        diagnosis = self.lab.diagnose(program)
        record = probe_record(diagnosis.base.trace)
        replacements: list[Replacement] = []
        for gap in diagnosis.gaps:
            found = find(gap, [record], self.bench, replacements)
            if isinstance(found, NoReplacement):
                return found.reason
            replacements += found
        parsed = module(str(replacements[0].path))
        assert parsed is not None
        data = apply(replacements[0].path.read_bytes(), [one.edit for one in replacements])
        return data.decode().strip().splitlines()[-1]


@pytest.fixture(scope="module", name="room")
def opened_room(lab: Lab) -> Iterator[Room]:
    folder = lab.folder / "trials"
    folder.mkdir()
    with BenchLab(lab.bench, folder) as bench:
        yield Room(lab, bench)


@pytest.mark.parametrize(("call", "wrong", "right"), [
    pytest.param("torch.detach(x)", "{0}", "{0}.detach()", id="stops the gradient"),
    pytest.param("torch.narrow_copy(x, 0, 0, 1)", "{0}.narrow({1}, {2}, {3})", "{0}.narrow({1}, {2}, {3}).clone()",
                 id="shares no memory"),
    pytest.param("x.detach().fmod_(2.0)", "torch.remainder({0}, {1})", "{0}.copy_(torch.remainder({0}, {1}))",
                 id="writes to its input"),
    pytest.param("x * torch.tensor([True, False])", "{0} * {1}.to(torch.float32)", "{0} * {1}.to({0}.dtype)",
                 id="follows the dtype"),
    pytest.param("torch.std(x, dim=0)", "((({0} - {0}.mean({1})) ** 2).sum({1})).sqrt()", "torch.std({0}, {1})",
                 id="follows the size"),
    pytest.param("x.new_tensor([1.0])", "torch.tensor({1}, dtype={0}.dtype)",
                 "torch.tensor({1}, dtype={0}.dtype, device={0}.device)", id="follows the device"),
    pytest.param("x.positive()", "{0}.clone()", "{0}", id="is its input"),
    pytest.param("x.addcdiv(x, x + 2, value=-0.3)", "({0} + {3} * ({1} / {2}))",
                 "({0}.double() + {3} * ({1}.double() / {2}.double())).to({0}.dtype)", id="rounds short floats once"),
    pytest.param("torch.addcmul(x, x, x + 0.3)", "({0} + {1} * {2})",
                 "({0}.double() + {1}.double() * {2}.double()).to({0}.dtype)", id="rounds a sum once"),
    pytest.param("x.addcmul(x, x + 0.3, value=0.7)", "({0} + {3} * {1} * {2})",
                 "({0}.double() + {3} * {1}.double() * {2}.double()).to({0}.dtype)", id="rounds a product once"),
])  # fmt: skip
def test_what_does_something_else_is_refused(room: Room, call: str, wrong: str, right: str) -> None:
    program = f"{_X}result = {call}\n"
    assert not room.holds(program, wrong)
    assert room.holds(program, right)


@pytest.mark.parametrize(("call", "line"), [
    ("torch.log_softmax(x, dim=-1)", "result = torch.nn.functional.log_softmax(x, -1)"),
    ("torch.norm(x, dim=(0, 1))", "result = torch.linalg.vector_norm(x, 2, (0, 1), False)"),
    ("torch.std(x, dim=0)", "result = torch.std(x, 0)"),
    ("torch.detach(x)", "result = x.detach()"),
    ("F.avg_pool2d(x[None, None], 2, padding=[1, 0])",
     "result = (lambda v2: torch.nn.functional.avg_pool2d(torch.nn.functional.pad(x[None, None], "
     "(v2[1], v2[1], v2[0], v2[0])), 2, None, 0, False))([1, 0])"),
    ("torch.cdist(x1=x, x2=x + 1)", "result = torch.cdist(x, x + 1)"),
])  # fmt: skip
def test_what_needs_a_change_or_two_is_found(room: Room, call: str, line: str) -> None:
    assert room.fixed(f"{_X}result = {call}\n") == line


def test_a_field_that_is_read_is_no_tuple_without_names(room: Room) -> None:
    line = room.fixed(f"{_X}result = x.max(dim=1).values\n")
    assert line.endswith("[0]")
    assert ".values" not in line


def test_a_result_that_goes_on_with_its_names_is_left_alone(room: Room) -> None:
    assert "nothing that was tried" in room.fixed(f"{_X}def f():\n    return x.max(dim=1)\nresult = f().values\n")


@pytest.mark.parametrize("call", [
    "nn.PReLU(2, 0.25, device='cpu').num_parameters", "nn.PReLU(2, 0.25, dtype=torch.float32).num_parameters",
    "nn.PReLU(2, 0.25, device='cpu', dtype=torch.float32).num_parameters",
])  # fmt: skip
def test_what_lands_on_another_parameter_is_refused(room: Room, call: str) -> None:
    assert "nothing that was tried" in room.fixed(f"import torch\nfrom torch import nn\nresult = {call}\n")


@pytest.mark.parametrize("call", [
    "torch.arange(6, dtype=torch.int32).prod().item()", "int(torch.tensor([True, False]).int().prod())",
    "torch.ones(3, dtype=torch.int32).prod() > 4", "1 if torch.ones(2, dtype=torch.int32).prod() else 2",
])  # fmt: skip
def test_a_difference_that_the_statement_loses_needs_no_workaround(room: Room, call: str) -> None:
    assert room.fixed(f"import torch\nresult = {call}\n").endswith("is torch's without a workaround")


def test_a_workaround_is_for_the_sites_alone_that_see_a_difference(room: Room) -> None:
    text = room.fixed(f"{_I}a = i.prod().item()\nresult = i.prod()\n")
    assert text.endswith(".prod().to(torch.int64)")


@pytest.mark.parametrize("call", [
    "(x * i).sum(dim=-1).round().to(int32)", "(i * x).to(torch.int64)", "(x - i).int().sum()",
])  # fmt: skip
def test_what_the_statement_makes_otherwise_is_refused(room: Room, call: str) -> None:
    assert "nothing that was tried" in room.fixed(
        f"{_X}{_I}def f():\n    return {call}\nresult = f().float().numpy()\n"
    )


def test_two_sites_with_other_arguments_each_get_their_own(room: Room) -> None:
    text = room.fixed(f"{_X}a = torch.sort(x, dim=1, descending=True)[0]\nresult = a + torch.sort(x, dim=0)[0]\n")
    assert text.startswith("result = a + (lambda")
