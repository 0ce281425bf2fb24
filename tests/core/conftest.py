"""A warm pair of workers for the whole session, in; a laboratory that runs programs in both, out."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_lab import Lab

from migrate_lens.trace.bench import Bench
from migrate_lens.trace.worker import Worker


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Real torch and real Paddle; every job runs in a fork of its own."""
    python = Path(sys.executable)
    folder = tmp_path_factory.mktemp("lab")
    with Worker(python, "torch") as torch, Worker(python, "paddle") as paddle:
        yield Lab(Bench(torch, paddle, folder), folder, itertools.count())
