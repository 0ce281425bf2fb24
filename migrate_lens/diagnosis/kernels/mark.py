"""A C++ file goes in; the calls in its functions that may be torch's come out, and a copy in which they are marked.

A marked call does what it did and says what it was given and what it gave (see ``kernel_trace.h``). Lines keep their
numbers. Which receiver is torch's only the compiler knows: the marks ask it, and say nothing for other types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Mark:
    """One marked place.

    Attributes:
        kind: ``function``, ``method``, ``cast``, ``return`` or ``entry``.
        name: the function as written, the method alone, or the type that is cast to.
        path: the file, relative to the library.
        line: of the name.
        generic: whether it has template arguments.
        closed: whether all that it is given is told as well: literals, plain names, and marked calls.
        begin: first and last character of the expression.
    """

    kind: str
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
    if len(text) > 2_000_000:
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
    space = "::migrate_lens::"
    told = "".join(f", {name}" for name in mark.told)
    if mark.kind == "entry":
        return "", f" {space}entered({number}{told});"
    if mark.kind == "return" and mark.told:
        return f"{{ {space}gave({number}{told}); ", " }"
    if mark.kind == "return":
        return "(", f", {space}leave<void>({number}))"
    kind = f"decltype({mark.receiver})" if mark.receiver else "void"
    return f"({space}enter<{kind}>({number}{told}), ", f", {space}leave<{kind}>({number}))"


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
        self._bodies: list[str] = []

    def find(self) -> Iterator[Mark]:
        """All marks, in the order of the text."""
        at = 0
        while at < len(self._t):
            text = self._t.at(at)
            if text == "{":
                yield from self._open(at)
            elif text == "}" and self._bodies:
                self._bodies.pop()
            elif self._bodies and self._bodies[-1] == "code":
                if (skip := self._skipped(at)) > at:
                    at = skip
                    continue
                yield from self._value(at)
            at += 1

    # -- where code is -------------------------------------------------------------------------------------------

    def _open(self, at: int) -> Iterator[Mark]:
        """A brace: a body of code, of declarations or of a module; code says what it was entered with."""
        outer = self._bodies[-1] if self._bodies else "declarations"
        head = self._head(at)
        kind = "code" if outer in ("code", "module") else self._kind(head, at)
        self._bodies.append(kind)
        if kind != "code" or outer == "code":
            return
        group = self._lambda(at) if outer == "module" else self._parameters(head, at)
        if group is not None:
            names = tuple(filter(None, (self._parameter(*part) for part in self._t.split(group))))
            end = self._t.items[at].end
            name = self._t.at(group - 1)
            yield Mark("entry", name, self._path, self._line(at), False, True, end, end, told=names)

    def _head(self, at: int) -> int:
        """The token that begins what stands before a brace."""
        begin = at
        while begin > 0 and self._t.at(begin - 1) not in (";", "{", "}"):
            begin = self._t.partner.get(begin - 1, begin - 1) if self._t.at(begin - 1) in (")", "]") else begin - 1
        if self._t.at(begin) == "template" and self._t.at(begin + 1) == "<":
            depth = 0
            for index in range(begin + 1, at):
                depth += {"<": 1, ">": -1}.get(self._t.at(index), 0)
                if depth == 0:
                    return index + 1
        return begin

    def _kind(self, head: int, at: int) -> str:
        words = {self._t.at(index) for index in range(head, min(at, head + 4))}
        if _MODULE.fullmatch(self._t.at(head)):
            return "module"
        if "constexpr" in words or words & _DECLARES or ("extern" in words and self._parameters(head, at) is None):
            return "declarations"
        return "code" if self._parameters(head, at) is not None else "data"

    def _parameters(self, head: int, at: int) -> int | None:
        """The bracket of a function's parameters."""
        index = head
        while index < at:
            if self._t.at(index) == "(":
                if self._t.at(index - 1) == "operator":
                    index = self._t.partner.get(index, index) + 1
                    continue
                return index if self._t.word(index - 1) or self._t.at(index - 2) == "operator" else None
            if self._t.at(index) == "=" and self._t.at(index - 1) != "operator":
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
        named = (
            end - begin > 1
            and self._t.word(last)
            and not _NUMBERS.fullmatch(self._t.at(last))
            and self._t.at(last) != "const"
        )
        return self._t.at(last) if named and self._t.at(last - 1) != "::" else ""

    def _skipped(self, at: int) -> int:
        """Behind what is not evaluated, or only when compiling."""
        text = self._t.at(at)
        if _UNEVALUATED.fullmatch(text) and self._t.at(at + 1) == "(":
            return self._t.partner.get(at + 1, at) + 1
        if text == "constexpr" and self._t.at(at - 1) == "if":
            return self._t.partner.get(at + 1, at) + 1
        if _ONLY_COMPILED.fullmatch(text):
            stop = ":" if text == "case" else ";"
            while at < len(self._t) and self._t.at(at) not in (stop, "}"):
                at = self._t.partner.get(at, at) + 1 if self._t.at(at) == "{" else at + 1
            return at
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
        end = at + 1
        while end < len(self._t) and self._t.at(end) not in (";", "}"):
            end = self._t.partner.get(end, end) + 1 if self._t.at(end) in ("(", "[", "{") else end + 1
        name = self._t.at(at + 1) if end == at + 2 and self._t.word(at + 1) else ""
        if self._t.at(end) != ";" or name in ("this", "nullptr"):
            return
        if name:
            yield self._mark("return", "return", at, end + 1, at, closed=False, told=(name,))
        elif end > at + 1:
            yield self._mark("return", "return", at + 1, end, at, closed=False)

    def _cast(self, at: int) -> Iterator[Mark]:
        group = self._t.after_arguments(at + 1)
        end = self._t.partner.get(group)
        if self._t.at(group) == "(" and end is not None and group + 1 < end:
            name = re.sub(r"\s*::\s*", "::", self._t.source(at + 2, group - 1))
            yield self._cast_to(name, at, end + 1, (group + 1, end))

    def _cast_to(self, name: str, begin: int, end: int, inner: tuple[int, int]) -> Mark:
        receiver = self._t.source(*inner)
        receiver = "" if self._has_lambda(*inner) else receiver
        return self._mark("cast", name, begin, end, begin, closed=self._closed(*inner), receiver=receiver or "int")

    def _starts(self, at: int) -> bool:
        """Whether an expression that may be a call begins here."""
        before, text = self._t.at(at - 1), self._t.at(at)
        if before in (".", "->", "::", "new", "template", "~", "struct", "class", "typename"):
            return False
        if text == "(":
            end = self._t.partner.get(at, at)
            return self._t.at(end + 1) in (".", "->") and not self._t.word(at - 1) and before not in (")", "]", ">")
        if text == "::":
            return self._t.word(at + 1) and not (self._t.word(at - 1) and before not in _BEFORE_VALUE)
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
        closed = self._closed(group + 1, end - 1)
        told = self._plain_names(group)
        if link.dot >= 0:
            if self._has_lambda(begin, link.dot):
                return
            receiver = self._t.source(begin, link.dot)
            plain = re.fullmatch(r"[A-Za-z_]\w*", receiver) is not None and receiver != "this"
            if self._t.at(link.dot) == "->":
                receiver, plain = f"*({receiver})", False
            told = (receiver, *told) if plain else told
            closed &= plain or self._closed(begin, link.dot)
            yield self._mark("method", link.name, begin, end, link.index, closed=closed, receiver=receiver, told=told,
                             generic=link.generic)  # fmt: skip
            return
        name = link.name
        if _NUMBERS.fullmatch(name.rpartition("::")[2]) and end > group + 2:
            yield self._cast_to(name, begin, end, (group + 1, end - 1))
        elif name.partition("::")[0] in FRAMEWORK and "::" in name:
            yield self._mark("function", name, begin, end, link.index, closed=closed, told=told, generic=link.generic)
        elif "::" not in name and self._calls(begin) and (full := self._known(name)):
            yield self._mark("function", full, begin, end, link.index, closed=closed, told=told, generic=link.generic)

    def _calls(self, begin: int) -> bool:
        """Whether a plain name with a bracket behind it is a call, not a declaration."""
        before = self._t.at(begin - 1)
        return before in _BEFORE_VALUE or not (self._t.word(begin - 1) or before in (">", "*", "&"))

    def _plain_names(self, group: int) -> tuple[str, ...]:
        """Arguments that are a name and nothing else."""
        parts = [self._t.at(a) for a, b in self._t.split(group) if b - a == 1 and self._t.word(a)]
        return tuple(p for p in parts if p not in ("this", "true", "false", "nullptr", "NULL") and not p.isupper())

    def _closed(self, begin: int, end: int) -> bool:
        """Whether an expression is made of literals, plain names as whole arguments, and calls that are marked."""
        return not self._has_lambda(begin, end) and all(
            self._literal(index) or self._told_name(index, begin, end) for index in range(begin, end)
        )

    def _literal(self, index: int) -> bool:
        text = self._t.at(index)
        return text[0].isdigit() or text[0] == '"' or text in "(){},.-<>" or text in ("::", "->", "true", "false")

    def _told_name(self, index: int, begin: int, end: int) -> bool:
        """A name that is told, called, or part of a qualified one."""
        if not self._t.word(index):
            return False
        before, after = self._t.at(index - 1), self._t.at(index + 1)
        if "::" in (before, after) or before in (".", "->") or after in (".", "->", "(", "<"):
            return True
        whole = (index == begin or before in ("(", "{", ",")) and (index == end - 1 or after in (")", "}", ","))
        return whole or _NUMBERS.fullmatch(self._t.at(index)) is not None

    def _has_lambda(self, begin: int, end: int) -> bool:
        return any(
            self._t.at(index) == "[" and not (self._t.word(index - 1) or self._t.at(index - 1) in (")", "]"))
            for index in range(begin, end)
        )

    # -- marks ---------------------------------------------------------------------------------------------------

    def _mark(self, kind: str, name: str, begin: int, end: int, named: int, *, closed: bool, receiver: str = "",
              told: tuple[str, ...] = (), generic: bool = False) -> Mark:  # fmt: skip
        first, last = self._t.items[begin].start, self._t.items[end - 1].end
        return Mark(kind, name, self._path, self._line(named), generic, closed, first, last, receiver, told)

    def _line(self, index: int) -> int:
        return self._t.text.count("\n", 0, self._t.items[index].start) + 1


def lines_of(text: str, mark: Mark) -> range:
    """The lines of the file that a mark spans."""
    first = text.count("\n", 0, mark.begin) + 1
    return range(first, first + text.count("\n", mark.begin, mark.end) + 1)
