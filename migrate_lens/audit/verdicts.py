"""One use, in; what is wrong with it, out: a name that both frameworks were asked for, or what a rule knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from migrate_lens.audit.surface import Answer, Declaration, Surface
from migrate_lens.audit.tree import Language, Role
from migrate_lens.model.audit import Basis, Verdict
from migrate_lens.model.report import Category, Decision, Key, Layer, Symptom
from migrate_lens.model.uses import LAZY, Certainty, Event, Use, words
from migrate_lens.rulebook.audit import PRIVATE, Rule, RuleSet

NAMED = words("import read call method attribute base decorator isinstance getattr annotation union attr")
CALLS = words("call method decorator")
TYPE_USES = words("call isinstance base decorator union")
# Classes of which both frameworks were asked for the members of an instance: the class is another one under compat.
INSTANCES = words(
    "torch.Tensor torch.nn.Module torch.dtype torch.device torch.Size torch.autograd.function.FunctionCtx"
)
# Classes whose members both frameworks were asked for.
ASKED_OWNERS = INSTANCES | words(
    "torch.library.CustomOpDef torch.cuda.Stream torch.cuda.Event torch.distributed.ProcessGroup"
)
# Classes whose members are known to a reader; of those that stand only here, only rules speak.
MEMBER_OWNERS = ASKED_OWNERS | words(
    "torch.Generator torch.cuda.DeviceProperties torch.library.Library torch.finfo torch.iinfo"
)
NATIVE: dict[Event, Declaration] = {
    "include": Declaration.HEADERS,
    "name": Declaration.NAMES,
    "macro": Declaration.MACROS,
}
NATIVE_CLASSES = {"Tensor": "Tensor", "CUDAStream": "CUDAStream", "torch::Library": "Library"}


RESULTS = (Symptom.VALUE, Symptom.SHAPE)  # what can be wrong with the result of a call
OTHER_KIND = "other_kind"  # the detail of a key whose name is another kind of thing


class Finding(NamedTuple):
    """What one use shows, before sites are gathered.

    Attributes:
        key: what makes two findings the same.
        rule: the rule that speaks, or what was asked.
        basis: what it rests on.
        weight: how much it matters.
        expected: what torch has.
        actual: what Paddle has instead.
        decision: None where the sites decide.
        keyword: the index of the keyword whose line counts; None for the line of the name.
    """

    key: Key
    layer: Layer
    category: Category
    rule: str
    basis: Basis
    weight: float
    expected: str
    actual: str
    decision: Decision | None = None
    keyword: int | None = None


class Judge:
    """Judges uses; the same use in another place costs one look-up."""

    def __init__(self, surface: Surface, rules: RuleSet) -> None:
        self.surface, self.rules = surface, rules
        self.memo: dict[tuple[object, ...], tuple[Finding, ...]] = {}

    def judge(self, use: Use, role: Role, lang: Language) -> tuple[Finding, ...]:
        """Everything that is wrong with one use; lines are those of the use."""
        event, api, _, sure, guard, at, inside, keywords, _, positional, then, value, literal = use
        key = (event, api, sure, guard, at, inside, keywords, positional, then, value, literal, role, lang)
        findings = self.memo.get(key)
        if findings is None:
            findings = self.memo[key] = tuple(self.findings(use, role, lang))
        return findings

    def findings(self, use: Use, role: Role, lang: Language) -> Iterator[Finding]:
        """A rule that knows more than a name look-up goes first; else the look-up; else any rule."""
        if self.is_librarys_own(use) or is_unread(use):
            return
        rule = self.rules.find(use, role, lang)
        asked = list(self.asked(use))
        of_keywords = [finding for finding in asked if finding.keyword is not None]
        of_name = any(finding.keyword is None and finding.basis is Basis.ASKED for finding in asked)
        if rule is not None and (rule.over_verdict or not of_name):
            if not (of_keywords and rule.symptom in RESULTS):  # a call that is refused has no result
                yield of_rule(rule, use)
            yield from of_keywords
        else:
            yield from asked

    def stop(self, use: Use) -> Finding | None:
        """What a line that does this cannot get past, where both frameworks were asked and the reader is sure enough.

        What a line gets past and a rule warns of is left out; so is a stand-in, which can be imported and called.
        """
        if use.sure is Certainty.GUESS or is_unread(use) or not is_named(use):
            return None
        answer = self.ask(use)
        if answer.verdict is Verdict.MISSING:
            return missing(answer)
        if answer.verdict is Verdict.OTHER_KIND and answer.kind != "value" and kind_matters(use.event, answer):
            return other(answer, f"a {answer.paddle}")
        return next(refused(use, answer), None) if use.event in CALLS else None

    def is_librarys_own(self, use: Use) -> bool:
        """Whether a member of an instance is one that torch's class has not: then the library, or Python, made it."""
        owner, _, _ = use.api.rpartition(".")
        return use.value == owner and self.surface.knows_members(owner) and not self.surface.is_torchs(use.api)

    def asked(self, use: Use) -> Iterator[Finding]:
        """What both frameworks say about the name."""
        if is_native(use):
            answer = self.native(use)
            if answer.verdict is Verdict.MISSING:
                yield native_missing(use, answer)
        elif is_named(use):
            yield from self.asked_python(use)

    def asked_python(self, use: Use) -> Iterator[Finding]:
        """What both frameworks say about a Python name."""
        answer = self.ask(use)
        match answer.verdict:
            case Verdict.MISSING:
                yield missing(answer)
                return
            case Verdict.FAKE:
                yield other(answer, "a stand-in that does nothing")
                return
            case Verdict.OTHER_KIND if kind_matters(use.event, answer):
                yield other(answer, f"a {answer.paddle}")
                return
        if use.event in CALLS:
            yield from refused(use, answer)

    def native(self, use: Use) -> Answer:
        """The verdict on a C++ name, macro, header or method."""
        if use.event in NATIVE:
            return self.surface.declared(NATIVE[use.event], use.api)
        owner, _, name = use.api.rpartition("::")
        return self.surface.native_method(NATIVE_CLASSES.get(owner, owner), name)

    def answer(self, use: Use) -> Answer:
        """What both frameworks say of the name alone, for the inventory."""
        if is_native(use):
            return self.native(use)
        if "::" in use.api or not is_named(use):
            return Answer(Verdict.UNKNOWN, use.api)
        answer = self.ask(use)
        if answer.verdict is Verdict.MISSING and not self.surface.is_told(use.api):
            return Answer(Verdict.UNKNOWN, use.api)  # its owner is missing; whether torch's has it was not told
        return answer

    def ask(self, use: Use) -> Answer:
        """What both frameworks say of a Python name, or of a member of an instance."""
        return self.surface.ask_member(use.api) if use.value in INSTANCES else self.surface.ask(use.api)


