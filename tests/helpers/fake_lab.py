"""Encoded values, endings and a laboratory without frameworks, out; what the tests of remedies share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrate_lens.model.trace import Failure, Finished, Raised
from migrate_lens.model.value import Encoded
from migrate_lens.remedies.lab import Side, Trial


def tensor(values: Any, dtype: str = "float32", *, grad: bool = False) -> Encoded:
    """An encoded tensor."""
    data = np.asarray(values, dtype)
    return ("T", dtype, data.shape, data.tobytes(), "cpu", grad)


def finished(value: Encoded = None) -> Side:
    return Side(Finished(value, True))


def raised(kind: str, message: str = "", where: str = "paddle/tensor/math.py:7 add", missing: str = "") -> Side:
    return Side(Raised(Failure((kind, "Exception"), message, where, missing=missing)))


@dataclass
class FakeLab:
    """A laboratory whose answers a test gives; it counts what it was asked."""

    answer: Callable[[str], Trial]
    named: frozenset[tuple[str, str]] = frozenset()
    asked: list[str] = field(default_factory=list)

    def torch(self, source: str) -> Side:
        return self.answer(source).torch

    def both(self, source: str) -> Trial:
        self.asked.append(source)
        return self.answer(source)

    def gaps(self, source: str) -> frozenset[tuple[str, str]]:
        return self.named
