"""One use, in; what is wrong with it, out: a name that both frameworks were asked for, or what a rule knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from migrate_lens.audit.surface import Answer, Surface
from migrate_lens.model.audit import ASKED, RULE
from migrate_lens.model.report import Category, Decision, Key, Layer, Symptom
from migrate_lens.model.uses import Use, words
from migrate_lens.rulebook.audit import PRIVATE, Rule, RuleSet

NAMED = words("import read call method attribute base decorator isinstance getattr annotation attr")
CALLS = frozenset(("call", "method", "decorator"))
TYPE_USES = frozenset(("call", "isinstance", "base", "decorator"))
# Classes whose members both frameworks were asked for, on an instance where the class is another one under compat.
ASKED_OWNERS = words(
    "torch.Tensor torch.nn.Module torch.dtype torch.device torch.Size torch.library.CustomOpDef torch.cuda.Stream "
    "torch.cuda.Event torch.distributed.ProcessGroup"
)
NATIVE = {"include": "headers", "name": "names", "macro": "macros"}
NATIVE_CLASSES = {"Tensor": "Tensor", "CUDAStream": "CUDAStream", "torch::Library": "Library"}


class Finding(NamedTuple):
    """What one use shows, before sites are gathered; ``which`` is the keyword whose line counts, -1 for the name's."""

    key: Key
    layer: Layer
    category: Category
    decision: Decision | None
    rule: str
    basis: str
    weight: float
    which: int
    expected: str
    actual: str


class Judge:
    """Judges uses; the same use in another place costs one look-up."""

    def __init__(self, surface: Surface, rules: RuleSet) -> None:
        self.surface, self.rules = surface, rules
        self.memo: dict[tuple[object, ...], tuple[Finding, ...]] = {}
        self.verdicts: dict[str, tuple[str, int]] = {}

    def judge(self, use: Use, role: str, lang: str) -> tuple[Finding, ...]:
        """Everything that is wrong with one use; lines are those of the use."""
        key = (
            use.event,
            use.api,
            use.sure,
            use.at,
            use.inside,
            use.keywords,
            use.positional,
            use.then,
            use.value,
            use.literal,
            role,
            lang,
        )
        if key not in self.memo:
            self.memo[key] = tuple(self.findings(use, role, lang))
        return self.memo[key]

    def findings(self, use: Use, role: str, lang: str) -> Iterator[Finding]:
        """A rule that knows more than a name look-up goes first; else the look-up; else any rule."""
        rule = self.rules.find(use, role, lang)
        asked = list(self.asked(use))
        keywords = [one for one in asked if one.which >= 0]
        named = [one for one in asked if one.which < 0 and one.basis == ASKED]
        if rule is not None and (rule.over_verdict or not named):
            yield of_rule(rule, use)
            yield from keywords
        else:
            yield from asked

    def asked(self, use: Use) -> Iterator[Finding]:
        """What both frameworks say about the name."""
        if use.event in NATIVE or (use.event == "method" and "::" in use.api):
            answer = self.native(use)
            if answer.verdict == "missing":
                yield native_missing(use, answer)
            return
        if use.event not in NAMED or not use.api or (use.value in MEMBER_OWNERS and use.value not in ASKED_OWNERS):
            return
        answer = self.surface.ask(use.api)
        if answer.verdict == "missing":
            yield missing(answer)
        elif answer.verdict == "fake":
            yield other(answer, "a stand-in that does nothing")
        elif answer.verdict == "other_kind" and kind_matters(use.event, answer):
            yield other(answer, f"a {answer.paddle}")
        elif use.event in CALLS:
            yield from refused(use, answer)
            if answer.shadowed and (use.positional > 1 or use.keywords or use.then):
                yield shadowed(answer)

    def native(self, use: Use) -> Answer:
        """The verdict on a C++ name, macro, header or method."""
        if use.event in NATIVE:
            return self.surface.declared(NATIVE[use.event], use.api)
        owner, _, name = use.api.rpartition("::")
        return self.surface.native_method(NATIVE_CLASSES.get(owner, owner), name)

    def verdict(self, use: Use) -> str:
        """The verdict alone, for the inventory."""
        if use.event in NATIVE or "::" in use.api:
            return self.native(use).verdict if use.event in NATIVE or use.event == "method" else "unknown"
        return self.surface.ask(use.api).verdict if use.event in NAMED else "unknown"


