"""The text of a C++ file in; it without comments, or with its strings changed, out."""

from __future__ import annotations

import re
from collections.abc import Callable

_LITERALS = re.compile(
    r'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:\\.|[^"\\\n])*)"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)


def without_comments(text: str) -> str:
    """A text without comments, and without the lines that are empty then."""
    unix = text.replace("\r\n", "\n")
    made = _LITERALS.sub(lambda match: _gone(match[0]), unix)
    return made if made == unix else tidied(made)


def blanked(text: str) -> str:
    """A text with blanks in place of comments: what is left stands where it stood."""
    return _LITERALS.sub(lambda match: _blank(match[0]), text)


def _gone(found: str) -> str:
    if not found.startswith(("//", "/*")):
        return found
    return "\n" * found.count("\n") or " "


def _blank(found: str) -> str:
    return re.sub(r"[^\n]", " ", found) if found.startswith(("//", "/*")) else found


def tidied(text: str) -> str:
    """A text without blanks at the ends of lines, and with one empty line where there were several."""
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
    return "\n".join(kept).strip("\n") + "\n"


def in_strings(text: str, change: Callable[[str], str], raw: Callable[[str], str]) -> str:
    """A text with its strings changed, but for the names of headers.

    Args:
        text: a C++ file.
        change: of what stands between the quotation marks of a string.
        raw: of what stands in a raw one, in which nothing can be escaped.
    """
    included = [match.span() for match in _INCLUDE.finditer(text)]

    def changed(match: re.Match[str]) -> str:
        group = "text" if match["text"] is not None else "raw"
        if match[group] is None or any(start <= match.start() < end for start, end in included):
            return match[0]
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        made = change(match[group]) if group == "text" else raw(match[group])
        return match[0][:start] + made + match[0][end:]

    return _LITERALS.sub(changed, text)
