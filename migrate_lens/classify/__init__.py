"""Findings in, gaps out: rules name the layer and the category, the written policy names the decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrate_lens.classify.decide import decide
from migrate_lens.model.report import Category, Finding, Gap, Layer
from migrate_lens.rulebook.classify import Rule, facts_of, load_rules, match

__all__ = ["Rule", "classify", "load_rules", "match"]


def classify(findings: Iterable[Finding], rules: tuple[Rule, ...] | None = None) -> tuple[Gap, ...]:
    """Turn findings into gaps, in their order; a finding that no rule claims is ``unclassified``, and says so.

    Raises:
        RuleError: a rule file is not valid.
    """
    known = load_rules() if rules is None else rules
    gaps: list[Gap] = []
    taken: dict[str, int] = {}
    for finding in findings:
        gap = _gap(finding, known)
        seen = taken[gap.id] = taken.get(gap.id, 0) + 1
        gaps.append(gap if seen == 1 else _renamed(gap, seen))
    return tuple(gaps)


def _gap(finding: Finding, rules: tuple[Rule, ...]) -> Gap:
    facts = facts_of(finding)
    layered = match(rules, facts, "layer")
    categorised = match(rules, facts, "category")
    layer = Layer(layered.layer) if layered and layered.layer else Layer.UNCLASSIFIED
    category = Category(categorised.category) if categorised and categorised.category else Category.A
    decided = match(rules, facts, "decision")
    ruling = decide(finding, category, decided.decision if decided else "")
    observed = finding.evidence
    if layer is Layer.UNCLASSIFIED:
        observed = ("UNCLASSIFIED: no rule claims this; please report it with this evidence", *observed)
    return Gap(
        id=f"{finding.key.api}:{finding.key.symptom}",
        api=finding.key.api,
        symptom=finding.key.symptom,
        layer=layer,
        category=category,
        decision=ruling.decision,
        rule=_told(layered, categorised, decided),
        stage=finding.stage,
        sites=finding.sites,
        expected=finding.expected,
        actual=finding.actual,
        observed=observed,
        ruling=ruling,
        detail=finding.key.detail,
        exception=str(finding.facts.get("exception", "")),
        raised_in=_raised_in(finding),
    )


def _raised_in(finding: Finding) -> str:
    """Where the target raised, for what no observed call did: a call that raises says enough by its name."""
    return "" if "kind" in finding.facts else str(finding.facts.get("raised_in", ""))


def _told(*found: Rule | None) -> str:
    """The rule that says most about a gap."""
    known = [r for r in found if r is not None]
    return max(known, key=lambda r: r.weight).id if known else ""


def _renamed(gap: Gap, number: int) -> Gap:
    return replace(gap, id=f"{gap.id}:{number}")
