"""Source text in; the workaround comments in it, and what each of them lacks, out."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

FORM = re.compile(
    r"TODO\((?P<owner>[^)]*)\):\s*remove this workaround after Paddle compat supports\s+(?P<api>\S.*)", re.IGNORECASE
)
_LIKE = re.compile(r"\b(workaround|work around|hack|fixme|todo|xxx)\b", re.IGNORECASE)
_PADDLE = re.compile(r"\bpaddle|\bcompat\b", re.IGNORECASE)
_NOBODY = frozenset(
    ("", "owner", "todo", "xxx", "?", "tbd", "name", "unassigned", "none", "owner or issue", "me", "url")
)
_PARTS = {"what": r"(?im)^\W*what:\s*\S", "why now": r"(?im)^\W*why(?: now)?:\s*\S", "delete": r"(?im)^\W*delete:\s*\S"}


@dataclass(frozen=True, slots=True)
class Todo:
    """One workaround comment: its lines, the API that it waits for, and what it lacks."""

    first: int
    last: int
    api: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """Comments on lines that follow each other: first line, last line, text."""

    first: int
    last: int
    text: str


def todos(text: str, *, native: bool = False) -> Iterator[Todo]:
    """Comments that speak of a workaround for Paddle.

    Args:
        text: the source.
        native: C++ rather than Python.
    """
    for block in _native(text) if native else _python(text):
        joined = re.sub(r"\s*\n\s*(?:#|//|\*)?\s*", " ", block.text)
        form = FORM.search(joined)
        if form:
            api = re.split(r"\s+(?:as torch does|What:|Why)|\s\(", form["api"])[0].strip(" .")
            yield Todo(block.first, block.last, api, tuple(_lacks(form["owner"], api, block.text)))
        elif _LIKE.search(block.text) and _PADDLE.search(block.text):
            lacks = "the form TODO(owner): remove this workaround after Paddle compat supports ..."
            yield Todo(block.first, block.last, "", (lacks,))


def _lacks(owner: str, api: str, block: str) -> Iterator[str]:
    if owner.strip().lower() in _NOBODY:
        yield "an owner or an issue"
    if not re.match(r"[\w:.]+", api) or api.lower() in ("it", "this", "..."):
        yield "the API or behaviour that it waits for"
    said = {"what": "what it is for", "why now": "why it is needed now", "delete": "how to delete it"}
    for name, pattern in _PARTS.items():
        if not re.search(pattern, block):
            yield said[name]


def _python(text: str) -> Iterator[_Block]:
    """Blocks of whole-line or trailing comments."""
    comments: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = token.string.lstrip("#").strip()
    except (tokenize.TokenError, SyntaxError):
        comments = {
            n: line.partition("#")[2] for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#")
        }
    yield from _blocks(comments)


def _native(text: str) -> Iterator[_Block]:
    comments = {}
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(?://|^\s*/?\*)(.*)", line)
        if comment:
            comments[number] = comment[1].strip(" */")
    yield from _blocks(comments)


def _blocks(comments: dict[int, str]) -> Iterator[_Block]:
    first = 0
    for number in sorted(comments):
        first = number if number - 1 not in comments else first
        if number + 1 not in comments:
            yield _Block(first, number, "\n".join(comments[n] for n in range(first, number + 1)))
