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
_RUN = 6  # tokens in a row that count as having come back to the same place


def match(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of positions with equal tokens, rising on both sides."""
    numbers: dict[Hashable, int] = {}
    ours = [numbers.setdefault(token, len(numbers)) for token in left]
    theirs = [numbers.setdefault(token, len(numbers)) for token in right]
    return list(_walk(ours, theirs))


def _walk(left: list[int], right: list[int]) -> Iterator[tuple[int, int]]:
    i = j = 0
    runs: dict[tuple[int, ...], list[int]] | None = None
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            yield i, j
            i, j = i + 1, j + 1
            continue
        last = i + _WINDOW >= len(left) and j + _WINDOW >= len(right)
        matches = _window(left[i : i + _WINDOW], right[j : j + _WINDOW], whole=last)
        settled = matches if last else _first_half(matches)
        if settled:
            yield from ((i + x, j + y) for x, y in settled)
            i, j = i + settled[-1][0] + 1, j + settled[-1][1] + 1
        elif last:
            return
        else:
            runs = _runs(right) if runs is None else runs
            i, j = _again(left, runs, i, j)


def _first_half(matches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The matches of a window that no longer turn out otherwise further on."""
    half = _WINDOW // 2
    return [(x, y) for x, y in matches if x < half and y < half]


def _window(left: list[int], right: list[int], *, whole: bool) -> list[tuple[int, int]]:
    """Matches along a shortest edit path from the start of both to the end of either, or with ``whole`` of both."""
    enough = all if whole else any
    ends = {1: 0}
    history = []
    for distance in range(len(left) + len(right) + 1):
        history.append(dict(ends))
        for k in range(-distance, distance + 1, 2):
            x = _snake(left, right, k, _start(ends, k, distance))
            ends[k] = x
            if enough((x >= len(left), x - k >= len(right))):
                return _back(history, k, x, len(left), len(right))
    return []


def _is_down(ends: dict[int, int], k: int, distance: int) -> bool:
    """Whether the furthest path on a diagonal comes from the one above it, by a token of the right side alone."""
    return k == -distance or (k != distance and ends.get(k - 1, -1) < ends.get(k + 1, -1))


def _start(ends: dict[int, int], k: int, distance: int) -> int:
    """Where the furthest path enters a diagonal."""
    return ends[k + 1] if _is_down(ends, k, distance) else ends[k - 1] + 1


def _snake(left: list[int], right: list[int], k: int, x: int) -> int:
    """How far equal tokens go on a diagonal."""
    while x < len(left) and x - k < len(right) and left[x] == right[x - k]:
        x += 1
    return x


def _back(history: list[dict[int, int]], k: int, x: int, width: int, height: int) -> list[tuple[int, int]]:
    """The matches of a path, walked back from its end."""
    matches: list[tuple[int, int]] = []
    for distance in range(len(history) - 1, -1, -1):
        before = history[distance]
        start = _start(before, k, distance)
        matches += [(at, at - k) for at in range(x - 1, start - 1, -1) if at < width and 0 <= at - k < height]
        if _is_down(before, k, distance):
            k, x = k + 1, start
        else:
            k, x = k - 1, start - 1
    return matches[::-1]


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
