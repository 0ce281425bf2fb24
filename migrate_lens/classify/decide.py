"""The written policy: a finding and its category in; workaround, issue, both, note or narrow_scope, with reasons, out.

A workaround needs all of four conditions; an issue is called for by any one of six signals; notes and the scope case
are exceptions to both. Each condition and signal is settled by a fact, which stays with the decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrate_lens.model.report import Category, Finding, Symptom
from migrate_lens.model.ruling import Condition, DecidedBy, Decision, Ruling, Settled
from migrate_lens.model.target import TARGET
from migrate_lens.rulebook.counterparts import remedies
from migrate_lens.rulebook.private import private_name

_BEHAVES_DIFFERENTLY = frozenset((
    Symptom.SHAPE, Symptom.DTYPE, Symptom.DEVICE, Symptom.LAYOUT, Symptom.ALIAS, Symptom.VALUE, Symptom.GRADIENT,
    Symptom.STATE, Symptom.EXCEPTION, Symptom.CRASH, Symptom.TIMEOUT, Symptom.SCHEMA, Symptom.DISPATCH,
))  # fmt: skip
# Of more sites than these a workaround would wrap more than one point.
_MOST_SITES = 3


def decide(finding: Finding, category: Category, exception: str = "") -> Ruling:
    """Decide about one finding.

    Args:
        finding: what was observed.
        category: A, B or none.
        exception: the decision that a rule prescribes outside the policy (a note, the scope case).
    """
    if finding.facts.get("scoped_only") or finding.key.symptom is Symptom.SCOPE:
        return Ruling(Decision.NARROW_SCOPE, DecidedBy.SCOPE)
    if exception:
        return Ruling(Decision(exception), DecidedBy.RULE)
    if category is Category.B:
        return Ruling(Decision.NOTE, DecidedBy.CATEGORY)
    settled = (*_conditions(finding), *_signals(finding, category))
    return Ruling(_by_policy(settled), DecidedBy.POLICY, settled)


def _by_policy(settled: tuple[Settled, ...]) -> Decision:
    workaround = all(one.holds for one in settled if not one.condition.is_signal)
    issue = any(one.holds for one in settled if one.condition.is_signal)
    match workaround, issue:
        case True, True:
            return Decision.BOTH
        case True, False:
            return Decision.WORKAROUND
        case False, True:
            return Decision.ISSUE
        case _:
            return Decision.NOTE


def _files(finding: Finding) -> int:
    return len({site.path for site in finding.sites})


def _conditions(finding: Finding) -> Iterator[Settled]:
    """The conditions of a workaround."""
    files, sites = _files(finding), len(finding.sites)
    one_point = files <= 1 and sites <= _MOST_SITES
    yield Settled(Condition.ONE_POINT, one_point, f"{sites} site(s) in {files} file(s)")
    outside = bool(finding.facts.get("outside"))
    where = "the call stands in another package" if outside else "the patch is made at the call sites"
    yield Settled(Condition.LOCAL_PATH, not outside, where)
    symptom = finding.key.symptom
    whole = symptom not in (Symptom.CRASH, Symptom.TIMEOUT)
    yield Settled(Condition.SEMANTICS_STAY, whole, f"symptom {symptom}")
    yield Settled(Condition.COMMENTED, True, "the template has all four")


def _signals(finding: Finding, category: Category) -> Iterator[Settled]:
    """The signals of an issue."""
    files, symptom = _files(finding), finding.key.symptom
    kernels = str(finding.facts.get("build_step", "")) == "compile" and files > 1
    yield Settled(Condition.SEVERAL_KERNELS, kernels, f"{files} native file(s)" if kernels else "no kernel")
    yield _semantics(finding)
    yield _private(finding)
    yield Settled(Condition.SEVERAL_FILES, files > 1, f"{files} file(s)")
    yield Settled(Condition.BEHAVES_DIFFERENTLY, symptom in _BEHAVES_DIFFERENTLY, f"symptom {symptom}")
    yield Settled(Condition.PUBLIC_BEHAVIOUR, category is Category.A, f"category {category}")


def _semantics(finding: Finding) -> Settled:
    """Whether the library, left as it is, runs to its end and does something else: seen in runs, never guessed."""
    reaches = finding.facts.get("reaches_result")
    if reaches is None:
        fact = f"no run under {TARGET.title} ends well with another result that this could be seen to make"
    elif reaches:
        fact = "the program ends well, and with this difference alone its result is another"
    else:
        fact = "with this difference alone the program has torch's result"
    return Settled(Condition.SEMANTICS_CHANGE, bool(reaches), fact)


def _private(finding: Finding) -> Settled:
    """Whether the target has what is missing under a private name only."""
    replacements = remedies(finding.key.api)
    private = [name for text in replacements if (name := private_name(text))]
    if replacements and len(private) < len(replacements):
        return _needs_private(False, "a known replacement names public API only")
    if private:
        return _needs_private(True, f"the known replacement names {private[0]}")
    if finding.key.symptom is not Symptom.MISSING_API:
        return _needs_private(False, f"symptom {finding.key.symptom}: the name itself is there")
    counterpart = str(finding.facts.get("counterpart", ""))
    if private_name(counterpart):
        return _needs_private(True, f"{TARGET.title} has it as {counterpart} only")
    if counterpart:
        return _needs_private(False, f"{TARGET.title} has {counterpart}")
    return _needs_private(False, f"no private name of {TARGET.title}'s stands for it")


def _needs_private(holds: bool, fact: str) -> Settled:
    return Settled(Condition.PRIVATE_API, holds, fact)


def after_trial(ruling: Ruling, *, works: bool) -> Ruling:
    """A ruling once replacements were tried on both sides: what was seen settles two signals anew.

    Args:
        ruling: how it was decided so far.
        works: whether one gave torch's result on both sides; they name public API only.
    """
    settled = tuple(_settled_anew(one, works) for one in ruling.settled)
    signalled = any(one.holds for one in settled if one.condition.is_signal)
    both = signalled and ruling.decision in (Decision.WORKAROUND, Decision.BOTH)
    return replace(ruling, decision=Decision.BOTH if both else ruling.decision, settled=settled)


def _settled_anew(one: Settled, works: bool) -> Settled:
    if works and one.condition is Condition.PRIVATE_API and one.holds:
        return replace(one, holds=False, fact="a replacement with public names gives the result of torch")
    if not works and one.condition is Condition.SEMANTICS_CHANGE and not one.holds:
        return replace(one, holds=True, fact="nothing that was tried gives the result of torch on both sides")
    return one
