"""The log of marked C++ calls goes in; what each observed call's kernel did comes out.

The records are what ``kernel_trace.h`` writes, with a line of the worker's in front of each observed call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from migrate_lens.model.value import LIST, SAMPLE, TENSOR, TUPLE, Encoded

Json = None | bool | int | float | str | list["Json"]
Strides = tuple[int, ...]
_OBSERVED = "@"


class ObservedCall(NamedTuple):
    """An observed call of the program's: its node, which visit of it, and which part of that."""

    node: int
    visit: int
    part: str


Call = tuple[int, int, str]  # what an observed call is looked up by


class Sign(StrEnum):
    """What a line says: a call begins, it returned, or a function was entered."""

    BEGINS = ">"
    RETURNED = "<"
    ENTERED = "="


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log.

    Attributes:
        sign: what it says.
        mark: the number of the marked place.
        receiver: the type of what a method is called on.
        values: what was given, or the one value that was returned.
        layouts: the strides of each tensor among them.
    """

    sign: Sign
    mark: int
    receiver: str
    values: tuple[Encoded, ...]
    layouts: tuple[Strides, ...] = ()


class _Tensor(NamedTuple):
    """A tensor as the header writes it."""

    tag: str
    dtype: str
    shape: list[int]
    data: Json
    device: str
    strides: list[int]


def read_log(path: Path) -> dict[Call, tuple[Record, ...]]:
    """The records of each observed call; what was said outside of any is left out."""
    calls: dict[Call, list[Record]] = {}
    current: list[Record] = []
    for row in _rows(path):
        if row[0] != _OBSERVED:
            current.append(_record(row))
            continue
        call = ObservedCall(*row[1:4])
        current = calls.setdefault(call, []) if call.node else []
    return {call: tuple(records) for call, records in calls.items()}


def _rows(path: Path) -> Iterator[list[Encoded]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:  # the process died while it wrote
            continue


def _record(row: list[Encoded]) -> Record:
    sign = Sign(row[0])
    match sign:
        case Sign.BEGINS:
            _, mark, receiver, raw = row
        case Sign.RETURNED:
            _, mark, result = row
            receiver, raw = "", [result]
        case Sign.ENTERED:
            _, mark, raw = row
            receiver = ""
    return Record(sign, mark, receiver, tuple(_decoded(value) for value in raw), tuple(_layouts(raw)))


def _decoded(raw: Json) -> Encoded:
    if not isinstance(raw, list):
        return raw
    if raw[0] == TENSOR:
        tensor = _Tensor._make(raw)
        data = _data(tensor.data, tensor.dtype)
        return (TENSOR, tensor.dtype, tuple(tensor.shape), data, tensor.device, False)
    if raw[0] in (LIST, TUPLE):
        tag, items = raw
        return (tag, [_decoded(item) for item in _items(items)])
    return tuple(raw)


def _items(raw: Json) -> list[Json]:
    return raw if isinstance(raw, list) else []


def _data(raw: Json, dtype: str) -> Encoded:
    """The bytes of a tensor from their hexadecimal digits; of a sample, with its stride."""
    if isinstance(raw, list):
        _, stride, text = raw
        return (SAMPLE, stride, _bytes(str(text), dtype))
    return None if raw is None else _bytes(str(raw), dtype)


def _bytes(text: str, dtype: str) -> bytes:
    data = bytes.fromhex(text)
    if dtype == "bfloat16":  # travels as float32
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).tobytes()
    return data


def _layouts(raw: Json) -> Iterator[Strides]:
    """The strides that mean something, of each tensor."""
    if not isinstance(raw, list):
        return
    if raw and raw[0] == TENSOR:
        tensor = _Tensor._make(raw)
        extents = zip(tensor.strides, tensor.shape, strict=False)
        yield tuple(stride for stride, extent in extents if extent > 1)
        return
    for item in raw:
        yield from _layouts(item)
