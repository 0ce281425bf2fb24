"""Nothing in; a hundred strings that a medium may take for more than text, and what shows that one is active, out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

STRINGS = (
    # a terminal
    "\x1b[31mred\x1b[0m", "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]8;;http://e.org\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP+q\x1b\\",
    "a\rb", "a\x08\x08b", "\x07bell", "a\x00b", "\x0c\x0b", "\x7f", "\x9b31m", "\x85next", "a\u2028b", "a\u2029b",
    "a\nb\n\nc",
    "\n# heading\n", "\r\n- item", "a\tb", "\x1b[1;1Hback",
    # the order and the look of letters
    "\u202eevil\u202c", "\u2066abc\u2069", "\u2067x\u2069", "\u2068y\u2069", "\u200eltr", "\u200frtl", "\u061carabic",
    "a\u200bb",
    "a\u200cb", "a\u200db", "a\u2060b", "\ufeffbom", "a\u00adb", "tag\U000e0041\U000e007f", "\ud800", "\udcff.py",
    "\ufff9x\ufffb",
    # HTML
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<a href='javascript:x'>y</a>", "<!-- gone", "-->",
    "</td></tr>",
    "<details open>", "<style>*{display:none}</style>", "<b>bold</b>", "&lt;b&gt;", "&#60;b&#62;", "<http://e.org>",
    "<x@e.org>",
    "<?php", "<![CDATA[x]]>", "</summary><h1>x</h1>", "<br>", "<svg/onload=x>",
    # Markdown
    "![x](http://e.org/a.png)", "[x](http://e.org)", "[x](javascript:alert(1))", "[x][y]", "[y]: http://e.org",
    "![x][y]",
    "# heading", "## heading", "===", "---", "***", "> quote", "- item", "* item", "+ item", "1. item", "1) item",
    "- [x] done",
    "*bold* **bolder**", "_it_ __bolder__", "~~gone~~", "`code`", "```", "~~~", "``` js\nx\n```", "a ``` b",
    "``a`b``", "\\`x\\`",
    "a|b|c", "|---|---|", "|", "\\", "x\\", "$x^2$", ":tada: x", "[^1]", "[^1]: note", "[[wiki]]",
    # what GitHub makes links and mentions of
    "@torvalds", "see @org/team now", "(@name)", "#123", "owner/repo#1", "GH-12", "http://e.org/x",
    "https://e.org?a=b", "www.e.org",
    "mailto:x@e.org", "x@e.org", "ftp://e.org",
)  # fmt: skip

_LINKED = re.compile(r"@\w|(?<![\w&])#\d|\bGH-\d|\w://|\bwww\.", re.IGNORECASE)
_ACTIVE = frozenset(
    ("html_inline", "html_block", "link_open", "image", "em_open", "strong_open", "s_open", "hr", "blockquote_open")
)


def driving(text: str) -> list[str]:
    """Signs in a text that a terminal obeys, or that are not shown; ends of lines and tabs are neither."""
    return sorted({repr(char) for char in text if char not in "\n\t" and not char.isprintable()})


def blocks(text: str) -> list[str]:
    """The skeleton of a Markdown document: the kinds of its blocks."""
    return [token.type for token in _tokens(text)]


def active(text: str) -> Iterator[str]:
    """What a reader of a Markdown document would get beside text and code."""
    for token in _tokens(text):
        if token.type in _ACTIVE:
            yield f"{token.type}: {token.content}"
        for inner in token.children or ():
            if inner.type in _ACTIVE:
                yield f"{inner.type}: {inner.content}"
            elif inner.type == "text" and _LINKED.search(inner.content):
                yield f"linked: {inner.content}"


def _tokens(text: str) -> list[Token]:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
