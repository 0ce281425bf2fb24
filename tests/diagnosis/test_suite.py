"""Batches of a suite's tests, the few that are kept for reproductions, and the rows of its table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sample_reports import LIBRARY

from migrate_lens.diagnosis.suite import NOT_RUN, Session, Table, batches
from migrate_lens.diagnosis.suite_rung import covering
from migrate_lens.model.report import Finding, Key, Probe, ProbeKind, Runtime, Stage, SuiteRow, SuiteTable, Symptom
from migrate_lens.model.trace import RanTest
from migrate_lens.protocol.parts import number_of


def session(torch: Sequence[RanTest], target: Sequence[RanTest] = ()) -> Session:
    made = Session(Probe(ProbeKind.PYTEST, "tests"))
    made.runs = {Runtime.TORCH: {run.node: run for run in torch}, Runtime.TARGET: {run.node: run for run in target}}
    made.failures = {Runtime.TORCH: {}, Runtime.TARGET: {}}
    return made


def ran(node: str, outcome: str = "passed", seconds: float = 1.0) -> RanTest:
    return RanTest(node, number_of(node), outcome, seconds)


def finding(api: str, *nodes: str) -> Finding:
    parts = frozenset(map(number_of, nodes))
    return Finding(Key(Symptom.MISSING_API, api), Stage.TEST, (), "exists", "raises", parts=parts)


def test_batches_hold_what_passes_in_its_order_and_end_by_time() -> None:
    made = session([ran("a", seconds=3), ran("b", "failed"), ran("c", seconds=3), ran("d", seconds=9), ran("e")])
    assert list(batches(made, most=6)) == [("a", "c"), ("d",), ("e",)]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ((), []),
        (("ab", "bc", "b"), ["b"]),
        (("a", "bc"), ["a", "c"]),
        (("",), ["c"]),
        (("a", ""), ["a"]),
    ],
    ids=["nothing is wanted", "one has all", "the quicker of two", "met in no test", "met in no test, and another"],
)
def test_few_tests_in_which_all_gaps_are_met(wanted: tuple[str, ...], chosen: list[str]) -> None:
    runs = {"a": ran("a", seconds=5), "b": ran("b", seconds=3), "c": ran("c", seconds=1)}
    tests = {run.number: (session(list(runs.values())), run) for run in runs.values()}
    sets = [frozenset(runs[name].number for name in names) for names in wanted]
    assert sorted(covering(sets, tests)) == sorted(runs[name].number for name in chosen)


def rows(table: Table, **gaps: Finding) -> dict[str, SuiteRow]:
    return {row.node: row for row in table.rows(gaps)}


def test_a_gap_holds_back_the_tests_that_meet_it_and_one_of_an_import_those_that_were_not_collected() -> None:
    table = Table([session([ran("t::a"), ran("t::b"), ran("u::c")], [ran("t::a", "failed"), ran("t::b")])], LIBRARY)
    table.healed = {"t::a": "passed", "t::b": "passed", "u::c": "passed"}
    found = rows(table, own=finding("torch.a", "t::a"), shared=finding("torch.b", "import u"))
    assert found["t::a"].gaps == ("own",)
    assert found["t::b"].gaps == ()
    assert found["u::c"].gaps == ("shared",)
    assert found["u::c"].target == NOT_RUN
    suite = SuiteTable(tuple(found.values()))
    assert (suite.under_torch, suite.as_it_is, suite.with_gaps_closed) == (3, 1, 3)
    assert dict(suite.held_back) == {"own": 1, "shared": 1}
    assert suite.unexplained == ()


def test_what_no_gap_explains_is_unexplained() -> None:
    table = Table(
        [session([ran("a"), ran("b"), ran("c", "failed")], [ran("a", "failed"), ran("b", "failed")])], LIBRARY
    )
    table.healed = {"a": "failed", "b": "passed"}
    table.reasons = {"a": "raises AssertionError"}
    found = rows(table, one=finding("torch.a", "a"))
    assert found["a"].unexplained, "it fails still where every gap is healed"
    assert found["a"].reason == "raises AssertionError"
    assert found["b"].unexplained, "no gap is known to hold it back"
    assert not found["c"].unexplained, "it does not pass under torch"
