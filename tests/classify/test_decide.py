"""Findings, in; the decision of the written policy and each condition and signal that settled it, out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.classify import classify
from migrate_lens.classify.decide import after_trial, decide
from migrate_lens.model.report import Category, Decision, Finding, Key, Layer, Site, Stage, Symptom
from migrate_lens.model.ruling import said
from migrate_lens.rulebook import counterparts
from migrate_lens.rulebook.counterparts import remedies
from migrate_lens.rulebook.private import private_name

ONE = (Site("a.py", 1),)
FOUR = tuple(Site("a.py", line) for line in range(4))
FILES = (Site("a.py", 1), Site("b.py", 1))


def finding(symptom: str = "missing_api", sites: tuple[Site, ...] = ONE, api: str = "torch.f", **facts: Any) -> Finding:
    return Finding(Key(Symptom(symptom), api), Stage.RUN, sites, "exists", "does not", facts)


def settled(*given: Any) -> tuple[Decision, tuple[str, ...]]:
    """The decision of the policy, and the lines that say how it was made."""
    ruling = decide(*given)
    return ruling.decision, said(ruling)


def held(reasons: tuple[str, ...], part: str) -> bool:
    """Whether the reason with these words says yes."""
    (line,) = [r for r in reasons if part in r]
    return " yes: " in line


POINT, BEHAVES = "wraps one incompatibility point", "same call site behaves differently"
PUBLIC, SPREAD = "public compat behaviour", "stands in several files"
SEMANTICS, PRIVATE = "library's semantics would change", "Paddle private API"
LOCAL, STAY = "only this library's local path", "public API semantics stay"
CONDITIONS = (POINT, LOCAL, STAY, "carries a TODO")
SIGNALS = ("several core kernels", SEMANTICS, PRIVATE, SPREAD, BEHAVES, PUBLIC)


@pytest.mark.parametrize(
    ("what", "category", "expected", "condition_failed", "signals"),
    [
        (finding(), Category.NONE, Decision.WORKAROUND, (), ()),
        (finding(), Category.A, Decision.BOTH, (), (PUBLIC,)),
        (finding("value"), Category.NONE, Decision.BOTH, (), (BEHAVES,)),
        (finding("shape"), Category.A, Decision.BOTH, (), (BEHAVES, PUBLIC)),
        (finding(sites=FOUR), Category.NONE, Decision.NOTE, (POINT,), ()),
        (finding(sites=FOUR), Category.A, Decision.ISSUE, (POINT,), (PUBLIC,)),
        (finding(sites=FILES), Category.NONE, Decision.ISSUE, (POINT,), (SPREAD,)),
        (
            finding("crash"), Category.NONE, Decision.ISSUE, (STAY,), (BEHAVES,),
        ),
        (
            finding("timeout"), Category.A, Decision.ISSUE, (STAY,), (BEHAVES, PUBLIC),
        ),
        (
            finding("compile_error", FILES, build_step="compile"), Category.NONE, Decision.ISSUE,
            (POINT,), ("several core kernels", SPREAD),
        ),
        (finding("compile_error", ONE, build_step="compile"), Category.NONE, Decision.WORKAROUND, (), ()),
        (finding(sites=()), Category.NONE, Decision.WORKAROUND, (), ()),
        (finding(reaches_result=True), Category.NONE, Decision.BOTH, (), (SEMANTICS,)),
        (finding(reaches_result=False), Category.NONE, Decision.WORKAROUND, (), ()),
        (finding(sites=FOUR, reaches_result=True), Category.NONE, Decision.ISSUE, (POINT,), (SEMANTICS,)),
        (finding(counterpart="paddle._C_ops.f"), Category.NONE, Decision.BOTH, (), (PRIVATE,)),
        (finding(counterpart="paddle.base.core.f"), Category.NONE, Decision.BOTH, (), (PRIVATE,)),
        (finding(counterpart="paddle.linalg.f"), Category.NONE, Decision.WORKAROUND, (), ()),
        (finding("value", counterpart="paddle._C_ops.f"), Category.NONE, Decision.BOTH, (), (BEHAVES,)),
        (finding(sites=FILES, counterpart="paddle._C_ops.f"), Category.A, Decision.ISSUE, (POINT,),
         (PRIVATE, SPREAD, PUBLIC)),
        (finding(outside=True), Category.NONE, Decision.NOTE, (LOCAL,), ()),
        (finding(outside=True), Category.A, Decision.ISSUE, (LOCAL,), (PUBLIC,)),
        (finding("crash", FOUR, outside=True), Category.NONE, Decision.ISSUE, (POINT, LOCAL, STAY), (BEHAVES,)),
        (finding("value", FILES, build_step="compile", reaches_result=True), Category.A, Decision.ISSUE, (POINT,),
         ("several core kernels", SEMANTICS, SPREAD, BEHAVES, PUBLIC)),
    ],
)  # fmt: skip
def test_the_policy(
    what: Finding, category: Category, expected: Decision, condition_failed: tuple[str, ...], signals: tuple[str, ...]
) -> None:
    decision, reasons = settled(what, category)
    assert decision is expected
    assert {c for c in CONDITIONS if not held(reasons, c)} == set(condition_failed)
    assert {s for s in SIGNALS if held(reasons, s)} == set(signals)
    assert len(reasons) == len(CONDITIONS) + len(SIGNALS)


DIFFERENT = (
    "shape", "dtype", "device", "layout", "alias", "value", "gradient", "state", "exception", "crash", "timeout",
    "schema", "dispatch",
)  # fmt: skip


@pytest.mark.parametrize("symptom", list(Symptom))
def test_which_symptoms_say_that_the_same_call_site_behaves_differently(symptom: Symptom) -> None:
    decision, reasons = settled(finding(symptom), Category.NONE)
    if symptom is Symptom.SCOPE:
        assert decision is Decision.NARROW_SCOPE
    else:
        assert held(reasons, BEHAVES) is (symptom.value in DIFFERENT)


@pytest.mark.parametrize("category", list(Category))
@pytest.mark.parametrize(
    "what", [finding("scope"), finding("exception", scoped_only=True), finding("value", FILES, scoped_only=True)]
)
def test_scope_comes_before_everything(what: Finding, category: Category) -> None:
    assert settled(what, category, "note")[0] is Decision.NARROW_SCOPE


@pytest.mark.parametrize("exception", list(Decision))
@pytest.mark.parametrize("category", list(Category))
def test_a_rule_may_prescribe_a_decision(exception: Decision, category: Category) -> None:
    decision, reasons = settled(finding(sites=FILES), category, exception.value)
    assert decision is exception
    assert reasons == (f"the rule prescribes {exception}",)


@pytest.mark.parametrize("symptom", ["missing_api", "value", "crash", "compile_error"])
@pytest.mark.parametrize("sites", [ONE, FILES])
def test_private_behaviour_is_noted(symptom: str, sites: tuple[Site, ...]) -> None:
    decision, reasons = settled(finding(symptom, sites), Category.B)
    assert decision is Decision.NOTE
    assert len(reasons) == 1


@given(
    st.sampled_from([s for s in Symptom if s is not Symptom.SCOPE]),
    st.sampled_from([Category.A, Category.NONE]),
    st.lists(st.builds(Site, st.sampled_from(["a.py", "b.py", "c.py"]), st.integers(1, 9)), max_size=6).map(tuple),
    st.fixed_dictionaries({
        "build_step": st.sampled_from(["", "compile", "link"]), "outside": st.booleans(),
        "counterpart": st.sampled_from(["", "paddle.f", "paddle._C_ops.f"]),
    }, optional={"reaches_result": st.booleans()}),
)  # fmt: skip
def test_a_workaround_has_all_conditions_and_an_issue_has_a_signal(
    symptom: Symptom, category: Category, sites: tuple[Site, ...], facts: dict[str, Any]
) -> None:
    decision, reasons = settled(finding(symptom, sites, **facts), category)
    conditions = all(held(reasons, c) for c in CONDITIONS)
    signals = any(held(reasons, s) for s in SIGNALS)
    assert (decision in (Decision.WORKAROUND, Decision.BOTH)) is conditions
    assert (decision in (Decision.ISSUE, Decision.BOTH)) is signals
    assert (decision is Decision.NOTE) is (not conditions and not signals)


def test_a_known_replacement_with_public_names_makes_a_private_one_needless() -> None:
    assert remedies("torch.max")
    _, reasons = settled(finding(api="torch.max", counterpart="paddle._C_ops.max"), Category.A)
    assert "no: a Paddle private API would be needed (a known replacement names public API only)" in " ".join(reasons)


@pytest.mark.parametrize(("text", "private"), [
    ("paddle.linalg.det(x)", ""), ("paddle._C_ops.det(x)", "paddle._C_ops.det"), ("x._PD_GetInner()", "_PD_GetInner"),
    ("paddle.base.framework.Variable", "paddle.base.framework.Variable"), ("paddle.__version__", ""),
    ("paddle.framework.core.eager", "paddle.framework.core.eager"), ("torch._C._nn.gelu(x)", ""),
])  # fmt: skip
def test_which_names_are_private_to_paddle(text: str, private: str) -> None:
    assert private_name(text) == private


def test_no_shipped_remedy_needs_a_private_name_of_paddle() -> None:
    assert {api: text for api, texts in counterparts._known().items() for text in texts if private_name(text)} == {}


@pytest.mark.parametrize(("what", "category", "found", "signals", "expected"), [
    (finding(), Category.NONE, True, (), "workaround"),
    (finding(), Category.NONE, False, (SEMANTICS,), "workaround+issue"),
    (finding(counterpart="paddle._C_ops.f"), Category.A, True, (PUBLIC,), "workaround+issue"),
    (finding(sites=FILES), Category.A, False, (SEMANTICS, SPREAD, PUBLIC), "issue"),
    (finding(), Category.B, False, None, "note"),
])  # fmt: skip
def test_what_was_tried_settles_two_signals(
    what: Finding, category: Category, found: bool, signals: tuple[str, ...] | None, expected: str
) -> None:
    ruling = after_trial(decide(what, category), works=found)
    decision, reasons = ruling.decision, said(ruling)
    assert decision == expected
    if signals is not None:
        assert {s for s in SIGNALS if held(tuple(reasons), s)} == set(signals)


def test_reasons_stand_in_the_evidence_of_the_gap() -> None:
    (gap,) = classify([finding()])
    assert gap.decision is Decision.BOTH
    assert any(
        line.startswith("workaround if all - yes: it wraps one incompatibility point (1 site(s)")
        for line in gap.evidence
    )
    assert any(
        line.startswith("issue if any - yes: the cause is public compat behaviour (category A)")
        for line in gap.evidence
    )


def test_gaps_that_share_a_name_are_numbered() -> None:
    gaps = classify([finding(), finding(), finding("value")])
    assert [gap.id for gap in gaps] == ["torch.f:missing_api", "torch.f:missing_api:2", "torch.f:value"]


def test_what_no_rule_claims_is_unclassified_and_says_so() -> None:
    (gap,) = classify([finding()], ())
    assert gap.layer is Layer.UNCLASSIFIED
    assert gap.rule == ""
    assert gap.evidence[0].startswith("UNCLASSIFIED")
