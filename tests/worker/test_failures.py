"""Exceptions that cannot be shown, in; facts about them all the same, out."""

from __future__ import annotations

import pytest

from migrate_lens.worker.observe.failures import failure_of


class RaisesError(ValueError):
    def __str__(self) -> str:
        raise KeyError("no text")


class RecursesError(ValueError):
    def __str__(self) -> str:
        return str(self)


class NoTextError(ValueError):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]


@pytest.mark.parametrize("kind", [RaisesError, RecursesError, NoTextError])
def test_an_exception_that_cannot_be_shown_is_described(kind: type[Exception]) -> None:
    failure = failure_of(kind())
    assert failure["types"][:2] == [kind.__name__, "ValueError"]
    assert failure["message"] == f"<exception {kind.__name__} cannot be shown>"
