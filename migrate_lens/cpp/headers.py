"""What a framework's C++ headers declare: include folders in; names, methods by class, macros and header paths out.

A scanner, not a compiler: it keeps to namespace and class scope, skips bodies, and knows nothing of overloads. That is
enough to say that a name is declared nowhere, which is the only claim the audit makes about C++ from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:[^\\\n]|\\\n|\\.)*)", re.MULTILINE)
TOKEN = re.compile(r"[{}();]")
SPACE_SCOPE = re.compile(r"\b(?:inline\s+)?namespace\b|extern\s*$")
TYPE_SCOPE = re.compile(
    r"\b(?:class|struct|union)\s+(?:[A-Z_0-9]+(?:\([^)]*\))?\s+)*(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.S
)
ENUM_SCOPE = re.compile(r"\benum\b(?:\s+(?:class|struct))?\s*(\w+)?")
ALIAS = re.compile(r"\busing\s+(?:typename\s+)?(?:[\w:<>]*::)?(\w+)\s*(?:=|$)|\btypedef\b.*?(\w+)\s*$", re.S)
CALLABLE = re.compile(r"(~?\w+|operator\s*\W{1,3})\s*(?:<[^<>]*>)?\s*$")
FORWARD = re.compile(r"\b(?:class|struct|enum(?:\s+class)?)\s+(?:[A-Z_0-9]+\s+)*(\w+)\s*$")
VARIABLE = re.compile(r"\b(\w+)\s*(?:=[^=].*)?$", re.S)
SUFFIXES = frozenset((".h", ".hpp", ".cuh", ".inc"))


@dataclass(slots=True)
class Declared:
    """Everything that a set of headers declares."""

    names: set[str] = field(default_factory=set)
    methods: dict[str, set[str]] = field(default_factory=dict)
    macros: set[str] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)


def clean(text: str) -> str:
    """Text without comments and literals, with the same number of lines."""
    return NOISE.sub(lambda match: "\n" * match[0].count("\n") + " ", text)


def read_header(text: str, into: Declared) -> None:
    """Add what one header declares; a macro's body is not looked into."""
    text = clean(text)
    for directive in DIRECTIVE.finditer(text):
        if directive[1] == "define" and (name := re.match(r"\s*(\w+)", directive[2])):
            into.macros.add(name[1])
    Scanner(DIRECTIVE.sub("", text), into).run()


class Scanner:
    """One pass over cleaned text, with a stack of the scopes that are open."""

    def __init__(self, text: str, into: Declared) -> None:
        self.text, self.into = text, into
        self.scopes: list[str] = []  # "" for a namespace, a class name, or "{" for a body that is skipped
        self.start = 0
        self.parens = 0

    def run(self) -> None:
        """Walk the braces; everything between them is one declaration or a body."""
        for token in TOKEN.finditer(self.text):
            sign = token[0]
            if sign in "()":
                self.paren(token)
            elif sign == "}":
                self.close(token)
            elif sign == "{":
                self.open(self.text[self.start : token.start()])
                self.start = token.end()
            elif not self.parens:
                self.declare(self.text[self.start : token.start()])
                self.start = token.end()

    def paren(self, token: re.Match[str]) -> None:
        """The first parenthesis of a declaration follows its name."""
        if token[0] == ")":
            self.parens = max(0, self.parens - 1)
            return
        if not self.parens and self.visible():
            self.add(CALLABLE.search(self.text[self.start : token.start()]))
        self.parens += 1

    def visible(self) -> bool:
        """Whether declarations here can be named from outside."""
        return "{" not in self.scopes

    def open(self, head: str) -> None:
        """Push the scope that a brace opens."""
        self.parens = 0
        if not self.visible():
            self.scopes.append("{")
            return
        head = head.strip()
        if SPACE_SCOPE.search(head) and "(" not in head:
            self.scopes.append("")
        elif found := ENUM_SCOPE.search(head):
            self.add(found)
            self.scopes.append("enum")
        elif (found := TYPE_SCOPE.search(head)) and "=" not in head:
            self.add(found)
            self.scopes.append(found[1])
            self.into.methods.setdefault(found[1], set())
        else:
            self.scopes.append("{")

    def close(self, token: re.Match[str]) -> None:
        """Pop a scope; what stood between the braces of an enum are its members."""
        if self.scopes and self.scopes.pop() == "enum":
            for part in self.text[self.start : token.start()].split(","):
                self.add(re.match(r"\s*(\w+)", part))
        self.start = token.end()
        self.parens = 0

    def declare(self, text: str) -> None:
        """A declaration that ended in a semicolon."""
        if self.visible() and (text := text.strip()):
            self.add(ALIAS.search(text) or FORWARD.search(text) or ("(" not in text and VARIABLE.search(text)) or None)

    def add(self, found: re.Match[str] | None) -> None:
        """Record the name that a pattern found, where the innermost scope says."""
        name = next((group for group in found.groups() if group), "") if found else ""
        if not name:
            return
        owner = next((scope for scope in reversed(self.scopes) if scope not in ("", "enum")), "")
        if owner:
            self.into.methods.setdefault(owner, set()).add(name)
        if not owner or self.scopes[-1] in ("enum", owner):
            self.into.names.add(name) if not owner or self.scopes[-1] == "enum" else None


def header_files(root: Path, below: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """(include path, file) for every header below some folders of an include root."""
    for part in below:
        base = root / part
        for path in sorted(base.rglob("*")) if base.is_dir() else ():
            if path.suffix in SUFFIXES:
                yield path.relative_to(root).as_posix(), path


def scan(includes: Iterable[Path], below: tuple[str, ...] = ("ATen", "c10", "torch")) -> Declared:
    """What the torch-style headers of a framework declare, all of them: a name counts wherever it is declared."""
    found = Declared()
    for root in includes:
        for name, path in header_files(root, below):
            found.headers.add(name)
            if "/native/" not in name and "/jit/" not in name and "/inductor/" not in name:
                read_header(path.read_text("utf-8", "replace"), found)
    return found
