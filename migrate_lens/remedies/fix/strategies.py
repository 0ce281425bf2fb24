"""A call that fails under Paddle in; other ways to say the same thing in torch's own spelling, to be tried, out.

Nothing here is known to work: every candidate is run on both sides with the recorded inputs, and only one that gives
torch's result on both is offered. In which order they are tried is said in ``candidates``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from migrate_lens.model.report import Symptom
from migrate_lens.model.value import DEVICE, DTYPE, LIST, SIZE, TENSOR, TUPLE, Encoded, tag
from migrate_lens.programs.literals import scalar
from migrate_lens.programs.values import LISTS, items_of, tensor_of
from migrate_lens.remedies.fix.slots import Form, Site

_OPERATORS = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/",
    "floor_divide": "//", "remainder": "%", "pow": "**", "matmul": "@", "mm": "@", "bmm": "@", "eq": "==", "ne": "!=",
    "not_equal": "!=", "lt": "<", "less": "<", "le": "<=", "less_equal": "<=", "gt": ">", "greater": ">", "ge": ">=",
    "greater_equal": ">=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "logical_and": "&",
    "logical_or": "|", "__and__": "&", "__or__": "|", "__xor__": "^",
}  # fmt: skip
_METHODS = {sign: name for name, sign in reversed(_OPERATORS.items())}
_SECOND_KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "input": "x"}
_NO_EFFECT = {"inplace", "out", "name"}
_MOST_NUMBERS = 2


class Kind(StrEnum):
    """What a workaround does, as reports say it."""

    ARGUMENT = "argument"
    IMPORT = "import"
    OPERATOR = "operator"
    EQUAL_API = "equal_api"
    CAST = "cast"
    FEATURE_GATE = "feature_gate"
    SHIM = "shim"
    SHIM_MODULE = "shim_module"
    CPP_BRIDGE = "cpp_bridge"
    SCOPE_LINE = "scope_line"
    BUILD_SWITCH = "build_switch"


@dataclass(frozen=True, slots=True)
class Missing:
    """For a name that is not there: the longest part of it that is there, and the name behind that."""

    owner: str
    name: str


@dataclass(frozen=True, slots=True)
class Troubled:
    """A call that fails: how it stands, with what it was called, and what torch gave.

    Attributes:
        api: the torch name as documented.
        symptom: how it shows.
        site: its parts.
        values: for each slot, what was recorded.
        want: torch's result.
        missing: what is not there; None where the name is.
        defaults: of torch's own parameters, as they are written.
    """

    api: str
    symptom: Symptom
    site: Site
    values: tuple[Encoded, ...]
    want: Encoded
    missing: Missing | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A replacement: its kind, its text with slots, why it is one, and an import that must stand above it."""

    kind: Kind
    template: str
    why: str
    prelude: str = ""


Strategy = Callable[[Troubled], Iterator[Candidate]]


# -- a call's parts as text --------------------------------------------------------------------------------------------


def again(
    site: Site, *, keywords: Sequence[str] | None = None, slots: Sequence[str] | None = None, name: str = ""
) -> str:
    """The call as it stands, with some of its parts changed."""
    texts = _slots(site) if slots is None else slots
    names = site.keywords if keywords is None else keywords
    given = [_given(keyword, text) for keyword, text in zip(names, texts, strict=True)]
    name = name or site.name
    match site.form:
        case Form.METHOD:
            return f"{given[0]}.{name}({', '.join(given[1:])})"
        case Form.OPERATOR:
            return f"{given[0]} {name} {given[1]}"
        case Form.ATTRIBUTE:
            return f"{given[0]}.{name}"
        case Form.ITEM:
            return f"{given[0]}[{given[1]}]"
        case Form.FUNCTION | Form.INPLACE:
            return f"{name}({', '.join(given)})"


def _slots(site: Site) -> list[str]:
    """A slot for each part of a call, without its keyword."""
    return [f"{{{number}}}" for number in range(len(site.nodes))]


def _given(keyword: str, text: str) -> str:
    return f"{keyword}={text}" if keyword else text


def _arguments(site: Site) -> list[str]:
    """A slot for each part of a call, with its keyword."""
    return [_given(keyword, f"{{{number}}}") for number, keyword in enumerate(site.keywords)]


def _without(site: Site, number: int) -> str:
    """The call without one of its arguments."""
    given = _arguments(site)
    del given[number]
    if site.form is Form.METHOD:
        return f"{given[0]}.{site.name}({', '.join(given[1:])})"
    return f"{site.name}({', '.join(given)})"


def _with_more(site: Site, more: Sequence[str]) -> str:
    """The call with more arguments."""
    text = again(site)
    return f"{text[:-1]}{', ' if not text.endswith('()') else ''}{', '.join(more)})"


