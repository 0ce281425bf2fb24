"""Sequence alignment: two sequences of tokens in, pairs of positions out, in time near-linear in their length.

The greedy algorithm of E. W. Myers ("An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986) runs in
a window that moves along both sequences; of each window only the first half is settled, since the best path near a
window's end may turn out otherwise further on. A block that is longer than a window is passed by looking for the next
run of tokens that both sides have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

_WINDOW = 256
_RUN = 6  # tokens in a row that count as having found the place again


def match(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of positions with equal tokens, rising on both sides."""
    numbers: dict[Hashable, int] = {}
    one = [numbers.setdefault(token, len(numbers)) for token in left]
    other = [numbers.setdefault(token, len(numbers)) for token in right]
    return list(_walk(one, other))


def _walk(left: list[int], right: list[int]) -> Iterator[tuple[int, int]]:
    i = j = 0
    runs: dict[tuple[int, ...], list[int]] | None = None
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            yield i, j
            i, j = i + 1, j + 1
            continue
        last = i + _WINDOW >= len(left) and j + _WINDOW >= len(right)
        found = _window(left[i : i + _WINDOW], right[j : j + _WINDOW], whole=last)
        settled = found if last else [(x, y) for x, y in found if x < _WINDOW // 2 and y < _WINDOW // 2]
        if settled:
            yield from ((i + x, j + y) for x, y in settled)
            i, j = i + settled[-1][0] + 1, j + settled[-1][1] + 1
        elif last:
            return
        else:
            runs = _runs(right) if runs is None else runs
            i, j = _again(left, runs, i, j)


def _window(left: list[int], right: list[int], *, whole: bool) -> list[tuple[int, int]]:
    """Matches along a shortest edit path from the start of both to the end of either, or with ``whole`` of both."""
    ends = {1: 0}
    history = []
    for distance in range(len(left) + len(right) + 1):
        history.append(dict(ends))
        for k in range(-distance, distance + 1, 2):
            down = k == -distance or (k != distance and ends.get(k - 1, -1) < ends.get(k + 1, -1))
            x = ends[k + 1] if down else ends[k - 1] + 1
            y = x - k
            while x < len(left) and y < len(right) and left[x] == right[y]:
                x, y = x + 1, y + 1
            ends[k] = x
            if (x >= len(left) and y >= len(right)) if whole else (x >= len(left) or y >= len(right)):
                return _back(history, k, x, len(left), len(right))
    return []


def _back(history: list[dict[int, int]], k: int, x: int, width: int, height: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for distance in range(len(history) - 1, -1, -1):
        before = history[distance]
        down = k == -distance or (k != distance and before.get(k - 1, -1) < before.get(k + 1, -1))
        start = before[k + 1] if down else before[k - 1] + 1
        found += [(at, at - k) for at in range(x - 1, start - 1, -1) if at < width and 0 <= at - k < height]
        k = k + 1 if down else k - 1
        x = start if down else start - 1
    return found[::-1]


def _runs(tokens: list[int]) -> dict[tuple[int, ...], list[int]]:
    """Where each run of tokens begins."""
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for at in range(len(tokens) - _RUN + 1):
        places[tuple(tokens[at : at + _RUN])].append(at)
    return places


def _again(left: list[int], runs: dict[tuple[int, ...], list[int]], i: int, j: int) -> tuple[int, int]:
    """The nearest positions after these from which a run of tokens is the same on both sides; the ends if none is."""
    best = None
    for x in range(i, len(left) - _RUN + 1):
        if best is not None and x - i >= sum(best) - i - j:
            break
        later = _from(runs.get(tuple(left[x : x + _RUN]), ()), j)
        if later is not None and (best is None or x + later < sum(best)):
            best = (x, later)
    return best or (len(left), j)


def _from(places: Sequence[int], j: int) -> int | None:
    """The first place at or after a position."""
    at = bisect_left(places, j)
    return places[at] if at < len(places) else None
