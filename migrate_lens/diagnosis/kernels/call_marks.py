"""A C++ file goes in; the calls in its functions that may be torch's come out, and a copy in which they are marked.

A marked call does what it did and says what it was given and what it gave (see ``kernel_trace.h``). Lines keep their
numbers. Which receiver is torch's only the compiler knows: the marks ask it, and say nothing for other types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from migrate_lens.cpp.naming import FRAMEWORK
from migrate_lens.cpp.tokens import Tokens

_MODULE = re.compile(r"(?:STABLE_)?TORCH_LIBRARY\w*|PYBIND11_MODULE|PYBIND11_PLUGIN|BOOST_PYTHON_MODULE")
_NUMBERS = re.compile(r"bool|char|short|int|long|unsigned|signed|float|double|s?size_t|u?int(?:8|16|32|64)_t")
_NOT_CALLED = re.compile(
    r"if|for|while|switch|return|sizeof|catch|throw|new|delete|decltype|alignof|static_assert|noexcept|operator|case|do"
    r"|else|typeid|co_\w+|requires|constexpr|using|typedef|template|alignas|asm|goto"
)
_UNEVALUATED = re.compile(r"decltype|sizeof|static_assert|alignof|noexcept|alignas|requires|asm")
_ONLY_COMPILED = re.compile(r"constexpr|using|typedef|static_assert|case|goto")
_BEFORE_VALUE = frozenset(("return", "else", "case", "throw", "co_return", "and", "or", "not", "do"))
_DECLARES = frozenset(("namespace", "class", "struct", "union", "enum"))
_NO_VALUES = ("this", "true", "false", "nullptr", "NULL")
_LARGEST = 2_000_000  # characters of a file that is read
_SPACE = "::migrate_lens::"


class MarkKind(StrEnum):
    """What is marked; the first three are facts that rules may ask about."""

    FUNCTION = "function"
    METHOD = "method"
    CAST = "cast"
    RETURN = "return"
    ENTRY = "entry"

    @property
    def is_call(self) -> bool:
        """Whether it is a call, and not an edge of a function."""
        return self not in (MarkKind.RETURN, MarkKind.ENTRY)


class _Body(StrEnum):
    """What stands between two braces."""

    CODE = "code"
    DECLARATIONS = "declarations"
    MODULE = "module"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class Mark:
    """One marked place.

    Attributes:
        kind: what is marked.
        name: the function as written, the method alone, or the type that is cast to.
        path: the file, relative to the library.
        line: of the name.
        generic: whether it has template arguments.
        closed: whether all that it is given is told as well: literals, plain names, and marked calls.
        begin, end: first and last character of the expression.
        receiver: what a method is called on, or what is cast, as written.
        told: plain names whose values are told before it.
    """

    kind: MarkKind
    name: str
    path: str
    line: int
    generic: bool
    closed: bool
    begin: int
    end: int
    receiver: str = ""
    told: tuple[str, ...] = ()


def marks(text: str, path: str, known: Callable[[str], str]) -> tuple[Mark, ...]:
    """The places of one file that are worth marking.

    Args:
        text: the file.
        path: its name in the marks.
        known: the full name of a plain one that torch declares, empty if it is none.
    """
    if len(text) > _LARGEST:
        return ()
    return tuple(_Finder(Tokens(text), path, known).find())


def marked(text: str, numbered: Iterable[tuple[int, Mark]]) -> str:
    """The text with marks in it."""
    edits: list[tuple[int, int, int, int, str]] = []
    for number, mark in numbered:
        before, after = _around(number, mark)
        width = mark.end - mark.begin
        edits.append((mark.begin, 1, -width, number, before))
        edits.append((mark.end, 0, width, -number, after))
    parts, at = [], 0
    for place, _, _, _, piece in sorted(edits):
        parts += [text[at:place], piece]
        at = place
    return "".join([*parts, text[at:]])


def _around(number: int, mark: Mark) -> tuple[str, str]:
    """What is written before and behind a marked place."""
    told = "".join(f", {name}" for name in mark.told)
    match mark.kind:
        case MarkKind.ENTRY:
            return "", f" {_SPACE}entered({number}{told});"
        case MarkKind.RETURN:
            if mark.told:
                return f"{{ {_SPACE}gave({number}{told}); ", " }"
            return "(", f", {_SPACE}leave<void>({number}))"
        case MarkKind.FUNCTION | MarkKind.METHOD | MarkKind.CAST:
            kind = f"decltype({mark.receiver})" if mark.receiver else "void"
            return f"({_SPACE}enter<{kind}>({number}{told}), ", f", {_SPACE}leave<{kind}>({number}))"
        case _:
            assert_never(mark.kind)


@dataclass(slots=True)
class _Link:
    """The last name of a chain so far, and where what stands before it ends."""

    name: str
    index: int
    dot: int
    generic: bool = False


class _Finder:
    def __init__(self, tokens: Tokens, path: str, known: Callable[[str], str]) -> None:
        self._t = tokens
        self._path = path
        self._known = known
        self._bodies: list[_Body] = []

    def find(self) -> Iterator[Mark]:
        """All marks, in the order of the text."""
        at = 0
        while at < len(self._t):
            text = self._t.at(at)
            if text == "{":
                yield from self._open(at)
            elif text == "}" and self._bodies:
                self._bodies.pop()
            elif self._bodies and self._bodies[-1] is _Body.CODE:
                behind = self._skipped(at)
                if behind > at:
                    at = behind
                    continue
                yield from self._value(at)
            at += 1

    # -- where code is -------------------------------------------------------------------------------------------

    def _open(self, at: int) -> Iterator[Mark]:
        """A brace: a body of code, of declarations or of a module; code says what it was entered with."""
        outer = self._bodies[-1] if self._bodies else _Body.DECLARATIONS
        head = self._head(at)
        body = _Body.CODE if outer in (_Body.CODE, _Body.MODULE) else self._body(head, at)
        self._bodies.append(body)
        if body is not _Body.CODE or outer is _Body.CODE:
            return
        group = self._lambda(at) if outer is _Body.MODULE else self._parameters(head, at)
        if group is None:
            return
        parameters = [self._parameter(*part) for part in self._t.split(group)]
        end = self._t.items[at].end
        yield Mark(
            MarkKind.ENTRY,
            self._t.at(group - 1),
            self._path,
            self._line(at),
            generic=False,
            closed=True,
            begin=end,
            end=end,
            told=tuple(name for name in parameters if name),
        )

    def _head(self, at: int) -> int:
        """The token that begins what stands before a brace."""
        begin = at
        while begin > 0 and self._t.at(begin - 1) not in (";", "{", "}"):
            before = begin - 1
            begin = self._t.partner.get(before, before) if self._t.at(before) in (")", "]") else before
        if self._t.at(begin) == "template" and self._t.at(begin + 1) == "<":
            return self._behind_template(begin, at)
        return begin

    def _behind_template(self, begin: int, at: int) -> int:
        """The token behind ``template <...>``."""
        depth = 0
        for index in range(begin + 1, at):
            depth += {"<": 1, ">": -1}.get(self._t.at(index), 0)
            if depth == 0:
                return index + 1
        return begin

    def _body(self, head: int, at: int) -> _Body:
        """What stands behind a brace, by what stands before it."""
        if _MODULE.fullmatch(self._t.at(head)):
            return _Body.MODULE
        words = {self._t.at(index) for index in range(head, min(at, head + 4))}
        is_function = self._parameters(head, at) is not None
        if "constexpr" in words or words & _DECLARES or ("extern" in words and not is_function):
            return _Body.DECLARATIONS
        return _Body.CODE if is_function else _Body.DATA

    def _parameters(self, head: int, at: int) -> int | None:
        """The bracket of a function's parameters."""
        index = head
        while index < at:
            text, of_operator = self._t.at(index), self._t.at(index - 1) == "operator"
            if text == "(" and of_operator:
                index = self._t.partner.get(index, index) + 1
                continue
            if text == "(":
                named = self._t.word(index - 1) or self._t.at(index - 2) == "operator"
                return index if named else None
            if text == "=" and not of_operator:
                return None
            index += 1
        return None

    def _lambda(self, at: int) -> int | None:
        """The bracket of a lambda's parameters, from its body."""
        index = at - 1
        while index > at - 20 and self._t.at(index) != ")":
            index -= 1
        group = self._t.partner.get(index, -1)
        return group if group > 0 and self._t.at(group - 1) == "]" else None

    def _parameter(self, begin: int, end: int) -> str:
        """The name of one parameter, empty if it has none."""
        for index in range(begin, end):
            if self._t.at(index) == "=":
                end = index
                break
        last = end - 1
        name = self._t.at(last)
        if end - begin < 2 or not self._t.word(last) or self._t.at(last - 1) == "::":
            return ""
        return "" if name == "const" or _NUMBERS.fullmatch(name) else name

    def _skipped(self, at: int) -> int:
        """Behind what is not evaluated, or only when compiling."""
        text = self._t.at(at)
        if _UNEVALUATED.fullmatch(text) and self._t.at(at + 1) == "(":
            return self._t.partner.get(at + 1, at) + 1
        if text == "constexpr" and self._t.at(at - 1) == "if":
            return self._t.partner.get(at + 1, at) + 1
        if _ONLY_COMPILED.fullmatch(text):
            return self._end_of(at, ":" if text == "case" else ";", ("{",))
        return at

    def _end_of(self, at: int, stop: str, brackets: tuple[str, ...]) -> int:
        """Where a token stands that ends what begins here, outside of some brackets; or the body ends."""
        while at < len(self._t) and self._t.at(at) not in (stop, "}"):
            at = self._t.partner.get(at, at) + 1 if self._t.at(at) in brackets else at + 1
        return at

    # -- values --------------------------------------------------------------------------------------------------

    def _value(self, at: int) -> Iterator[Mark]:
        if self._t.at(at) == "return" and self._t.at(at + 1) not in (";", "{"):
            yield from self._return(at)
        elif self._t.at(at) == "static_cast" and self._t.at(at + 1) == "<":
            yield from self._cast(at)
        elif self._starts(at):
            yield from self._chain(at)

    def _return(self, at: int) -> Iterator[Mark]:
        end = self._end_of(at + 1, ";", ("(", "[", "{"))
        name = self._t.at(at + 1) if end == at + 2 and self._t.word(at + 1) else ""
        if self._t.at(end) != ";" or name in ("this", "nullptr"):
            return
        if name:
            yield replace(self._mark(MarkKind.RETURN, "return", at, end + 1, at), told=(name,))
        elif end > at + 1:
            yield self._mark(MarkKind.RETURN, "return", at + 1, end, at)

    def _cast(self, at: int) -> Iterator[Mark]:
        group = self._t.after_arguments(at + 1)
        end = self._t.partner.get(group)
        if self._t.at(group) == "(" and end is not None and group + 1 < end:
            name = re.sub(r"\s*::\s*", "::", self._t.source(at + 2, group - 1))
            yield self._cast_to(name, at, end + 1, (group + 1, end))

    def _cast_to(self, name: str, begin: int, end: int, inner: tuple[int, int]) -> Mark:
        receiver = "" if self._has_lambda(*inner) else self._t.source(*inner)
        mark = self._mark(MarkKind.CAST, name, begin, end, begin)
        return replace(mark, closed=self._closed(*inner), receiver=receiver or "int")

    def _starts(self, at: int) -> bool:
        """Whether an expression that may be a call begins here."""
        before, text = self._t.at(at - 1), self._t.at(at)
        if before in (".", "->", "::", "new", "template", "~", "struct", "class", "typename"):
            return False
        if text == "(":
            end = self._t.partner.get(at, at)
            handed_on = self._t.word(at - 1) or before in (")", "]", ">")
            return self._t.at(end + 1) in (".", "->") and not handed_on
        if text == "::":
            qualified = self._t.word(at - 1) and before not in _BEFORE_VALUE
            return self._t.word(at + 1) and not qualified
        return self._t.word(at) and not _NOT_CALLED.fullmatch(text)

    def _chain(self, at: int) -> Iterator[Mark]:
        """The calls of ``a::b(x).c(y)->d<T>()``, each with all that stands before it."""
        begin, index = at, at
        link: _Link | None = None
        if self._t.at(at) == "(":
            index = self._t.partner[at] + 1
        else:
            index, generic = self._path_end(at)
            link = _Link(re.sub(r"\s|<.*", "", self._t.source(at, index)).removeprefix("::"), at, -1, generic)
        while index < len(self._t):
            text = self._t.at(index)
            end = self._t.partner.get(index, index) + 1
            if text == "(" and link is not None and end > index + 1:
                yield from self._call(begin, index, end, link)
                link, index = None, end
            elif text in (".", "->"):
                name = index + 1 + (self._t.at(index + 1) == "template")
                if not self._t.word(name):
                    return
                after = self._t.after_arguments(name + 1)
                link, index = _Link(self._t.at(name), name, index, after > name + 1), after
            elif text == "[" and end > index + 1:
                link, index = None, end
            else:
                return

    def _path_end(self, at: int) -> tuple[int, bool]:
        index, generic = at, False
        if self._t.at(index) == "::":
            index += 1
        while self._t.word(index):
            after = self._t.after_arguments(index + 1)
            generic = after > index + 1
            if self._t.at(after) == "::" and self._t.word(after + 1):
                index = after + 1
                continue
            return after, generic
        return index, generic

    def _call(self, begin: int, group: int, end: int, link: _Link) -> Iterator[Mark]:
        if link.dot < 0 and self._is_number(link.name) and end > group + 2:
            yield self._cast_to(link.name, begin, end, (group + 1, end - 1))
            return
        kind, name = MarkKind.METHOD, link.name
        if link.dot < 0:
            kind, name = MarkKind.FUNCTION, self._function(link.name, begin)
        if not name:
            return
        mark = replace(
            self._mark(kind, name, begin, end, link.index),
            closed=self._closed(group + 1, end - 1),
            told=self._plain_names(group),
            generic=link.generic,
        )
        if kind is MarkKind.FUNCTION:
            yield mark
        elif not self._has_lambda(begin, link.dot):
            yield self._with_receiver(mark, begin, link.dot)

    def _is_number(self, name: str) -> bool:
        """Whether a name is one of a type of numbers, which is cast to."""
        return _NUMBERS.fullmatch(name.rpartition("::")[2]) is not None

    def _function(self, name: str, begin: int) -> str:
        """The full name of a function that may be torch's; empty for any other."""
        if "::" in name:
            return name if name.partition("::")[0] in FRAMEWORK else ""
        return self._known(name) if self._calls(begin) else ""

    def _with_receiver(self, mark: Mark, begin: int, dot: int) -> Mark:
        """The mark of a method, with what it is called on; a plain name is told."""
        receiver = self._t.source(begin, dot)
        if self._t.at(dot) == "->":
            closed = mark.closed and self._closed(begin, dot)
            return replace(mark, closed=closed, receiver=f"*({receiver})")
        if receiver != "this" and re.fullmatch(r"[A-Za-z_]\w*", receiver):
            return replace(mark, receiver=receiver, told=(receiver, *mark.told))
        return replace(mark, closed=mark.closed and self._closed(begin, dot), receiver=receiver)

    def _calls(self, begin: int) -> bool:
        """Whether a plain name with a bracket behind it is a call, not a declaration."""
        before = self._t.at(begin - 1)
        return before in _BEFORE_VALUE or not (self._t.word(begin - 1) or before in (">", "*", "&"))

    def _plain_names(self, group: int) -> tuple[str, ...]:
        """Arguments that are a name and nothing else."""
        words = [self._t.at(first) for first, end in self._t.split(group) if end - first == 1 and self._t.word(first)]
        return tuple(word for word in words if word not in _NO_VALUES and not word.isupper())

    def _closed(self, begin: int, end: int) -> bool:
        """Whether an expression is made of literals, plain names as whole arguments, and calls that are marked."""
        return not self._has_lambda(begin, end) and all(
            self._literal(index) or self._told_name(index, begin, end) for index in range(begin, end)
        )

    def _literal(self, index: int) -> bool:
        text = self._t.at(index)
        if text[0].isdigit() or text[0] == '"':
            return True
        return text in "(){},.-<>" or text in ("::", "->", "true", "false")

    def _told_name(self, index: int, begin: int, end: int) -> bool:
        """A name that is told, called, or part of a qualified one."""
        if not self._t.word(index):
            return False
        before, after = self._t.at(index - 1), self._t.at(index + 1)
        if before in (".", "->", "::") or after in (".", "->", "::", "(", "<"):
            return True
        if _NUMBERS.fullmatch(self._t.at(index)):
            return True
        opens = index == begin or before in ("(", "{", ",")
        closes = index == end - 1 or after in (")", "}", ",")
        return opens and closes

    def _has_lambda(self, begin: int, end: int) -> bool:
        brackets = (index for index in range(begin, end) if self._t.at(index) == "[")
        return any(not self._is_index(bracket) for bracket in brackets)

    def _is_index(self, bracket: int) -> bool:
        """Whether a bracket picks an item, and does not begin a lambda."""
        return self._t.word(bracket - 1) or self._t.at(bracket - 1) in (")", "]")

    # -- marks ---------------------------------------------------------------------------------------------------

    def _mark(self, kind: MarkKind, name: str, begin: int, end: int, named: int) -> Mark:
        """A mark of the tokens from ``begin`` to before ``end``, whose name stands at a third one; nothing is told."""
        first, last = self._t.items[begin].start, self._t.items[end - 1].end
        return Mark(kind, name, self._path, self._line(named), generic=False, closed=False, begin=first, end=last)

    def _line(self, index: int) -> int:
        return self._t.text.count("\n", 0, self._t.items[index].start) + 1


def lines_of(text: str, mark: Mark) -> range:
    """The lines of the file that a mark spans."""
    first = text.count("\n", 0, mark.begin) + 1
    return range(first, first + text.count("\n", mark.begin, mark.end) + 1)
