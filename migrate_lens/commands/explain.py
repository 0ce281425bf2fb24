"""A rule's id, or a gap's of the last diagnosis, in; what the rule means, why, and what to do, out. No printing."""

from __future__ import annotations

import linecache
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from migrate_lens import media, state
from migrate_lens.config import DEFAULT_STATE
from migrate_lens.model.errors import UsageError
from migrate_lens.model.reading import Fields
from migrate_lens.model.report import Decision, Gap
from migrate_lens.remedies import kept
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
    rule = chosen(name, rules, claimed(report))
    gap = next((gap for gap in kept.gaps_of(report.parent) if gap.id == name), None)
    shown = () if gap is None else _about(gap, _root(report), report.parent)
    about = "".join(f"{_indent(line)}{media.line(line)}\n" for line in shown)
    return (f"{about}\nRule {rule.id}\n" if about else "") + explained(rule, width)


def _about(gap: Gap, root: Path, state_folder: Path) -> Iterator[str]:
    """A gap as a person reads it: where it is, both outcomes, the facts that decided, and the next command."""
    yield f"{gap.id}: {gap.decision}, layer {gap.layer}, category {gap.category}"
    for site in gap.sites:
        source = linecache.getline(str(root / site.path), site.line).strip()
        yield f"  at {site.path}:{site.line}: {source}".rstrip(": ")
    yield f"  expected  {gap.expected}"
    yield f"  actual    {gap.actual}"
    yield from (f"  - {fact}" for fact in gap.evidence)
    command = "fix" if gap.decision in (Decision.WORKAROUND, Decision.NOTE) else "issue --emit"
    kept_in = "" if state_folder == DEFAULT_STATE else f" --state {shlex.quote(str(state_folder))}"
    yield f"  next      migrate-lens {command} {shlex.quote(gap.id)}{kept_in}"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _root(report: Path) -> Path:
    """The library that was diagnosed."""
    document = Fields(state.read(report) or {}, str(report))
    return Path(document.part("library").text("root"))


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
    return {str(gap.get("id")): str(gap.get("rule")) for gap in gaps if isinstance(gap, dict)}


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
