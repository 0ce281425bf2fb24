"""Comparing traces: the same program twice, planted edits, and programs before and after an edit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate_lens import api
from migrate_lens.compare.comparison import compare
from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Event, EventKind, Failure, Trace
from migrate_lens.model.value import Encoded, tag

PROGRAM = """
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
x = torch.randn(2, 4)
for step in range(3):
    x = torch.relu(layer(x)) + 1.0
y = x.sum()
x = x.detach().clone()
x.mul_(x)
result = [y, x]
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def known(program: Path) -> Trace:
    made = api.trace(program, record="values")
    assert isinstance(made, Trace)
    return made


@pytest.mark.real
@pytest.mark.parametrize("runtime", ["torch", "paddle"])
def test_a_program_traced_twice_on_one_side_does_not_differ(program: Path, runtime: str) -> None:
    found = compare(*(api.trace(program, runtime=runtime) for _ in range(2)))
    assert found.same
    assert (found.divergences, found.only_left, found.only_right) == ((), (), ())


@pytest.mark.real
def test_paddle_with_torchs_draws_does_the_same_and_without_them_says_why_not(program: Path, tmp_path: Path) -> None:
    kept = tmp_path / "torch.trace"
    ours = api.trace(program, output=kept)
    assert compare(ours, api.trace(program, runtime="paddle", like=kept)).same
    apart = compare(ours, api.trace(program, runtime="paddle"))
    assert not apart.same
    assert apart.random_apart


def _changed(trace: Trace, at: int, **changes: Any) -> Trace:
    from dataclasses import replace

    events = list(trace.events)
    events[at] = replace(events[at], **changes)
    return replace(trace, events=tuple(events))


def _other(value: Encoded) -> Encoded:
    """The same tensor with its first byte pair set to a large number."""
    return (*value[:3], value[3][:2] + b"\x80\x7f" + value[3][4:], *value[4:])


@pytest.mark.real
@given(st.data())
@settings(max_examples=40)
def test_one_planted_edit_of_a_trace_gives_exactly_one_divergence(known: Trace, data: st.DataObject) -> None:
    able = [n for n, e in enumerate(known.events) if tag(e.value) == "T" and e.what == "call" and not e.flags.drew]
    at = data.draw(st.sampled_from(able))
    event: Event = known.events[at]
    edits: dict[str, tuple[dict[str, Any], Symptom]] = {
        "value": ({"value": _other(event.value)}, Symptom.VALUE),
        "dtype": ({"value": (event.value[0], "int32", *event.value[2:])}, Symptom.DTYPE),
        "shape": ({"value": (*event.value[:2], (*event.value[2], 1), *event.value[3:])}, Symptom.SHAPE),
        "raise": ({"what": EventKind.RAISE, "value": None, "failure": _FAILURE}, Symptom.EXCEPTION),
        "absent": ({"what": EventKind.ABSENT, "value": None, "failure": _FAILURE}, Symptom.MISSING_API),
    }
    changes, symptom = edits[data.draw(st.sampled_from(sorted(edits)))]
    found = compare(known, _changed(known, at, **changes))
    assert [(d.symptom, d.got.key) for d in found.divergences] == [(symptom, event.key)]
    assert not found.same


_FAILURE = Failure(("ValueError", "Exception"), "no")


@pytest.mark.real
@given(st.data())
@settings(max_examples=20)
def test_one_lost_call_is_said_to_be_lost_and_no_divergence(known: Trace, data: st.DataObject) -> None:
    from dataclasses import replace

    at = data.draw(st.integers(0, len(known.events) - 1))
    less = replace(known, events=(*known.events[:at], *known.events[at + 1 :]))
    found = compare(known, less)
    assert [e.key for e in found.only_left] == [known.events[at].key]
    assert found.divergences == ()
    assert not found.same


@pytest.mark.real
def test_a_program_before_and_after_an_edit_is_aligned_by_names(program: Path, known: Trace, tmp_path: Path) -> None:
    edited = tmp_path / "program.py"
    edited.write_text(PROGRAM.replace("y = x.sum()", "# a remark\n\ny = torch.exp(x).sum()"))
    found = compare(known, api.trace(edited, record="values"))
    assert not found.by_place
    assert [e.api for e in found.only_right] == ["torch.exp"]
    assert found.only_left == ()
    assert [d.want.api for d in found.divergences] == ["torch.Tensor.sum"]


def test_the_functions_are_there_without_importing_a_framework() -> None:
    source = (
        "import sys\nfrom migrate_lens.api import compare, record, trace\n"
        "assert callable(trace) and callable(compare) and callable(record)\n"
        "assert not {'torch', 'paddle'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)
