"""The text of a C++ file in; its declarations, also those inside of namespaces and registrations, out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from migrate_lens.cpp.comments import blanked, tidied
from migrate_lens.cpp.tokens import Tokens

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)(?:[^\n\\]|\\.|\\\n)*\n?", re.MULTILINE)
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"')
_CLASSES = frozenset(("struct", "class", "union", "enum", "typedef", "using", "extern", "template", "friend"))
_ENDS_A_NAME = frozenset(("(", "{", "=", ";", "["))
_REMOVABLE = frozenset(("include", "define", "undef", "pragma"))


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration, a directive, or a statement of a registration.

    Attributes:
        start, end: where it stands.
        text: what it says.
        inside: the registration that it is a statement of, a macro's name; empty for all others.
        wrapper: where what is around it begins and ends; both 0 where nothing is.
    """

    start: int
    end: int
    text: str
    inside: str = ""
    wrapper: tuple[int, int] = (0, 0)

    @property
    def directive(self) -> str:
        """Which directive it is: ``include``, ``define``; empty where it is none."""
        found = _DIRECTIVE.match(self.text)
        return found[1] if found else ""

    @property
    def removable(self) -> bool:
        """Whether what is around it stays well-formed without it."""
        return not self.directive or self.directive in _REMOVABLE

    @property
    def words(self) -> frozenset[str]:
        """All names in it, those in strings too."""
        return frozenset(re.findall(r"[A-Za-z_]\w*", self.text))

    @property
    def quoted(self) -> frozenset[str]:
        """The name with which each string in it begins."""
        strings = (re.match(r'"\s*(?:\w+::)*([A-Za-z_]\w*)', one[0]) for one in _QUOTED.finditer(self.text))
        return frozenset(found[1] for found in strings if found)

    @property
    def declares(self) -> str:
        """The name that it introduces; empty where that is not known."""
        if self.directive == "define":
            defined = re.match(r"\s*#\s*define\s+(\w+)", self.text)
            return defined[1] if defined else ""
        tokens = Tokens(self.text)
        at, name = 0, ""
        while at < len(tokens) and tokens.at(at) not in _ENDS_A_NAME:
            if tokens.at(at) == "operator":
                return ""
            if tokens.word(at):
                name = tokens.at(at)
            at = max(at + 1, tokens.after_arguments(at) if tokens.at(at - 1) == "template" else at + 1)
            if tokens.at(at) == ":" and tokens.at(0) in _CLASSES:
                break
        return name


class Declarations:
    """All declarations of a text.

    Args:
        text: a C++ file; its comments are left out.
    """

    def __init__(self, text: str) -> None:
        self.text = blanked(text)
        self._tokens = Tokens(self.text)

    @cached_property
    def items(self) -> list[Declaration]:
        """They themselves, in the order of the text."""
        directives = (Declaration(m.start(), m.end(), m[0]) for m in _DIRECTIVE.finditer(self.text))
        return sorted((*directives, *self._within(0, len(self._tokens), (0, 0))), key=lambda one: one.start)

    def at_line(self, line: int) -> Declaration | None:
        """The declaration that a line belongs to."""
        lines = self.text.splitlines(keepends=True)
        start = sum(map(len, lines[: line - 1]))
        end = start + len(lines[line - 1]) if line <= len(lines) else start
        return next((one for one in self.items if one.start < end and start < one.end), None)

    def only(self, kept: Collection[Declaration]) -> str:
        """The text with some of its declarations; what is around none of them goes as well."""
        gone = [one for one in self.items if one not in kept]
        spans = [(one.start, one.end) for one in gone]
        stay = [one.wrapper for one in kept]
        for start, end in {one.wrapper for one in gone if one.wrapper[1]}:
            if not any(start <= left and right <= end for left, right in stay if right):
                spans.append((start, end))
        return tidied(_without(self.text, spans))

    def _within(self, begin: int, end: int, wrapper: tuple[int, int]) -> Iterator[Declaration]:
        """Declarations between two tokens; a namespace is looked into, and so is a registration."""
        at = begin
        while at < end:
            last, opening = self._end(at, end)
            head = self._tokens.at(at)
            body = self._tokens.partner.get(opening, 0) if opening >= 0 else 0
            around = (self._tokens.items[at].start, self._tokens.items[last].end)
            if body and self._transparent(at, opening):
                yield from self._within(opening + 1, body, around)
            elif body and head.isupper() and self._tokens.at(at + 1) == "(":
                yield from self._statements(head, opening + 1, body, around)
            else:
                yield Declaration(*around, self.text[around[0] : around[1]], "", wrapper)
            at = last + 1

    def _transparent(self, at: int, opening: int) -> bool:
        """Whether braces are those of a namespace, or of a linkage."""
        head = self._tokens.at(at)
        linkage = head == "extern" and opening == at + 2
        return linkage or head == "namespace" or (head == "inline" and self._tokens.at(at + 1) == "namespace")

    def _statements(self, macro: str, begin: int, end: int, around: tuple[int, int]) -> Iterator[Declaration]:
        at = begin
        while at < end:
            last, _ = self._end(at, end)
            start, stop = self._tokens.items[at].start, self._tokens.items[last].end
            yield Declaration(start, stop, self.text[start:stop], macro, around)
            at = last + 1

    def _end(self, begin: int, end: int) -> tuple[int, int]:
        """The last token of what begins here, and the brace that opens its body, -1 where it has none."""
        at, opening, assigned = begin, -1, False
        while at < end:
            text = self._tokens.at(at)
            if text == ";":
                return at, opening
            assigned = assigned or text in ("=", "return")
            if text in ("(", "[", "{") and at in self._tokens.partner:
                if text == "{" and opening < 0:
                    opening = at
                at = self._tokens.partner[at]
                if text == "{" and self._ends_here(begin, at, assigned):
                    return at, opening
            at += 1
        return end - 1, opening

    def _ends_here(self, begin: int, closing: int, assigned: bool) -> bool:
        """Whether a body ends its declaration: a class or an initial value goes on to a semicolon."""
        if self._tokens.at(closing + 1) == ";":
            return False
        head = [self._tokens.at(index) for index in range(begin, min(begin + 40, closing))]
        first = head[0] if head else ""
        if first in ("struct", "class", "union", "enum", "typedef", "using"):
            return "(" in head
        return not assigned and self._tokens.at(closing + 1) not in (",", "(", ".", ")", "{", "->")


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            kept.append(text[at:start])
        at = max(at, end)
    return "".join((*kept, text[at:]))


def closure(wanted: Iterable[Declaration], among: Iterable[Declaration]) -> list[Declaration]:
    """Declarations and all that they need of others; directives that declare nothing are needed by all."""
    others = list(among)
    kept = {id(one): one for one in wanted}
    words = {word for one in kept.values() for word in one.words}
    changed = True
    while changed:
        changed = False
        for one in others:
            if id(one) not in kept and _needed(one, words):
                kept[id(one)] = one
                words |= one.words
                changed = True
    return list(kept.values())


def _needed(one: Declaration, words: Collection[str]) -> bool:
    if one.inside:
        return False
    if one.directive and one.directive != "define":
        return True
    if one.text.startswith("using namespace"):
        return True
    name = one.declares
    return not name or name in words
