"""A trial in; what makes its failure the same failure, however the program around it is cut down, out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from migrate_lens.model.report import Symptom
from migrate_lens.model.trace import Raised
from migrate_lens.model.value import Encoded, difference, tag
from migrate_lens.remedies.lab import Trial

_LINE = re.compile(r":\d+(?= )")
_NAMED = 2  # names of a message that tell it from another
_QUOTED = re.compile(r"[`']([A-Za-z_][\w.]*)['`]")


class How(StrEnum):
    """How Paddle fails where torch does not; ``accepts``: torch raises, and Paddle does not."""

    RAISES = "raises"
    DIES = "dies"
    HANGS = "hangs"
    DIFFERS = "differs"
    ACCEPTS = "accepts"


@dataclass(frozen=True, slots=True)
class Sign:
    """How Paddle fails where torch does not.

    Attributes:
        how: the kind of failure.
        what: exception type, signal or aspect.
        where: for exceptions, the raising function of the framework, and the names that the message puts in quotes.
    """

    how: How
    what: str
    where: tuple[str, ...] = ()


def sign(trial: Trial, *, values: bool = True) -> Sign | None:
    """The failure of a trial; None where there is none, or where torch itself fails.

    Args:
        trial: a program on both sides.
        values: False where torch's own result depends on the random generator.
    """
    torch, paddle = trial.torch, trial.paddle
    if torch.fate:
        return None
    if isinstance(torch.ending, Raised):
        return Sign(How.ACCEPTS, torch.ending.failure.type) if paddle.finished else None
    if torch.ending.how != "finished":
        return None
    if paddle.fate == "timeout":
        return Sign(How.HANGS, "timeout")
    if paddle.fate:
        return Sign(How.DIES, paddle.fate)
    if isinstance(paddle.ending, Raised):
        return raised(paddle.ending)
    if paddle.ending.how != "finished":
        return Sign(How.DIES, f"exit {paddle.ending.value}")
    aspect = _differs(torch.ending.value, paddle.ending.value, values)
    return Sign(How.DIFFERS, aspect) if aspect else None


def raised(ending: Raised) -> Sign:
    """The sign of an exception: its type, where the framework raised it, and the names that it quotes."""
    failure = ending.failure
    where = _LINE.sub("", failure.where)
    first_line = next(iter(failure.message.splitlines()), "")
    quoted = _QUOTED.findall(first_line)[:_NAMED]
    return Sign(How.RAISES, failure.type, (where if "/" in where else "", failure.missing, *quoted))


def _differs(want: Encoded, got: Encoded, values: bool) -> str:
    """The aspect in which two results differ; an exact Python type counts, for a program that asks for it."""
    differs = difference(want, got, values=values)
    if differs is not None:
        return differs.aspect
    if not tag(want) and type(want) is not type(got):
        return "type"
    return ""


# What a failure may show as, for each symptom: the call itself may fail in one way and its consequence in another.
_RAISING = frozenset((How.RAISES, How.DIES))
_BY_SYMPTOM = {
    Symptom.MISSING_API: _RAISING,
    Symptom.MISSING_ARGUMENT: _RAISING,
    Symptom.IMPORT_ERROR: _RAISING,
    Symptom.OP_NOT_FOUND: _RAISING,
    Symptom.CRASH: frozenset((How.DIES, How.HANGS, How.RAISES)),
    Symptom.TIMEOUT: frozenset((How.HANGS, How.DIES)),
    Symptom.EXCEPTION: frozenset((How.RAISES, How.DIES, How.DIFFERS, How.ACCEPTS)),
}
_OF_ANOTHER = frozenset((How.DIFFERS, How.ACCEPTS, How.RAISES))


def shows(failure: Sign, symptom: Symptom) -> bool:
    """Whether a failure may be what a gap of this symptom looks like."""
    return failure.how in _BY_SYMPTOM.get(symptom, _OF_ANOTHER)
