"""Conditions and facts, in; whether they hold, which of them narrow, and which rule says most, out."""

from __future__ import annotations

import pytest

from migrate_lens.model.report import Symptom
from migrate_lens.rulebook import audit, classify
from migrate_lens.rulebook.matching import Conditions, Matcher, Value, Vocabulary, Wanted, leaders, most_specific

ANIMALS = Vocabulary(
    {"name": "what it is called", "size": "small or large", "colours": "any of them", "wild": "nobody keeps it"},
    always=frozenset(("name", "size")),
    closed={"size": frozenset(("small", "large"))},
)


@pytest.mark.parametrize(
    ("wanted", "narrowing"),
    [
        ({}, 0),
        ({"name": "*"}, 0),
        ({"name": ("c*", "*")}, 0),
        ({"name": "**"}, 0),
        ({"name": "c*"}, 1),
        ({"name": "*", "size": "*"}, 0),
        ({"size": ("small", "large")}, 0),
        ({"size": "*a*"}, 0),
        ({"size": ("small",)}, 1),
        ({"colours": "*"}, 1),
        ({"wild": True, "name": "*"}, 1),
        ({"wild": False, "name": "cat", "size": "large"}, 3),
    ],
)
def test_a_condition_that_excludes_nothing_does_not_narrow(wanted: dict[str, Wanted], narrowing: int) -> None:
    assert Conditions.of(wanted, ANIMALS).narrowing == narrowing


@pytest.mark.parametrize(
    ("wanted", "facts", "holds"),
    [
        ({"colours": "red"}, {"colours": ("green", "red")}, True),
        ({"colours": "*"}, {"colours": ()}, False),
        ({"colours": "*"}, {}, False),
        ({"wild": False}, {}, True),
        ({"wild": True}, {"wild": True}, True),
        ({"name": "[ab]*"}, {"name": "bear"}, True),
        ({"name": "b*", "wild": True}, {"name": "bear"}, False),
        ({"name": "3"}, {"name": 3}, True),
    ],
)
def test_all_conditions_must_hold(wanted: dict[str, Wanted], facts: dict[str, Value], holds: bool) -> None:
    assert Conditions.of(wanted, ANIMALS).hold(facts) is holds


def rule(name: str, /, priority: int = 0, **wanted: Wanted) -> Matcher:
    return Matcher(id=name, title=name, when=Conditions.of(wanted, ANIMALS), priority=priority)


def test_the_rule_that_says_most_is_the_narrowest_then_the_one_with_priority() -> None:
    padded = rule("padded", priority=9, name="*", size=("small", "large"))
    plain, urgent, twin = rule("plain", name="c*"), rule("urgent", priority=1, name="c*"), rule("twin", name="ca*")
    cat: dict[str, Value] = {"name": "cat", "size": "small"}
    assert most_specific(one for one in (padded, plain) if one.matches(cat)) is plain
    assert leaders((padded, plain, urgent, twin), cat) == (urgent,)
    assert leaders((padded, plain, twin), cat) == (plain, twin)
    assert leaders((plain, twin), {"name": "dog"}) == ()


def test_no_shipped_rule_is_padded() -> None:
    """A condition that does not narrow says nothing: it is left out."""
    for shipped in (*classify.load_rules(), *audit.load_rules().rules):
        assert shipped.when.narrowing == len(shipped.when.wanted), shipped.id
    assert classify.VOCABULARY.closed["symptom"] == set(Symptom)