def _is_called(site: Site) -> bool:
    return site.form in (Form.FUNCTION, Form.METHOD)


# -- arguments ---------------------------------------------------------------------------------------------------------


def without_in_place(call: Troubled) -> Iterator[Candidate]:
    """A layer or a function of the neural network library without its request to save memory."""
    site = call.site
    if site.form is Form.FUNCTION and "inplace" in site.keywords and call.api.startswith("torch.nn."):
        number = site.keywords.index("inplace")
        yield Candidate(Kind.ARGUMENT, _without(site, number), "in place saves memory, the result is the same")


def positional(call: Troubled) -> Iterator[Candidate]:
    """Keywords that are known under another name are given by position."""
    site = call.site
    if not _is_called(site) or not any(site.keywords) or "inplace" in site.keywords:
        return  # a flag by position may land on another parameter, and nothing would show it
    first = next(number for number, keyword in enumerate(site.keywords) if keyword)
    why = "the keyword has another name there, its position is the same"
    for stop in range(first + 1, len(site.keywords) + 1):
        keywords = ("",) * stop + site.keywords[stop:]
        yield Candidate(Kind.ARGUMENT, again(site, keywords=keywords), why)


def with_defaults(call: Troubled) -> Iterator[Candidate]:
    """Torch's own defaults said aloud, where the other side has others: each alone, then all of them."""
    site = call.site
    given = set(site.keywords)
    left = [(name, text) for name, text in call.defaults.items() if name not in given | _NO_EFFECT and text != "None"]
    if not _is_called(site) or not left:
        return
    why = "torch's default is given, the other side has another"
    for more in (*([one] for one in left), left if len(left) > 1 else []):
        if more:
            yield Candidate(Kind.ARGUMENT, _with_more(site, [f"{name}={text}" for name, text in more]), why)


def without_defaults(call: Troubled) -> Iterator[Candidate]:
    """An argument that says what torch does without it."""
    site = call.site
    for number, (keyword, node) in enumerate(zip(site.keywords, site.nodes, strict=True)):
        if _is_called(site) and keyword and call.defaults.get(keyword) == ast.unparse(node):
            yield Candidate(Kind.ARGUMENT, _without(site, number), "it is torch's default")


def renamed(call: Troubled) -> Iterator[Candidate]:
    """Keywords for which torch itself takes a second name."""
    site = call.site
    if _is_called(site) and _SECOND_KEYWORDS.keys() & set(site.keywords):
        keywords = tuple(_SECOND_KEYWORDS.get(keyword, keyword) for keyword in site.keywords)
        yield Candidate(Kind.ARGUMENT, again(site, keywords=keywords), "torch takes this keyword too")


def into_buffer(call: Troubled) -> Iterator[Candidate]:
    """A result that is written to a buffer is copied there."""
    site = call.site
    if _is_called(site) and "out" in site.keywords:
        number = site.keywords.index("out")
        text = f"{{{number}}}.copy_({_without(site, number)})"
        yield Candidate(Kind.ARGUMENT, text, "copy_ writes the result to the buffer")


def unpacked(call: Troubled) -> Iterator[Candidate]:
    """Operands that torch takes as a list, given one by one, and the other way round."""
    site = call.site
    if not _is_called(site) or call.symptom not in (Symptom.EXCEPTION, Symptom.MISSING_ARGUMENT):
        return
    for number, value in enumerate(call.values):
        if tag(value) in (LIST, TUPLE, SIZE) and number:
            slots = _slots(site)
            slots[number] = f"*{{{number}}}"
            keywords = tuple("" if at == number else keyword for at, keyword in enumerate(site.keywords))
            text = again(site, slots=slots, keywords=keywords)
            yield Candidate(Kind.ARGUMENT, text, "it takes them one by one")


# -- other names and forms ---------------------------------------------------------------------------------------------


def through_import(call: Troubled) -> Iterator[Candidate]:
    """A function of a module that the file never imports by itself: the proxy has another one before that import."""
    owner, _, name = call.api.rpartition(".")
    site = call.site
    if site.form is not Form.FUNCTION or owner.count(".") < 1 or not site.name.endswith(f".{name}"):
        return
    local = owner.replace(".", "_")
    text = f"{local}.{name}({', '.join(_arguments(site))})"
    why = "the module is imported by its own name, so that the proxy hands out its compat functions"
    yield Candidate(Kind.IMPORT, text, why, f"import {owner} as {local}")


def as_operator(call: Troubled) -> Iterator[Candidate]:
    """A function or method as the operator that it stands for, and back."""
    match call.site.form:
        case Form.FUNCTION | Form.METHOD:
            yield from _operator_of_a_call(call)
        case Form.OPERATOR:
            yield from _function_of_an_operator(call.site)
        case Form.INPLACE:
            yield from _method_of_an_operator(call.site)
        case Form.ATTRIBUTE | Form.ITEM:
            return


