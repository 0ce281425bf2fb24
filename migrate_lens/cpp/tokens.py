"""The text of a C++ file goes in; its tokens come out, with partners of brackets, comments and directives left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_LEFT_OUT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*",
    re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|\"+|::|->|&&|\|\||[<>=!+*/%&|^-]=|\+\+|--|\S")
_OPEN = {"(": ")", "[": "]", "{": "}"}
# What may stand between the angle brackets of template arguments.
_IN_ARGUMENTS = re.compile(r"[A-Za-z_]\w*|\d\w*|::|[,<>*&()\[\]]|&&|\.")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, string (as quotation marks) or sign, and where it stands."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> bool:
        """Whether it is an identifier or a keyword."""
        return self.text[0].isalpha() or self.text[0] == "_"


class Tokens:
    """All tokens of a text.

    Args:
        text: a C++ file.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.items = [Token(m[0], m.start(), m.end()) for m in _TOKEN.finditer(_masked(text))]

    def __len__(self) -> int:
        return len(self.items)

    def at(self, index: int) -> str:
        """The text of a token, empty outside of the file."""
        return self.items[index].text if 0 <= index < len(self.items) else ""

    def word(self, index: int) -> bool:
        """Whether there is an identifier or keyword."""
        return 0 <= index < len(self.items) and self.items[index].word

    @cached_property
    def partner(self) -> dict[int, int]:
        """The other end of each bracket that has one."""
        found: dict[int, int] = {}
        stack: list[int] = []
        for index, token in enumerate(self.items):
            if token.text in _OPEN:
                stack.append(index)
            elif token.text in _OPEN.values():
                while stack and _OPEN[self.at(stack[-1])] != token.text:
                    stack.pop()
                if stack:
                    found[stack[-1]] = index
                    found[index] = stack.pop()
        return found

    def after_arguments(self, index: int) -> int:
        """Behind the template arguments that begin at ``index``; ``index`` itself where none do."""
        if self.at(index) != "<":
            return index
        depth, at = 0, index
        while at < min(len(self), index + 200) and _IN_ARGUMENTS.fullmatch(self.at(at)):
            depth += {"<": 1, ">": -1}.get(self.at(at), 0)
            at += 1
            if depth == 0:
                return at if self.at(at) in ("(", "::", "{") else index
        return index

    def split(self, opening: int) -> list[tuple[int, int]]:
        """The parts between the commas of a bracket, as token ranges."""
        end = self.partner.get(opening, opening)
        parts, begin, at = [], opening + 1, opening + 1
        while at < end:
            if self.at(at) in _OPEN:
                at = self.partner.get(at, at)
            elif self.at(at) == "<" and (after := self.after_arguments(at)) != at:
                at = after - 1
            elif self.at(at) == ",":
                parts.append((begin, at))
                begin = at + 1
            at += 1
        return [*parts, (begin, end)] if begin < end else parts

    def source(self, begin: int, end: int) -> str:
        """The text from one token to before another, in one line and without comments."""
        return " ".join(self.text[token.start : token.end] for token in self.items[begin:end])


def _masked(text: str) -> str:
    return _LEFT_OUT.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    if match[0].startswith(('"', 'R"')):
        return '"' * len(match[0])
    if match[0].startswith("'"):
        return "0" * len(match[0])
    return re.sub(r"[^\n]", " ", match[0])
