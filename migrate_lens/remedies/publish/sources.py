"""A source in Python or C++ in; it without comments, or with its strings changed, out."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import PurePath

from migrate_lens.cpp import comments

_NATIVE = frozenset((".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".hxx", ".cuh", ".inl"))
_PYTHON = re.compile(r"(?s)([A-Za-z]{0,2})('''|\"\"\"|'|\")(.*)\2")
Change = Callable[[str], str]


class Unreadable(ValueError):  # noqa: N818 - says what the source is
    """A source that is none of its language."""


def is_source(name: str) -> bool:
    """Whether a file's name says that it is Python or C++."""
    return PurePath(name).suffix in _NATIVE or name.endswith(".py")


def printable(text: str) -> bool:
    """Whether a text has nothing in it that is not shown."""
    return all(char in "\n\t" or char.isprintable() for char in text)


# -- comments ----------------------------------------------------------------------------------------------------------


def without_comments(name: str, text: str) -> str:
    """A source without comments, without docstrings, and without the lines that are empty then.

    One that is none of its language is left out: nothing could be said of it.
    """
    try:
        return _without_comments(name, text)
    except Unreadable:
        return ""


def _without_comments(name: str, text: str) -> str:
    return _python_without(text) if name.endswith(".py") else comments.without_comments(text)


def _python_without(text: str) -> str:
    lines = _without_docstrings(text).splitlines(keepends=True)
    for token in reversed(list(_tokens("".join(lines)))):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column].rstrip() + line[token.end[1] :]
    made = "".join(lines)
    return made if made == text else comments.tidied(made)


def _without_docstrings(text: str) -> str:
    lines = text.splitlines(keepends=True)
    for node in reversed(list(_docstrings(_parsed(text)))):
        assert node.end_lineno is not None
        first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
        head, tail = first.encode()[: node.col_offset].decode(), last.encode()[node.end_col_offset :].decode()
        lines[node.lineno - 1 : node.end_lineno] = [f"{head}pass{tail}"]
    return "".join(lines)


def _docstrings(tree: ast.AST) -> Iterator[ast.Expr]:
    """Statements that are nothing but a string, in the order of the text."""
    found = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError) as error:
        raise Unreadable(str(error)) from error


# -- strings -----------------------------------------------------------------------------------------------------------


def in_strings(name: str, text: str, change: Change) -> str:
    """A source with its strings changed; signs in them that are not shown are written as escapes.

    Raises:
        Unreadable: it is none of its language.
    """
    if name.endswith(".py"):
        return _in_python(text, change)
    return comments.in_strings(text, lambda inner: _escaped(change(inner)), change)


def _in_python(text: str, change: Change) -> str:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in reversed(list(_tokens(text))):
        if token.type == tokenize.STRING:
            start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            text = text[:start] + _literal(token.string, change) + text[end:]
    _parsed(text)
    return text


def _literal(literal: str, change: Change) -> str:
    match = _PYTHON.fullmatch(literal)
    if match is None:
        return change(literal)
    prefix, quote, inner = match.groups()
    made = change(inner)
    if "r" in prefix.lower():
        return f"{prefix}{quote}{made}{quote}"
    return f"{prefix}{quote}{_escaped(made)}{quote}"


def _escaped(text: str) -> str:
    return "".join(
        char if char in "\n\t" or char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )
