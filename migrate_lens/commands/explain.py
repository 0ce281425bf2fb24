"""A rule's id, or a gap's of the last diagnosis, in; what the rule means, why, and what to do, out. No printing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from migrate_lens import state
from migrate_lens.model.errors import UsageError
from migrate_lens.rulebook.classify import Rule, load_rules


def run(name: str | None, report: Path, width: int) -> str:
    """What one rule means, or a list of all of them.

    Args:
        name: a rule's id or a gap's; None for the list.
        report: the JSON report of the last diagnosis, if there was one.
        width: columns that a line may take.

    Raises:
        UsageError: there is no such rule and no such gap, or no rule claims the gap.
        StateError: the report is spoiled.
    """
    rules = load_rules()
    if name is None:
        return listed(rules)
    return explained(chosen(name, rules, claimed(report)), width)


def listed(rules: Iterable[Rule]) -> str:
    """One line a rule."""
    titles = {rule.id: rule.title for rule in rules}
    return "".join(f"{name}: {title}\n" for name, title in sorted(titles.items()))


def claimed(report: Path) -> dict[str, str]:
    """The rule of each gap of the last diagnosis; empty where there was none."""
    document = state.read(report) or {}
    gaps = document.get("gaps")
    if not isinstance(gaps, list):
        return {}
    return {str(gap.get("id")): str(gap.get("rule")) for gap in gaps}


def chosen(name: str, rules: Iterable[Rule], claims: Mapping[str, str]) -> Rule:
    """The rule of that id, or the one that claims the gap of that id.

    Raises:
        UsageError: there is none.
    """
    known = {rule.id: rule for rule in rules}
    rule = known.get(claims.get(name, name))
    if rule is not None:
        return rule
    if name in claims:
        raise UsageError(f"no rule claims {name}", "report it with its evidence, which is in report.json")
    near = get_close_matches(name, [*known, *claims], n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "migrate-lens explain"
    raise UsageError(f"no rule called {name!r}", hint)


def explained(rule: Rule, width: int) -> str:
    """A rule as a person reads it."""
    parts = [f"{rule.id}: {rule.title}\nlayer {rule.layer or ''}, category {rule.category or ''}"]
    for heading, prose in (("Why", rule.why), ("Instead", rule.instead)):
        if prose:
            parts.append(f"{heading}\n{_filled(prose, width)}")
    if rule.references:
        references = "\n".join(f"  - {reference}" for reference in rule.references)
        parts.append(f"References\n{references}")
    return "\n\n".join(parts) + "\n"


def _filled(prose: str, width: int) -> str:
    return textwrap.fill(" ".join(prose.split()), width, initial_indent="  ", subsequent_indent="  ")
