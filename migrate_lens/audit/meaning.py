"""What an expression of a Python file stands for, as far as torch is concerned: the closed union that a reader uses.

``None`` is everything that is of no interest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from migrate_lens.audit.knowledge import TENSOR, Held
from migrate_lens.model.uses import Certainty

LAYER = re.compile(r"torch\.nn\.(?:\w+\.)*[A-Z]\w*")


class ClassKind(StrEnum):
    """What a class of the file is to torch."""

    PLAIN = ""
    MODULE = "module"  # a layer
    FUNCTION = "function"  # a torch.autograd.Function


@dataclass(frozen=True, slots=True)
class TorchName:
    """A name of torch's itself: ``torch.nn``."""

    name: str

    @property
    def is_member(self) -> bool:
        """Whether it is more than ``torch`` alone, which every file has."""
        return "." in self.name


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of one of torch's classes."""

    of: str
    sure: Certainty


@dataclass(frozen=True, slots=True)
class Several:
    """A sequence of instances of one of torch's classes."""

    of: str
    sure: Certainty


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an instance, which is not called or read yet."""

    owner: str
    name: str
    sure: Certainty

    @property
    def api(self) -> str:
        """The member as torch documents it."""
        return f"{self.owner}.{self.name}"


@dataclass(frozen=True, slots=True)
class OwnClass:
    """A class of this file."""

    kind: ClassKind


@dataclass(frozen=True, slots=True)
class Around:
    """The instance of the class around: ``self``."""


@dataclass(frozen=True, slots=True)
class NativeName:
    """A name of the library's own compiled module, with that module in front."""

    path: str


Meaning = TorchName | Instance | Several | Member | OwnClass | Around | NativeName | None


def instance(held: Held | None, sure: Certainty) -> Meaning:
    """What a call or an attribute gives, by what torch's own types say."""
    if held is None:
        return None
    return Several(held.of, sure) if held.several else Instance(held.of, sure)


def element(meaning: Meaning) -> Meaning:
    """What iterating gives: instances of a sequence of them."""
    return Instance(meaning.of, meaning.sure) if isinstance(meaning, Several) else None


def tensor(meaning: Meaning) -> Meaning:
    """The meaning itself where it is a tensor."""
    return meaning if isinstance(meaning, Instance) and meaning.of == TENSOR else None