def _operator_of_a_call(call: Troubled) -> Iterator[Candidate]:
    site, name = call.site, call.api.rpartition(".")[2]
    if len(site.nodes) != 2:
        return
    why = "the operator takes what the function refuses"
    if name in _OPERATORS:
        yield Candidate(Kind.OPERATOR, f"({{0}} {_OPERATORS[name]} {{1}})", why)
    plain = name.rstrip("_")
    if site.form is Form.METHOD and plain in _OPERATORS and name.endswith("_"):
        text = f"{{0}}.copy_({{0}} {_OPERATORS[plain]} {{1}})"
        yield Candidate(Kind.OPERATOR, text, why + "; copy_ keeps it in place")


def _function_of_an_operator(site: Site) -> Iterator[Candidate]:
    if site.name in _METHODS:
        text = f"torch.{_METHODS[site.name]}({{0}}, {{1}})"
        yield Candidate(Kind.OPERATOR, text, "the function behaves as torch's operator")


def _method_of_an_operator(site: Site) -> Iterator[Candidate]:
    sign = site.name[:-1]
    if sign in _METHODS:
        why = "the method writes in place, the operator makes a new tensor"
        yield Candidate(Kind.OPERATOR, f"{{0}}.{_METHODS[sign]}_({{1}})", why)
        yield Candidate(Kind.OPERATOR, f"{{0}}.copy_({{0}} {sign} {{1}})", "copy_ writes in place")


def the_other_form(call: Troubled) -> Iterator[Candidate]:
    """A method as the function of the same name, and a function as the method."""
    site, name = call.site, call.api.rpartition(".")[2]
    given = _arguments(site)
    if site.form is Form.METHOD:
        for space in ("torch", "torch.linalg", "torch.nn.functional", "torch.special"):
            text = f"{space}.{name}({', '.join(given)})"
            yield Candidate(Kind.EQUAL_API, text, "the function of this name is there")
    if site.form is Form.FUNCTION and _takes_a_tensor_first(call):
        text = f"{{0}}.{name}({', '.join(given[1:])})"
        yield Candidate(Kind.EQUAL_API, text, "the method of this name is there")
        for space in ("torch", "torch.nn.functional", "torch.linalg", "torch.special"):
            if f"{space}.{name}" != call.api:
                text = f"{space}.{name}({', '.join(given)})"
                yield Candidate(Kind.EQUAL_API, text, "an equal function is there")


def _takes_a_tensor_first(call: Troubled) -> bool:
    if not call.site.nodes or not call.values or call.site.keywords[0]:
        return False
    return tag(call.values[0]) == TENSOR


def in_place_by_copy(call: Troubled) -> Iterator[Candidate]:
    """A method that writes in place as its plain form, copied to the receiver."""
    site = call.site
    if site.form is not Form.METHOD or not site.name.endswith("_") or site.name.endswith("__"):
        return
    given = _arguments(site)
    plain = f"{given[0]}.{site.name[:-1]}({', '.join(given[1:])})"
    why = "copy_ writes in place and keeps the dtype"
    yield Candidate(Kind.OPERATOR, f"{{0}}.copy_({plain})", why)
    yield Candidate(Kind.OPERATOR, f"{{0}}.copy_({plain}.to({{0}}.dtype))", why)


# -- types -------------------------------------------------------------------------------------------------------------


def result_cast(call: Troubled) -> Iterator[Candidate]:
    """The result in torch's type where only the type differs."""
    casting = (Symptom.DTYPE, Symptom.VALUE, Symptom.EXCEPTION, Symptom.SHAPE)
    if call.site.form is Form.INPLACE or call.symptom not in casting:
        return
    plain, want = again(call.site), call.want
    if call.site.form is Form.OPERATOR:
        plain = f"({plain})"
    if tag(want) == TENSOR:
        yield from _tensor_cast(call, plain)
    elif type(want) in (bool, int, float, str):
        name = type(want).__name__
        yield Candidate(Kind.CAST, f"{name}({plain})", f"torch gives a Python {name}")
    elif tag(want) in (SIZE, TUPLE):
        yield Candidate(Kind.CAST, f"tuple({plain})", "torch gives a tuple")
    elif tag(want) == LIST:
        yield Candidate(Kind.CAST, f"list({plain})", "torch gives a list")


def _tensor_cast(call: Troubled, plain: str) -> Iterator[Candidate]:
    tensor = tensor_of(call.want)
    for dtype in _dtypes(call, tensor.dtype):
        yield Candidate(Kind.CAST, f"{plain}.to({dtype})", "only the dtype of the result differs")
    if tensor.shape and call.symptom is Symptom.SHAPE:
        like = (n for n, value in enumerate(call.values) if tag(value) == TENSOR and _shape(value) == tensor.shape)
        for number in like:
            text = f"{plain}.reshape({{{number}}}.shape)"
            yield Candidate(Kind.CAST, text, "only the shape of the result differs")
        text = f"{plain}.reshape({', '.join(map(str, tensor.shape))})"
        yield Candidate(Kind.CAST, text, "only the shape of the result differs")


