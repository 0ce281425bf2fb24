"""Findings in, gaps out: rules name the layer and the category, the written policy names the decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrate_lens.classify.decide import decide
from migrate_lens.model.report import Category, Finding, Gap, Layer
from migrate_lens.rulebook.classify import Rule, answer, facts_of, load_rules, match

__all__ = ["Rule", "classify", "load_rules", "match"]

_UNCLAIMED = "UNCLASSIFIED: no rule claims this; please report it with this evidence"


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
        count = taken[gap.id] = taken.get(gap.id, 0) + 1
        gaps.append(gap if count == 1 else replace(gap, id=f"{gap.id}:{count}"))
    return tuple(gaps)


def _gap(finding: Finding, rules: tuple[Rule, ...]) -> Gap:
    """One gap: each aspect is what the most specific rule about it says, the rule that is named says most of all."""
    facts = facts_of(finding)
    layered = match(rules, facts, "layer")
    categorised = match(rules, facts, "category")
    decided = match(rules, facts, "decision")
    named = answer(rules, facts)
    layer = (layered and layered.layer) or Layer.UNCLASSIFIED
    category = (categorised and categorised.category) or Category.A
    decision, reasons = decide(finding, category, (decided and decided.decision) or "")
    evidence = (*finding.evidence, *reasons)
    if layer is Layer.UNCLASSIFIED:
        evidence = (_UNCLAIMED, *evidence)
    return Gap(
        id=f"{finding.key.api}:{finding.key.symptom}",
        api=finding.key.api,
        symptom=finding.key.symptom,
        layer=layer,
        category=category,
        decision=decision,
        rule=named.id if named else "",
        stage=finding.stage,
        sites=finding.sites,
        expected=finding.expected,
        actual=finding.actual,
        evidence=evidence,
    )
