"""The written policy: a finding and its category in; workaround, issue, both, note or narrow_scope, with reasons, out.

A workaround needs all of four conditions; an issue is called for by any one of six signals; notes and the scope case
are exceptions to both. Each condition and signal is listed with the fact that settled it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate_lens.model.report import Category, Decision, Finding, Symptom
from migrate_lens.rulebook.counterparts import remedies
from migrate_lens.rulebook.private import private_name

SEMANTICS = "the library's semantics would change"
_SIGNAL = "issue if any - "
PRIVATE = "a Paddle private API would be needed"
_BEHAVES_DIFFERENTLY = frozenset((
    Symptom.SHAPE, Symptom.DTYPE, Symptom.DEVICE, Symptom.LAYOUT, Symptom.ALIAS, Symptom.VALUE, Symptom.GRADIENT,
    Symptom.STATE, Symptom.EXCEPTION, Symptom.CRASH, Symptom.TIMEOUT, Symptom.SCHEMA, Symptom.DISPATCH,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settled:
    """One condition or signal, and the fact that settled it."""

    name: str
    holds: bool
    fact: str

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'no'}: {self.name} ({self.fact})"


def decide(finding: Finding, category: Category, exception: str = "") -> tuple[Decision, tuple[str, ...]]:
    """Decide about one finding.

    Args:
        finding: what was observed.
        category: A, B or none.
        exception: the decision that a rule prescribes outside the policy (a note, the scope case).
    """
    if finding.facts.get("scoped_only") or finding.key.symptom is Symptom.SCOPE:
        return Decision.NARROW_SCOPE, ("scoped and global compat differ: shrink or extend the scope first",)
    if exception:
        return Decision(exception), (f"the rule prescribes {exception}",)
    if category is Category.B:
        return Decision.NOTE, ("category B: the library relies on private behaviour that a thin shim covers",)
    conditions, signals = tuple(_conditions(finding)), tuple(_signals(finding, category))
    workaround, issue = all(c.holds for c in conditions), any(s.holds for s in signals)
    reasons = tuple(f"workaround if all - {c}" for c in conditions) + tuple(f"{_SIGNAL}{s}" for s in signals)
    if workaround and issue:
        return Decision.BOTH, reasons
    if issue:
        return Decision.ISSUE, reasons
    return (Decision.WORKAROUND if workaround else Decision.NOTE), reasons


def _files(finding: Finding) -> int:
    return len({site.path for site in finding.sites})


def _conditions(finding: Finding) -> Iterator[Settled]:
    files, sites = _files(finding), len(finding.sites)
    yield Settled(
        "it wraps one incompatibility point", files <= 1 and sites <= 3, f"{sites} site(s) in {files} file(s)"
    )
    outside = bool(finding.facts.get("outside"))
    where = "the call stands in another package" if outside else "the patch is made at the call sites"
    yield Settled("it touches only this library's local path", not outside, where)
    whole = finding.key.symptom not in (Symptom.CRASH, Symptom.TIMEOUT)
    yield Settled("public API semantics stay", whole, f"symptom {finding.key.symptom}")
    yield Settled(
        "it carries a TODO with owner, purpose, reason and deletion condition", True, "the template has all four"
    )


def _signals(finding: Finding, category: Category) -> Iterator[Settled]:
    files, symptom = _files(finding), finding.key.symptom
    native = str(finding.facts.get("build_step", "")) == "compile" and files > 1
    yield Settled(
        "several core kernels would change for one gap", native, f"{files} native file(s)" if native else "no kernel"
    )
    yield Settled(SEMANTICS, *_semantics(finding))
    yield Settled(PRIVATE, *_private(finding))
    yield Settled("the same pattern stands in several files", files > 1, f"{files} file(s)")
    different = symptom in _BEHAVES_DIFFERENTLY
    yield Settled("the same call site behaves differently in the two frameworks", different, f"symptom {symptom}")
    public = category is Category.A
    yield Settled("the cause is public compat behaviour", public, f"category {category}")


def _semantics(finding: Finding) -> tuple[bool, str]:
    """Whether the library, left as it is, runs to its end and does something else: seen in runs, never guessed."""
    reaches = finding.facts.get("reaches_result")
    if reaches is None:
        return False, "no run under Paddle ends well with another result that this could be seen to make"
    if reaches:
        return True, "the program ends well, and with this difference alone its result is another"
    return False, "with this difference alone the program has torch's result"


def _private(finding: Finding) -> tuple[bool, str]:
    """Whether Paddle has what is missing under a private name only."""
    known = remedies(finding.key.api)
    bad = [name for text in known if (name := private_name(text))]
    if known and len(bad) < len(known):
        return False, "a known replacement names public API only"
    if bad:
        return True, f"the known replacement names {bad[0]}"
    if finding.key.symptom is not Symptom.MISSING_API:
        return False, f"symptom {finding.key.symptom}: the name itself is there"
    counterpart = str(finding.facts.get("counterpart", ""))
    if private_name(counterpart):
        return True, f"Paddle has it as {counterpart} only"
    return False, f"Paddle has {counterpart}" if counterpart else "no private name of Paddle's stands for it"


def after_trial(decision: str, evidence: Sequence[str], *, found: bool) -> tuple[str, list[str]]:
    """A decision and its evidence once replacements were tried on both sides: what was seen settles two signals anew.

    Args:
        decision: the decision so far.
        evidence: its evidence, with a line for each signal.
        found: whether one gave torch's result on both sides; they name public API only.
    """
    changed = []
    for line in evidence:
        if found and line.startswith(f"{_SIGNAL}yes: {PRIVATE}"):
            line = f"{_SIGNAL}{Settled(PRIVATE, False, 'a replacement with public names gives the result of torch')}"
        if not found and line.startswith(f"{_SIGNAL}no: {SEMANTICS}"):
            line = (
                f"{_SIGNAL}{Settled(SEMANTICS, True, 'nothing that was tried gives the result of torch on both sides')}"
            )
        changed.append(line)
    signalled = any(line.startswith(f"{_SIGNAL}yes: ") for line in changed)
    both = signalled and decision in (Decision.WORKAROUND, Decision.BOTH)
    return (str(Decision.BOTH) if both else decision), changed
