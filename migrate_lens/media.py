"""Text that others wrote, in; the same text so that a terminal, Markdown or SARIF takes it literally, out.

Names of files and modules, keys, messages and lines of source come from the library under diagnosis. Whatever shows
them asks here, and nowhere else, for what its medium would take for something other than text.
"""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
_BACKTICKS = re.compile(r"`+")
# What GitHub makes a link or a mention of even where each sign is escaped; inside of code it does not.
_LINKED_BY_ITSELF = re.compile(r"@\w|\w@|#\d|\bGH-\d|\w:/?/|\bwww\.|\b(?:mailto|javascript|data|xmpp):", re.IGNORECASE)
# What Markdown reads as more than a sign; an underscore inside of a word is none.
_MARKUP = re.compile(
    r"[\\`*\[\]|#<>~$]|(?<![^\W_])_|_(?![^\W_])|(?<![\w:]):(?=\w+:(?!:))|^[-+=](?=[-+=\s]|$)|^\d+(?=[.)](?:\s|$))"
)
_BRACKETS = re.compile(r"([\[\]])")


def line(text: str) -> str:
    """One line without control characters: what a program under diagnosis printed must not drive the terminal."""
    plain = _ANSI.sub("", text).replace("\u2028", " ").replace("\u2029", " ")
    return " ".join("".join(char if char.isprintable() else " " for char in plain).split())


def lines(text: str) -> str:
    """Lines as they are; what a terminal would obey, and marks that turn the order of letters, are written out."""
    return "".join(char if char in "\n\t" or char.isprintable() else _written_out(char) for char in _ends(text))


def _ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def _written_out(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


# -- Markdown ----------------------------------------------------------------------------------------------------------


class Markdown(str):
    """Text that is Markdown already, and is put into a document as it stands."""

    __slots__ = ()


def markdown(text: str) -> Markdown:
    """Text in a line that Markdown and HTML take literally; what would be a link or a mention by itself is code."""
    plain = line(text)
    if _LINKED_BY_ITSELF.search(plain):
        return code(plain)
    escaped = plain.replace("&", "&amp;").replace("<", "&lt;")
    return Markdown(_MARKUP.sub(_escaped, escaped))


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    return f"{found}\\" if found.isdigit() else f"\\{found}"


def code(text: str) -> Markdown:
    """A code span; the fence is longer than any run of backticks inside, and a table's ``|`` is escaped."""
    plain = line(text).replace("|", "\\|")
    if not plain:
        return Markdown()
    fence = "`" * (_longest(plain) + 1)
    return Markdown(f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`")


def fenced(text: str, language: str = "") -> Markdown:
    """Lines of code or of a log in a fence that is longer than any run of backticks inside."""
    shown = lines(text).rstrip()
    fence = "`" * max(3, _longest(shown) + 1)
    return Markdown(f"{fence}{language}\n{shown}\n{fence}")


def _longest(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)


# -- SARIF -------------------------------------------------------------------------------------------------------------


def message(text: str) -> str:
    """The text of a message, in which SARIF has links."""
    plain = line(text)
    return _BRACKETS.sub(r"\\\1", plain) if "](" in plain else plain
