"""Signs: what makes two failures the same."""

from __future__ import annotations

import pytest
from fake_lab import finished, raised, tensor

from migrate_lens.model.trace import Died
from migrate_lens.remedies.lab import Side, Trial
from migrate_lens.remedies.reproduce.outcomes import ACCEPTS, DIES, DIFFERS, HANGS, RAISES, sign

_DEAD = Side(Died(), "SIGSEGV")
_SLOW = Side(Died(), "timeout")


@pytest.mark.parametrize(("torch", "paddle", "how", "what"), [
    (finished(1), raised("TypeError"), RAISES, "TypeError"),
    (finished(1), _DEAD, DIES, "SIGSEGV"),
    (finished(1), _SLOW, HANGS, "timeout"),
    (finished(tensor([1.0])), finished(tensor([2.0])), DIFFERS, "value"),
    (finished(tensor([1.0])), finished(tensor([[1.0]])), DIFFERS, "shape"),
    (finished(tensor([1], "int64")), finished(tensor([1.0])), DIFFERS, "dtype"),
    (finished(3), finished(tensor(3, "int64")), DIFFERS, "value"),
    (raised("IndexError"), finished(1), ACCEPTS, "IndexError"),
])  # fmt: skip
def test_a_failure_has_a_sign(torch: Side, paddle: Side, how: str, what: str) -> None:
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
