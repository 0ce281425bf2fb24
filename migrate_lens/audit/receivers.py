"""Receivers in one Python file: what a name, ``self`` or an attribute's owner stands for, in; a member's type, out.

Types are strings; ``expressions`` says how they are written.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from migrate_lens.audit.knowledge import ATTRIBUTES, DISTINCTIVE, DTYPES, GROUP, MODULE, TENSOR
from migrate_lens.model.uses import CERTAIN, GUESS, LIKELY, Use

SURE = {"=": CERTAIN, "~": LIKELY, "?": GUESS}
MARKS = frozenset(SURE)
LAYER = re.compile(r"torch\.nn\.(?:\w+\.)*[A-Z]\w*")
NATIVE = "%native:"  # what the library's own compiled module has
GROUP_NAME = re.compile(r"(?:\w*_)?(?:group|pg)")


class Class:
    """What is known of the class around: its kind and the types of its attributes."""

    __slots__ = ("attrs", "kind", "methods")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.attrs: dict[str, str] = {}
        self.methods: set[str] = set()


class Receivers:
    """Scopes, the class around, and the uses that were noted."""

    def __init__(self, seeds: dict[str, str]) -> None:
        self.uses: list[Use] = []
        self.scopes: list[dict[str, str]] = [dict(seeds)]
        self.owner: Class | None = None
        self.guard = ""
        self.at = "import"
        self.inside = ""
        self.lazy = False
        self.distributed = False
        self.defined: set[str] = set()  # functions of this file, at any level

    def note(self, event: str, api: str, line: int, sure: str = CERTAIN, **facts: Any) -> None:
        """Record one use where the reader stands."""
        self.distributed = self.distributed or (event == "import" and api.startswith("torch.distributed"))
        self.uses.append(Use(event, api, line, sure, self.guard, self.at, self.inside, **facts))

    def lookup(self, name: str) -> str:
        """What a plain name stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return ""

    def member(self, base: str, attr: str) -> str:
        """The type of ``base.attr``."""
        if not base:
            return self.unknown_member(attr)
        if base[0] == "$":
            return self.own_member(attr)
        if base.startswith(NATIVE):
            return f"{base}:{attr}"
        if base[0] == "%" or base[1:3] == "[]":
            return ""
        if base[0] in MARKS:
            return self.held_member(base, attr)
        if base in DTYPES:
            return f"=torch.dtype>{attr}"
        return f"{base}.{attr}"

    def unknown_member(self, attr: str) -> str:
        """An attribute of something unknown: a few names belong to one torch class only."""
        if attr in DISTINCTIVE:
            return f"?{DISTINCTIVE[attr]}>{attr}"
        if attr == "dtype" or attr == "device":
            return f"?torch.{attr}"
        return ""

    def own_member(self, attr: str) -> str:
        """An attribute of ``self``."""
        owner = self.owner
        if owner is None:
            return ""
        if attr in owner.attrs:
            return owner.attrs[attr]
        if owner.kind == "module" and attr not in owner.methods:
            return f"?{TENSOR}" if attr in ("weight", "bias") else f"~{MODULE}>{attr}"
        return self.unknown_member(attr)

    def group_member(self, node: ast.Attribute) -> str:
        """``group.rank()`` in a file that imports torch.distributed."""
        holder = getattr(node.value, "id", "") or getattr(node.value, "attr", "")
        named = self.distributed and node.attr in ("rank", "size") and GROUP_NAME.fullmatch(holder)
        return f"?{GROUP}>{node.attr}" if named else ""

    def held_member(self, base: str, attr: str) -> str:
        """An attribute of an instance; every layer has what torch.nn.Module has, unless this file defines the name."""
        if LAYER.fullmatch(base, 1):
            return "" if attr in self.defined else f"{base[0]}{MODULE}>{attr}"
        return f"{base}>{attr}"

    def settle(self, found: str, node: Any) -> str:
        """A member that is read, not called: note it, and say what it holds."""
        if ">" not in found:
            return found
        owner, _, attr = found[1:].partition(">")
        api = f"{owner}.{attr}"
        if owner != MODULE:
            self.note("attribute", api, node.end_lineno or node.lineno, SURE[found[0]], value=owner)
        kept = ATTRIBUTES.get(api, "")
        return f"{found[0]}{kept}" if kept else ""
