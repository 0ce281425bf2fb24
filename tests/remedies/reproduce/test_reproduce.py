"""Reproductions from a program, in a laboratory whose answers are planted: what is emitted, and what must not be."""

from __future__ import annotations

from fake_lab import FakeLab, finished, raised, tensor
from sample_reports import gap

from migrate_lens.model.report import Key, Symptom
from migrate_lens.remedies.lab import Trial
from migrate_lens.remedies.reproduce.reproduce import NotReproduced, Reproduced, reproduce, same_gap

_CASE = gap("torch.f", "value", sites=(), actual="returns 2")
_KEY = frozenset({Key(Symptom.VALUE, "torch.f")})
_PROGRAM = "unused = 0\nresult = 1\n"


def _differs(source: str) -> Trial:
    """Paddle gives 2 where torch gives 1; an assertion on it fails there."""
    paddle = raised("AssertionError", where="") if "assert" in source else finished(2)
    return Trial(finished(1), paddle)


def test_a_difference_becomes_an_assertion_and_the_rest_goes() -> None:
    made = reproduce(_CASE, (), [_PROGRAM], FakeLab(_differs, _KEY))
    assert isinstance(made, Reproduced)
    assert made.source == "result = 1\nassert result == 1, result\n"


def test_a_program_that_shows_another_gap_is_not_emitted() -> None:
    made = reproduce(_CASE, (), [_PROGRAM], FakeLab(_differs, frozenset({Key(Symptom.VALUE, "torch.g")})))
    assert isinstance(made, NotReproduced)


def test_agreement_is_not_reproduced() -> None:
    made = reproduce(_CASE, (), [_PROGRAM], FakeLab(lambda source: Trial(finished(1), finished(1)), _KEY))
    assert isinstance(made, NotReproduced)
    assert "same way" in made.reason


def test_a_broken_baseline_is_not_reproduced() -> None:
    lab = FakeLab(lambda source: Trial(raised("NameError"), raised("NameError")), _KEY)
    assert isinstance(reproduce(_CASE, (), [_PROGRAM], lab), NotReproduced)


def test_random_values_are_no_difference() -> None:
    """Torch's own result changes with the seed."""

    def answer(source: str) -> Trial:
        seeded = 5.0 if "manual_seed" in source else 1.0
        return Trial(finished(tensor([seeded])), finished(tensor([2.0])))

    assert isinstance(reproduce(_CASE, (), [_PROGRAM], FakeLab(answer, _KEY)), NotReproduced)


def test_a_program_that_passes_by_luck_of_the_seed_is_not_emitted() -> None:
    """The result itself is steady, and what would be asserted of it is not: another seed fails under torch."""

    def answer(source: str) -> Trial:
        lucky = "assert" in source and "manual_seed" in source
        return Trial(raised("AssertionError") if lucky else finished(1), _differs(source).paddle)

    assert isinstance(reproduce(_CASE, (), [_PROGRAM], FakeLab(answer, _KEY)), NotReproduced)


def test_a_missing_name_needs_no_assertion_to_fail() -> None:
    case = gap("torch.f", "missing_api", sites=(), actual="raises AttributeError: no attribute 'f'")
    lab = FakeLab(
        lambda source: Trial(finished(1), raised("AttributeError", "no attribute 'f'", "paddle/compat/proxy.py:1 g")),
        frozenset({Key(Symptom.MISSING_API, "torch.f")}),
    )
    made = reproduce(case, (), [_PROGRAM], lab)
    assert isinstance(made, Reproduced)
    assert made.sign.what == "AttributeError"
    assert made.source.startswith("result = 1\n")


def test_a_hang_ends_itself() -> None:
    from migrate_lens.model.trace import Died
    from migrate_lens.remedies.lab import Side

    def answer(source: str) -> Trial:
        fate = "SIGALRM" if "signal.alarm" in source else "timeout"
        return Trial(finished(1), Side(Died(), fate))

    case = gap("torch.f", "timeout", sites=(), actual="does not return")
    made = reproduce(
        case, (), ["import torch\nresult = 1\n"], FakeLab(answer, frozenset({Key(Symptom.TIMEOUT, "torch.f")}))
    )
    assert isinstance(made, Reproduced)
    assert "signal.alarm(10)" in made.source


def test_nothing_recorded_is_said() -> None:
    made = reproduce(_CASE, (), [], FakeLab(_differs, _KEY))
    assert made == NotReproduced("nothing was recorded")


def test_what_fails_first_for_another_gap_is_no_reproduction() -> None:
    """A program in which another call fails before the gap's shows that other call."""
    case = gap("torch.f", "missing_api", sites=(), actual="raises AttributeError: no attribute 'f'")
    keys = frozenset({Key(Symptom.MISSING_API, "torch.f"), Key(Symptom.MISSING_API, "torch.optim.SGD")})
    assert not same_gap(case, keys)
    assert same_gap(case, frozenset({Key(Symptom.MISSING_API, "torch.f")}))
    assert not same_gap(case, frozenset())
