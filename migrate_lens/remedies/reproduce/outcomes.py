"""A trial in; what makes its failure the same failure, however the program around it is cut down, out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate_lens.model.report import Gap, Symptom
from migrate_lens.model.trace import Raised
from migrate_lens.model.value import (
    LIST,
    TENSOR,
    Encoded,
    ListValue,
    NamedTupleValue,
    TensorValue,
    TupleValue,
    difference,
    tag,
    tensors,
    typed,
)
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
    aspect = differs(torch.ending.value, paddle.ending.value, values)
    return Sign(How.DIFFERS, aspect) if aspect else None


def raised(ending: Raised) -> Sign:
    """The sign of an exception: its type, where the framework raised it, and the names that it quotes."""
    failure = ending.failure
    where = _LINE.sub("", failure.where)
    first_line = next(iter(failure.message.splitlines()), "")
    quoted = _QUOTED.findall(first_line)[:_NAMED]
    return Sign(How.RAISES, failure.type, (where if "/" in where else "", failure.missing, *quoted))


def differs(want: Encoded, got: Encoded, values: bool) -> str:
    """The aspect in which two results differ; an exact Python type counts, for a program that asks for it."""
    found = difference(want, got, values=values)
    if found is not None:
        return found.aspect
    if not tag(want) and type(want) is not type(got):
        return "type"
    return ""


# What a failure may show as, for each symptom that is no aspect of a result.
_RAISING = frozenset((How.RAISES, How.DIES))
_BY_SYMPTOM = {
    Symptom.MISSING_API: _RAISING,
    Symptom.MISSING_ARGUMENT: _RAISING,
    Symptom.IMPORT_ERROR: _RAISING,
    Symptom.OP_NOT_FOUND: _RAISING,
    Symptom.CRASH: frozenset((How.DIES, How.HANGS, How.RAISES)),
    Symptom.TIMEOUT: frozenset((How.HANGS, How.DIES)),
}
# In what two tensors differ, where the symptom is an aspect of them; all others may show in any.
_FLAG = "gradient"  # whether a tensor requires one; its values are those of another tensor
_ASPECTS = {
    Symptom.SHAPE: frozenset(("shape",)),
    Symptom.DTYPE: frozenset(("dtype",)),
    Symptom.DEVICE: frozenset(("device",)),
    Symptom.VALUE: frozenset(("value", "type", "state")),
}
_OF_A_GRADIENT = frozenset(("value", "shape", "dtype", "type"))
_RAISES = "raises "


_OF_ANOTHER = frozenset((How.DIFFERS, How.ACCEPTS, How.RAISES))
_MAY_RAISE_OR_DIFFER = frozenset((How.RAISES, How.DIES, How.DIFFERS, How.ACCEPTS))


def resembles(failure: Sign, symptom: Symptom) -> bool:
    """Whether a failure may come of a gap of this symptom: the call may fail in one way, what follows in another."""
    if symptom is Symptom.EXCEPTION:
        return failure.how in _MAY_RAISE_OR_DIFFER
    return failure.how in _BY_SYMPTOM.get(symptom, _OF_ANOTHER)


def shows(failure: Sign, gap: Gap, result: Encoded) -> bool:
    """Whether a failure is what a gap looks like: its symptom, and the aspect in which it shows.

    Args:
        failure: how a program fails.
        gap: what it is to show.
        result: what the program gives under torch.
    """
    if gap.symptom in _BY_SYMPTOM:
        return failure.how in _BY_SYMPTOM[gap.symptom]
    if gap.symptom is Symptom.EXCEPTION:
        return _shows_exception(failure, gap)
    if failure.how is not How.DIFFERS:
        return False
    if gap.symptom is Symptom.GRADIENT:
        return failure.what == _FLAG if "requires_grad" in gap.expected else failure.what in _OF_A_GRADIENT
    aspects = _ASPECTS.get(gap.symptom)
    return aspects is None or failure.what in aspects or not tensors(result)


def _shows_exception(failure: Sign, gap: Gap) -> bool:
    if gap.expected.startswith(_RAISES):
        return failure.how is How.ACCEPTS and failure.what in gap.expected
    if gap.exception:
        return failure.how is How.RAISES and failure.what.rpartition(".")[2] == gap.exception.rpartition(".")[2]
    return True


Form = tuple[object, ...]


def form(result: Encoded) -> Form:
    """What tells the result of one overload from that of another: the kind of thing that it is, and its dimensions."""
    if tag(result) == TENSOR:
        return (TENSOR, len(TensorValue._make(result).shape))
    items = _items(result)
    if items is not None:
        return (tag(result), *(form(item) for item in items[:1]))
    return (tag(result) or type(result).__name__,)


def forms(results: Encoded) -> frozenset[Form]:
    """The forms of the results that a program gives, which are in a list."""
    items = _items(results) if tag(results) == LIST else None
    return frozenset(map(form, [results] if items is None else items))


def _items(result: Encoded) -> Sequence[Encoded] | None:
    match typed(result):
        case ListValue() | TupleValue() | NamedTupleValue() as sequence:
            return sequence.items
        case _:
            return None