MEMBER_OWNERS = ASKED_OWNERS | words(
    "torch.Generator torch.autograd.function.FunctionCtx torch.cuda.DeviceProperties torch.library.Library "
    "torch.finfo torch.iinfo"
)


def of_rule(rule: Rule, use: Use) -> Finding:
    """A finding in the words of a rule."""
    api = rule.under or use.api or use.value or rule.id
    key = Key(rule.symptom, api, rule.id)
    return Finding(key, rule.layer, rule.category, rule.decision, rule.id, RULE, rule.weight, -1, rule.title, rule.why)


def missing(answer: Answer) -> Finding:
    """A Python name that torch has and Paddle's proxy has not."""
    private = PRIVATE.search(answer.name) is not None
    return Finding(
        Key(Symptom.MISSING_API, answer.name),
        layer_of(answer.name, answer.kind),
        Category.B if private else Category.A,
        Decision.NOTE if private else None,
        "asked_name",
        ASKED,
        3.0,
        -1,
        f"torch has it: a {answer.kind}",
        "Paddle's torch proxy has no such name",
    )


def layer_of(name: str, kind: str) -> Layer:
    """Where a missing Python name belongs."""
    if name.startswith(("torch.library", "torch.ops")):
        return Layer.OP_REGISTRY
    if name.startswith(("torch.utils.cpp_extension", "torch.utils.cmake", "torch.utils.hipify")):
        return Layer.BUILD
    return Layer.PYTHON_PROXY if kind == "module" else Layer.PYTHON_INTERFACE


def kind_matters(event: str, answer: Answer) -> bool:
    """Whether this use can tell the two kinds apart."""
    pair = (answer.kind, answer.paddle)
    if pair in (("class", "function"), ("function", "class")):
        return answer.kind == "class" and event in ("isinstance", "base")
    if answer.kind in ("class", "function"):
        return event in TYPE_USES or event == "method"
    return answer.kind == "value" and event in ("read", "attribute")


def other(answer: Answer, what: str) -> Finding:
    """A name that is there and is something else."""
    return Finding(
        Key(Symptom.EXCEPTION, answer.name, "other_kind"),
        Layer.PYTHON_PROXY,
        Category.A,
        None,
        "asked_kind",
        ASKED,
        3.0,
        -1,
        f"a {answer.kind}",
        f"Paddle's torch proxy has {what} under this name",
    )


def shadowed(answer: Answer) -> Finding:
    """A name under which the proxy has Paddle's own function, called in a way that the two read differently."""
    return Finding(
        Key(Symptom.VALUE, answer.name, "shadowed"),
        Layer.PYTHON_PROXY,
        Category.A,
        None,
        "asked_override",
        RULE,
        2.0,
        -1,
        "torch's function",
        "the proxy has Paddle's own function here, though paddle.compat has torch's",
    )


def refused(use: Use, answer: Answer) -> Iterator[Finding]:
    """Keywords that torch takes and Paddle refuses."""
    for index, keyword in enumerate(use.keywords):
        if keyword in answer.refused:
            key = Key(Symptom.MISSING_ARGUMENT, answer.name, keyword)
            layer = Layer.PYTHON_INTERFACE
            actual = f"Paddle refuses {keyword}="
            yield Finding(key, layer, Category.A, None, "asked_keyword", ASKED, 2.6, index, f"takes {keyword}=", actual)


def native_missing(use: Use, answer: Answer) -> Finding:
    """A C++ name, macro, method or header that torch's headers declare and Paddle's do not."""
    header = use.event == "include"
    registry = "Library" in use.api or "LIBRARY" in use.api
    return Finding(
        Key(Symptom.MISSING_HEADER if header else Symptom.MISSING_API, answer.name),
        Layer.OP_REGISTRY if registry else Layer.CPP_API,
        Category.A,
        None,
        "asked_native",
        ASKED,
        3.0,
        -1,
        "torch ships it" if header else "torch's headers declare it",
        "Paddle ships no such header" if header else "none of Paddle's compat headers declares it",
    )
