"""Alignment of sequences: against the definition for short ones, against planted edits for long ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.compare import sequence
from migrate_lens.compare.sequence import match

TOKENS = st.lists(st.integers(0, 3), max_size=14)


def longest(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common subsequence, by its definition."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def is_alignment(pairs: Sequence[tuple[int, int]], left: Sequence[object], right: Sequence[object]) -> bool:
    rising = all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))
    return rising and all(left[i] == right[j] for i, j in pairs)


@given(TOKENS, TOKENS)
def test_short_sequences_are_aligned_as_well_as_can_be(left: list[int], right: list[int]) -> None:
    pairs = match(left, right)
    assert is_alignment(pairs, left, right)
    assert len(pairs) == longest(left, right)


def edited(count: int, seed: int) -> tuple[list[str], list[str], set[tuple[int, int]]]:
    """A program's calls with loops in it, the same with 1 % of insertions and deletions, and the true pairs."""
    rng = random.Random(seed)
    left = [f"op{i % 50}" if rng.random() < 0.9 else f"rare{rng.randrange(200)}" for i in range(count)]
    right: list[str] = []
    true = set()
    for position, token in enumerate(left):
        chance = rng.random()
        if chance < 0.005:
            continue
        if chance < 0.01:
            right.append(f"op{rng.randrange(50)}")
        true.add((position, len(right)))
        right.append(token)
    return left, right, true


@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_thousand_calls_with_one_per_cent_of_edits_are_aligned_right(seed: int) -> None:
    left, right, true = edited(100_000, seed)
    pairs = match(left, right)
    assert is_alignment(pairs, left, right)
    assert len(pairs) >= len(true)  # where an inserted call equals its neighbour, either may be the old one
    assert len(true - set(pairs)) <= 20


def test_work_is_near_linear_in_the_number_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    plain = sequence._window

    def counted(left: list[int], right: list[int], *, whole: bool) -> list[tuple[int, int]]:
        widths.append(len(left) * len(right))
        return plain(left, right, whole=whole)

    monkeypatch.setattr(sequence, "_window", counted)

    def work(count: int) -> int:
        widths.clear()
        match(*edited(count, 7)[:2])
        return sum(widths)

    assert work(200_000) < 6 * work(50_000)  # four times the calls; quadratic work would be sixteen times as much


def test_a_block_longer_than_any_window_is_passed() -> None:
    old = [f"a{i % 7}/{i // 100}" for i in range(20_000)]
    new = old[:5000] + [f"new{i}" for i in range(6000)] + old[5000:9000] + old[15_000:]
    pairs = match(old, new)
    assert is_alignment(pairs, old, new)
    assert len(pairs) == 14_000


def test_sequences_with_nothing_in_common_have_no_pairs() -> None:
    assert match(["a"] * 20_000, ["b"] * 20_000) == []
