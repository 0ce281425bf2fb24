"""A trial in; what makes its failure the same failure, however the program around it is cut down, out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrate_lens.model.trace import Raised
from migrate_lens.model.value import Encoded, difference, tag
from migrate_lens.remedies.lab import Trial

_LINE = re.compile(r":\d+(?= )")
_QUOTED = re.compile(r"[`']([A-Za-z_][\w.]*)['`]")
RAISES, DIES, HANGS, DIFFERS, ACCEPTS = "raises", "dies", "hangs", "differs", "accepts"


@dataclass(frozen=True, slots=True)
class Sign:
    """How Paddle fails where torch does not.

    Attributes:
        how: ``raises``, ``dies``, ``hangs``, ``differs``, or ``accepts`` where torch raises and Paddle does not.
        what: exception type, signal or aspect.
        where: for exceptions, the raising function of the framework, and the names that the message puts in quotes.
    """

    how: str
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
        return Sign(ACCEPTS, torch.ending.failure.type) if paddle.finished else None
    if torch.ending.how != "finished":
        return None
    if paddle.fate:
        return Sign(HANGS, "timeout") if paddle.fate == "timeout" else Sign(DIES, paddle.fate)
    if isinstance(paddle.ending, Raised):
        return raised(paddle.ending)
    if paddle.ending.how != "finished":
        return Sign(DIES, f"exit {paddle.ending.value}")
    found = _differs(torch.ending.value, paddle.ending.value, values)
    return Sign(DIFFERS, found) if found else None


def raised(ending: Raised) -> Sign:
    """The sign of an exception: its type, where the framework raised it, and the names that it quotes."""
    failure = ending.failure
    where = _LINE.sub("", failure.where)
    quoted = _QUOTED.findall(failure.message.splitlines()[0]) if failure.message else []
    return Sign(RAISES, failure.type, (where if "/" in where else "", failure.missing, *quoted[:2]))


def _differs(want: Encoded, got: Encoded, values: bool) -> str:
    """The aspect in which two results differ; an exact Python type counts, for a program that asks for it."""
    found = difference(want, got, values=values)
    if found is not None:
        return found.aspect
    if not tag(want) and type(want) is not type(got):
        return "type"
    return ""


# What a failure may show as, for each symptom: the call itself may fail in one way and its consequence in another.
_RAISING = frozenset((RAISES, DIES))
_BY_SYMPTOM = {
    "missing_api": _RAISING, "missing_argument": _RAISING, "import_error": _RAISING, "op_not_found": _RAISING,
    "crash": frozenset((DIES, HANGS, RAISES)), "timeout": frozenset((HANGS, DIES)),
    "exception": frozenset((RAISES, DIES, DIFFERS, ACCEPTS)),
}  # fmt: skip


def shows(found: Sign, symptom: str) -> bool:
    """Whether a failure may be what a gap of this symptom looks like."""
    return found.how in _BY_SYMPTOM.get(symptom, frozenset((DIFFERS, ACCEPTS, RAISES)))
