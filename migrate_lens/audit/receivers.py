"""Receivers in one Python file: what a name, ``self`` or an attribute's owner stands for, in; its member, out."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from migrate_lens.audit.knowledge import ATTRIBUTES, DISTINCTIVE, DTYPES, GROUP, MODULE, TENSOR
from migrate_lens.audit.meaning import (
    LAYER,
    Around,
    ClassKind,
    Instance,
    Meaning,
    Member,
    NativeName,
    OwnClass,
    Several,
    TorchName,
    instance,
)
from migrate_lens.model.uses import Certainty, Event, Guard, Use, When

GROUP_NAME = re.compile(r"(?:\w*_)?(?:group|pg)")


class Class:
    """What is known of the class around: its kind and what its attributes stand for."""

    __slots__ = ("attrs", "kind", "methods")

    def __init__(self, kind: ClassKind, methods: set[str]) -> None:
        self.kind = kind
        self.methods = methods
        self.attrs: dict[str, Meaning] = {}


class CallFacts(NamedTuple):
    """What a call says of its arguments and its result, as ``Use`` has it."""

    keywords: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    positional: int = -1
    then: str = ""
    literal: str = ""


NO_CALL = CallFacts()
Scope = dict[str, Meaning]


class Receivers:
    """Scopes, the class around, and the uses that were noted."""

    def __init__(self, seeds: dict[str, str]) -> None:
        self.uses: list[Use] = []
        self.scopes: list[Scope] = [{name: TorchName(api) for name, api in seeds.items()}]
        self.owner: Class | None = None
        self.guard = Guard.NONE
        self.place = ""
        self.at: When = "import"
        self.inside = ""
        self.lazy = False
        self.distributed = False
        self.defined: set[str] = set()  # functions of this file, at any level

    def note(
        self,
        event: Event,
        api: str,
        line: int,
        sure: Certainty = Certainty.CERTAIN,
        value: str = "",
        facts: CallFacts = NO_CALL,
    ) -> None:
        """Record one use where the reader stands."""
        if event == "import" and api.startswith("torch.distributed"):
            self.distributed = True
        keywords, lines, positional, then, literal = facts
        here = (sure, self.guard, self.at, self.inside)
        self.uses.append(Use(event, api, line, *here, keywords, lines, positional, then, value, literal))

    def lookup(self, name: str) -> Meaning:
        """What a plain name stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def member(self, base: Meaning, attr: str) -> Meaning:
        """What ``base.attr`` stands for."""
        match base:
            case TorchName():
                if base.name in DTYPES:
                    return Member("torch.dtype", attr, Certainty.CERTAIN)
                return TorchName(f"{base.name}.{attr}")
            case None:
                return self.unknown_member(attr)
            case Around():
                return self.own_member(attr)
            case Instance():
                return self.held_member(base, attr)
            case NativeName():
                return NativeName(f"{base.path}.{attr}")
            case OwnClass() | Several() | Member():
                return None

    def unknown_member(self, attr: str) -> Meaning:
        """An attribute of something unknown: a few names belong to one torch class only."""
        if attr in DISTINCTIVE:
            return Member(DISTINCTIVE[attr], attr, Certainty.GUESS)
        if attr in ("dtype", "device"):
            return Instance(f"torch.{attr}", Certainty.GUESS)
        return None

    def own_member(self, attr: str) -> Meaning:
        """An attribute of ``self``."""
        owner = self.owner
        if owner is None:
            return None
        if attr in owner.attrs:
            return owner.attrs[attr]
        if owner.kind is not ClassKind.MODULE or attr in owner.methods:
            return self.unknown_member(attr)
        if attr in ("weight", "bias"):
            return Instance(TENSOR, Certainty.GUESS)
        return Member(MODULE, attr, Certainty.LIKELY)

    def group_member(self, node: ast.Attribute) -> Meaning:
        """``group.rank()`` in a file that imports torch.distributed."""
        if not self.distributed or node.attr not in ("rank", "size"):
            return None
        holder = getattr(node.value, "id", "") or getattr(node.value, "attr", "")
        return Member(GROUP, node.attr, Certainty.GUESS) if GROUP_NAME.fullmatch(holder) else None

    def held_member(self, base: Instance, attr: str) -> Meaning:
        """An attribute of an instance; every layer has what torch.nn.Module has, unless this file defines the name."""
        if not LAYER.fullmatch(base.of):
            return Member(base.of, attr, base.sure)
        return None if attr in self.defined else Member(MODULE, attr, base.sure)

    def settle(self, meaning: Meaning, node: ast.expr) -> Meaning:
        """A member that is read, not called: note it, and say what it holds."""
        if not isinstance(meaning, Member):
            return meaning
        if meaning.owner != MODULE:
            self.note("attribute", meaning.api, last_line(node), meaning.sure, meaning.owner)
        return instance(ATTRIBUTES.get(meaning.api), meaning.sure)


def last_line(node: ast.expr) -> int:
    """The line on which an expression ends: there stands the last name of a chain."""
    return node.end_lineno or node.lineno
