"""Signs: what makes two failures the same."""

from __future__ import annotations

import pytest
from fake_lab import finished, raised, tensor
from sample_reports import gap

from migrate_lens.model.trace import Died
from migrate_lens.model.value import Encoded
from migrate_lens.remedies.lab import Side, Trial
from migrate_lens.remedies.reproduce.outcomes import How, Sign, form, shows, sign

_DEAD = Side(Died(), "SIGSEGV")
_SLOW = Side(Died(), "timeout")


@pytest.mark.parametrize(("torch", "paddle", "how", "what"), [
    (finished(1), raised("TypeError"), How.RAISES, "TypeError"),
    (finished(1), _DEAD, How.DIES, "SIGSEGV"),
    (finished(1), _SLOW, How.HANGS, "timeout"),
    (finished(tensor([1.0])), finished(tensor([2.0])), How.DIFFERS, "value"),
    (finished(tensor([1.0])), finished(tensor([[1.0]])), How.DIFFERS, "shape"),
    (finished(tensor([1], "int64")), finished(tensor([1.0])), How.DIFFERS, "dtype"),
    (finished(3), finished(tensor(3, "int64")), How.DIFFERS, "value"),
    (raised("IndexError"), finished(1), How.ACCEPTS, "IndexError"),
])  # fmt: skip
def test_a_failure_has_a_sign(torch: Side, paddle: Side, how: How, what: str) -> None:
    found = sign(Trial(torch, paddle))
    assert found is not None
    assert (found.how, found.what) == (how, what)


@pytest.mark.parametrize("trial", [
    Trial(finished(1), finished(1)),
    Trial(finished(tensor([1.0])), finished(tensor([1.0 + 1e-7]))),
    Trial(_DEAD, raised("TypeError")),
    Trial(raised("TypeError"), raised("TypeError")),
])  # fmt: skip
def test_agreement_and_a_broken_baseline_have_none(trial: Trial) -> None:
    assert sign(trial) is None


def test_the_line_of_the_program_does_not_matter() -> None:
    one = sign(Trial(finished(), raised("ValueError", "x", "tmp/a/mre.py:3 f")))
    other = sign(Trial(finished(), raised("ValueError", "x", "tmp/a/mre.py:9 f")))
    assert one == other


def test_another_name_in_the_message_is_another_failure() -> None:
    one = sign(Trial(finished(), raised("AttributeError", "module 'paddle' has no attribute 'fmod'")))
    other = sign(Trial(finished(), raised("AttributeError", "module 'paddle' has no attribute 'tensor'")))
    assert one != other


_RAISED = {"exception": "TypeError", "expected": "returns tensor[1] float32", "actual": "raises TypeError: no"}
_REFUSED = {"exception": "", "expected": "raises IndexError: no", "actual": "returns 3"}
_T, _N = tensor([1.0]), 3


@pytest.mark.parametrize(("symptom", "said", "failure", "result", "shown"), [
    ("value", {}, Sign(How.DIFFERS, "value"), _T, True),
    ("value", {}, Sign(How.DIFFERS, "shape"), _T, False),
    ("value", {}, Sign(How.RAISES, "ValueError"), _T, False),
    ("value", {}, Sign(How.ACCEPTS, "RuntimeError"), _T, False),
    ("shape", {}, Sign(How.DIFFERS, "shape"), _T, True),
    ("shape", {}, Sign(How.DIFFERS, "value"), _T, False),
    ("shape", {}, Sign(How.DIFFERS, "value"), _N, True),  # a shape that is looked at is no tensor itself
    ("dtype", {}, Sign(How.DIFFERS, "dtype"), _T, True),
    ("dtype", {}, Sign(How.DIFFERS, "value"), _T, False),
    ("gradient", {"expected": "tensor[2] float32 (1.0, 2.0)"}, Sign(How.DIFFERS, "value"), _T, True),
    ("gradient", {"expected": "tensor[2] float32 (1.0, 2.0)"}, Sign(How.DIFFERS, "gradient"), _T, False),
    ("gradient", {"expected": "requires_grad False"}, Sign(How.DIFFERS, "gradient"), _T, True),
    ("gradient", {"expected": "requires_grad False"}, Sign(How.DIFFERS, "value"), _T, False),
    ("exception", _RAISED, Sign(How.RAISES, "TypeError"), _T, True),
    ("exception", _RAISED, Sign(How.RAISES, "ValueError"), _T, False),
    ("exception", _RAISED, Sign(How.DIFFERS, "value"), _T, False),
    ("exception", _REFUSED, Sign(How.ACCEPTS, "IndexError"), _T, True),
    ("exception", _REFUSED, Sign(How.ACCEPTS, "KeyError"), _T, False),
    ("exception", _REFUSED, Sign(How.RAISES, "TypeError"), _T, False),
    ("missing_api", {}, Sign(How.RAISES, "AttributeError"), _T, True),
    ("missing_api", {}, Sign(How.DIFFERS, "value"), _T, False),
])  # fmt: skip
def test_a_failure_must_be_the_gaps_own(
    symptom: str, said: dict[str, str], failure: Sign, result: Encoded, shown: bool
) -> None:
    assert shows(failure, gap("torch.f", symptom, **said), result) is shown


@pytest.mark.parametrize(("one", "other", "same"), [
    (tensor([1.0, 2.0]), tensor([1]), True),
    (tensor([1.0]), tensor([[1.0]]), False),
    (tensor([1.0]), "torch.FloatTensor", False),
    (tensor([1.0]), ("L", [tensor([1.0])]), False),
    (3, 4, True),
    (3, "x", False),
])  # fmt: skip
def test_another_overload_gives_another_form(one: Encoded, other: Encoded, same: bool) -> None:
    assert (form(one) == form(other)) is same
