"""Two made-up torch runs, in; which of their events differ with themselves, out."""

from __future__ import annotations

from sample_events import call, ended, tensor, trace

from migrate_lens.compare.divergences import divergences
from migrate_lens.compare.outcome import disagreement
from migrate_lens.compare.steady import luck
from migrate_lens.model.trace import Ending

T, U = tensor(1.0), tensor(2.0)


def test_runs_that_agree_say_nothing() -> None:
    events = [call(1, T), call(2, 3)]
    own = luck(trace(events, ended(value=T)), trace(events, ended(value=T)))
    assert (own.events, own.results, own.notes()) == ({}, None, ())


def test_only_where_a_difference_comes_in_is_it_luck() -> None:
    def run(value: object) -> object:
        return [
            call(1, value, api="torch.tensor", serials=((1, 0),)),
            call(2, value, inputs=(("#", 1, 0),), serials=((2, 0),), api="torch.neg"),
            call(3, value, inputs=(("#", 2, 0), value), serials=((3, 0),), api="torch.add"),
        ]

    own = luck(trace(run(T)), trace(run(U)))  # type: ignore[arg-type]
    assert own.names == ("torch.tensor", "torch.add")


def test_a_draw_is_no_luck_since_it_is_replayed() -> None:
    assert luck(trace([call(1, T, flags="r")]), trace([call(1, U, flags="r")])).events == {}


def test_of_an_outcome_only_the_parts_that_differ_from_run_to_run_are_left_out() -> None:
    def outcome(lucky: float, steady: bool) -> Ending:
        return ended(value=("t", [lucky, T if lucky < 2 else U, ("d", [("a", lucky), ("b", steady)])]))

    own = luck(trace([], outcome(1.0, True)), trace([], outcome(2.0, True)))
    assert "the program's result" in own.notes()[0]
    want = own.of_outcome(outcome(1.0, True))
    assert disagreement(want, own.of_outcome(outcome(3.0, True))) is None
    assert disagreement(want, own.of_outcome(outcome(1.0, False))) is not None


def test_what_is_luck_is_held_against_paddle_by_shape_and_dtype() -> None:
    own = luck(trace([call(1, T)]), trace([call(1, U)]))
    assert list(divergences(trace([call(1, T)]), trace([call(1, U)]), own.events)) == []
    (found,) = divergences(trace([call(1, T)]), trace([call(1, tensor(1.0, 2.0))]), own.events)
    assert found.symptom == "shape"
    shapes = luck(trace([call(1, T)]), trace([call(1, tensor(1.0, 2.0))]))
    assert list(divergences(trace([call(1, T)]), trace([call(1, tensor())]), shapes.events)) == []


def test_a_part_that_passes_under_torch_by_luck_says_nothing() -> None:
    first = ended("parts", {"lucky": "passed", "steady": "passed"})
    second = ended("parts", {"lucky": "failed", "steady": "passed"})
    own = luck(trace([], first), trace([], second))
    assert "the program's result" in own.notes()[0]
    want = own.of_outcome(second)
    assert disagreement(want, own.of_outcome(ended("parts", {"lucky": "passed", "steady": "passed"}))) is None
    assert disagreement(want, own.of_outcome(ended("parts", {"lucky": "failed", "steady": "failed"}))) is not None
