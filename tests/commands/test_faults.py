"""A sample of ``benchmarks/faults.py``: commands that are ended, limited or lied to lose nothing and leave nothing."""

from __future__ import annotations

import pytest

from benchmarks import faults


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_and_nothing_is_left(seed: int) -> None:
    done, wrong = faults.made(6, seed, 0.0)
    assert wrong == []
    assert sum(done.values()) == 6