def _shape(value: Encoded) -> tuple[int, ...]:
    return tensor_of(value).shape


def _dtypes(call: Troubled, dtype: str, beside: Sequence[int] = ()) -> list[str]:
    """How a dtype is said: as that of an operand that has it, then by its name, which no other input would follow."""
    known = enumerate(call.values)
    same = [n for n, v in known if n not in beside and tag(v) == TENSOR and tensor_of(v).dtype == dtype]
    return [*(f"{{{number}}}.dtype" for number in same[:1]), f"torch.{dtype}"]


def operand_cast(call: Troubled) -> Iterator[Candidate]:
    """Operands in the dtype to which torch promotes them."""
    if call.symptom not in (Symptom.EXCEPTION, Symptom.DTYPE, Symptom.VALUE):
        return
    dtypes = {number: tensor_of(value).dtype for number, value in enumerate(call.values) if tag(value) == TENSOR}
    wanted = [tensor_of(call.want).dtype] if tag(call.want) == TENSOR else []
    wanted += sorted({*dtypes.values(), "float32", "int64"} - set(wanted))
    for dtype in wanted:
        for operands in (*([number] for number in dtypes), list(dtypes)):
            if operands and all(dtypes[number] != dtype for number in operands):
                yield from (_operands_cast(call.site, operands, said) for said in _dtypes(call, dtype, operands))
    yield from _lists_cast(call)


_PROMOTES = "torch promotes the operands itself"


def _operands_cast(site: Site, operands: Sequence[int], dtype: str) -> Candidate:
    """The call with some operands in a dtype, which is an expression."""
    slots = _slots(site)
    for number in operands:
        slots[number] = f"{{{number}}}.to({dtype})"
    if site.form is Form.INPLACE:
        return Candidate(Kind.CAST, f"{slots[0]} {site.name} {slots[1]}", _PROMOTES)
    return Candidate(Kind.CAST, again(site, slots=slots), _PROMOTES)


def _lists_cast(call: Troubled) -> Iterator[Candidate]:
    """Lists of tensors of several dtypes."""
    if tag(call.want) != TENSOR:
        return
    for number, value in enumerate(call.values):
        items = items_of(value) if tag(value) in LISTS else []
        if items and tag(items[0]) == TENSOR:
            slots = _slots(call.site)
            slots[number] = f"[t.to(torch.{tensor_of(call.want).dtype}) for t in {{{number}}}]"
            yield Candidate(Kind.CAST, again(call.site, slots=slots), _PROMOTES)


def scalar_operand(call: Troubled) -> Iterator[Candidate]:
    """A Python number as a tensor like its neighbour."""
    tensors = [number for number, value in enumerate(call.values) if tag(value) == TENSOR]
    numbers = [number for number, value in enumerate(call.values) if type(value) in (int, float, bool)]
    if not tensors or call.symptom is not Symptom.EXCEPTION or call.site.form is Form.INPLACE:
        return
    for number in numbers[:_MOST_NUMBERS]:
        slots = _slots(call.site)
        for form in (f"torch.full_like({{{tensors[0]}}}, {{{number}}})", f"torch.tensor({{{number}}})"):
            slots[number] = form
            yield Candidate(Kind.CAST, again(call.site, slots=slots), "it takes tensors only")


# -- what is not there -------------------------------------------------------------------------------------------------


def gated(call: Troubled) -> Iterator[Candidate]:
    """A capability query or a setting that is not there: the answer that a runtime without it gives."""
    form, missing = call.site.form, call.missing
    if missing is None or form not in (Form.FUNCTION, Form.ATTRIBUTE):
        return
    known = form is Form.ATTRIBUTE or all(tag(value) in ("", DEVICE, DTYPE) for value in call.values)
    if not known or not _constant(call):
        return
    there = f'hasattr({missing.owner}, "{missing.name}")'
    text = f"({again(call.site)} if {there} else {scalar(call.want)})"
    why = "a query or a setting of the runtime; the gate opens by itself when the name is there"
    yield Candidate(Kind.FEATURE_GATE, text, why)


def _constant(call: Troubled) -> bool:
    """Whether the answer depends on nothing but the runtime: none, yes or no for literals, or a constant of a literal.

    A number or a text that a call returns may change while the program runs, so it is no constant.
    """
    if call.want is None:
        return True
    if call.site.form is Form.FUNCTION and not isinstance(call.want, bool):
        return False
    return not tag(call.want) and all(_fixed(node) for node in call.site.nodes)


def _fixed(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id == "torch")
