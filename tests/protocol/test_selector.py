"""Calls by number, name and place."""

from __future__ import annotations

import pytest

from migrate_lens.protocol.selector import Counter, parse

CALLS = [
    ("torch.ones", "/lib/model.py", 3),
    ("torch.relu", "/lib/model.py", 7),
    ("torch.relu", "/lib/other.py", 7),
    ("torch.relu", "/lib/model.py", 7),
]


def found(text: str) -> list[int]:
    counter = Counter(parse(text))
    return [number for number, call in enumerate(CALLS, 1) if counter.comes(*call)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2", [2]), ("#3", [3]), ("torch.relu", [2]), ("torch.relu#3", [4]), ("model.py:7", [2]),
        ("model.py:7#2", [4]), ("lib/other.py:7", [3]), ("9", []), ("torch.exp", []), ("odel.py:7", []),
    ],
)  # fmt: skip
def test_a_selector_names_one_call(text: str, numbers: list[int]) -> None:
    assert found(text) == numbers


@pytest.mark.parametrize("text", ["", "0", "torch.relu#0", "a b", "torch.relu()"])
def test_what_names_no_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no call|counted from 1"):
        parse(text)