def is_unread(use: Use) -> bool:
    """Whether Python never evaluates what is there: an annotation in quotes, in a function, or under ``__future__``."""
    return use.event == "annotation" and use.value == LAZY


def is_native(use: Use) -> bool:
    """Whether a use is of a C++ name, macro, header or method."""
    return use.event in NATIVE or (use.event == "method" and "::" in use.api)


def is_named(use: Use) -> bool:
    """Whether both frameworks were asked for the Python name of a use."""
    if use.event not in NAMED or not use.api:
        return False
    return use.value in ASKED_OWNERS or use.value not in MEMBER_OWNERS


def of_rule(rule: Rule, use: Use) -> Finding:
    """A finding in the words of a rule."""
    api = rule.under or use.api or use.value or rule.id
    return Finding(
        key=Key(rule.symptom, api, rule.id),
        layer=rule.layer,
        category=rule.category,
        rule=rule.id,
        basis=Basis.RULE,
        weight=rule.weight,
        expected=rule.title,
        actual=rule.why,
        decision=rule.decision,
    )


def missing(answer: Answer) -> Finding:
    """A Python name that torch has and Paddle's proxy has not."""
    private = PRIVATE.search(answer.name) is not None
    return Finding(
        key=Key(Symptom.MISSING_API, answer.name),
        layer=layer_of(answer.name, answer.kind),
        category=Category.B if private else Category.A,
        rule="asked_name",
        basis=Basis.ASKED,
        weight=3.0,
        expected=f"torch has it: a {answer.kind}",
        actual="Paddle's torch proxy has no such name" + near(answer),
        decision=Decision.NOTE if private else None,
    )


def near(answer: Answer) -> str:
    """What Paddle has that is called most like a missing name."""
    return f"; the nearest by name is {answer.nearest}, whose behaviour was not compared" if answer.nearest else ""


def layer_of(name: str, kind: str) -> Layer:
    """Where a missing Python name belongs."""
    if name.startswith(("torch.library", "torch.ops")):
        return Layer.OP_REGISTRY
    if name.startswith(("torch.utils.cpp_extension", "torch.utils.cmake", "torch.utils.hipify")):
        return Layer.BUILD
    return Layer.PYTHON_PROXY if kind == "module" else Layer.PYTHON_INTERFACE


def kind_matters(event: Event, answer: Answer) -> bool:
    """Whether this use can tell the two kinds apart."""
    match answer.kind, answer.paddle:
        case "class", "function":
            return event in ("isinstance", "base", "union")
        case "function", "class":
            return False
        case (("class" | "function"), _):
            return event in TYPE_USES or event == "method"
        case "value", _:
            return event in ("read", "attribute")
        case _:
            return False


def other(answer: Answer, what: str) -> Finding:
    """A name that is there and is something else."""
    return Finding(
        key=Key(Symptom.EXCEPTION, answer.name, OTHER_KIND),
        layer=Layer.PYTHON_PROXY,
        category=Category.A,
        rule="asked_kind",
        basis=Basis.ASKED,
        weight=3.0,
        expected=f"a {answer.kind}",
        actual=f"Paddle's torch proxy has {what} under this name",
    )


def refused(use: Use, answer: Answer) -> Iterator[Finding]:
    """Keywords that torch takes and Paddle refuses."""
    for index, keyword in enumerate(use.keywords):
        if keyword not in answer.refused:
            continue
        yield Finding(
            key=Key(Symptom.MISSING_ARGUMENT, answer.name, keyword),
            layer=Layer.PYTHON_INTERFACE,
            category=Category.A,
            rule="asked_keyword",
            basis=Basis.ASKED,
            weight=2.6,
            expected=f"takes {keyword}=",
            actual=f"Paddle refuses {keyword}=",
            keyword=index,
        )


def native_missing(use: Use, answer: Answer) -> Finding:
    """A C++ name, macro, method or header that torch's headers declare and Paddle's do not."""
    header = use.event == "include"
    registry = "Library" in use.api or "LIBRARY" in use.api
    return Finding(
        key=Key(Symptom.MISSING_HEADER if header else Symptom.MISSING_API, answer.name),
        layer=Layer.OP_REGISTRY if registry else Layer.CPP_API,
        category=Category.A,
        rule="asked_native",
        basis=Basis.ASKED,
        weight=3.0,
        expected="torch ships it" if header else "torch's headers declare it",
        actual="Paddle ships no such header" if header else "none of Paddle's compat headers declares it",
    )
