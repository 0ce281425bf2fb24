"""Recorded calls, in; the words in which every document about traces shows them, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePath

from migrate_lens import media
from migrate_lens.model.trace import Event, Op, Trace
from migrate_lens.model.value import TENSOR, TensorValue, describe, tag
from migrate_lens.reports.scripted import Json
from migrate_lens.runs.replay import odd_one

MAX_MESSAGE = 100


class Numbers:
    """The number of each call of a trace, from 1."""

    def __init__(self, trace: Trace) -> None:
        self._by_identity = {id(event): number for number, event in enumerate(trace.events, 1)}

    def of(self, event: Event) -> int:
        """The number of one of the trace's own events."""
        return self._by_identity[id(event)]


def where(event: Event) -> str:
    """``model.py:7``."""
    return media.line(f"{PurePath(event.place.path).name}:{event.place.line}")


def called(number: int, event: Event) -> str:
    """A call by number, place and source."""
    return f"call {number} at {where(event)}: {media.line(event.place.text)}"


def came(event: Event) -> str:
    """What came of a call."""
    if event.failure is not None:
        message = next(iter(event.failure.message.splitlines()), "")
        return media.line(f"raises {event.failure.type}: {message}")[:MAX_MESSAGE]
    return media.line(describe(event.value))


def operators(below: Sequence[Op]) -> Iterator[str]:
    """Low-level operators, a line each."""
    for operator in below:
        yield f"{media.line(operator.name)} -> {media.line(describe(operator.value))}"


def side_by_side(left: Sequence[Op], right: Sequence[Op]) -> Iterator[str]:
    """Low-level operators of two sides in columns; the first result of the left that the right never has is marked."""
    if not left and not right:
        return
    odd = odd_one(left, right) if right else None
    ours = []
    for operator, line in zip(left, operators(left), strict=True):
        mark = " <- not on the other side" if operator is odd else ""
        ours.append(line + mark)
    width = max(map(len, ours), default=0)
    for our_line, their_line in zip_longest(ours, operators(right), fillvalue=""):
        yield f"| {our_line:<{width}} | {their_line}"


# -- as JSON -----------------------------------------------------------------------------------------------------------


def document(number: int, event: Event) -> Json:
    """A call, as every JSON document about traces has it; values are described, not written out."""
    fields: Json = {
        "call": number,
        "api": event.api,
        "what": event.what,
        "path": event.place.path,
        "line": event.place.line,
        "visit": event.visit,
        "text": event.place.text,
    }
    if event.returned and tag(event.value) == TENSOR:
        tensor = TensorValue._make(event.value)
        fields |= {"dtype": tensor.dtype, "shape": list(tensor.shape)}
    fields |= {
        "result": _result(event),
        "handed": event.healed,
        "ops": operator_pairs(event.ops),
    }
    return fields


def _result(event: Event) -> str | None:
    """The result, described, or the type of what was raised; None of a call that was handed one."""
    if event.returned:
        return describe(event.value)
    return event.failure.type if event.failure is not None else None


def operator_pairs(below: Sequence[Op]) -> list[list[str]]:
    """Low-level operators: name and result."""
    return [[operator.name, describe(operator.value)] for operator in below]
