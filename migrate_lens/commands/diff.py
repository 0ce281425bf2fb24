"""Two trace files in; what differs between them out."""

from __future__ import annotations

from pathlib import Path

from migrate_lens.commands.trace import opened
from migrate_lens.compare.comparison import Comparison, compare


def diff(left: Path, right: Path) -> Comparison:
    """Hold the second trace against the first.

    Raises:
        UsageError: one of them is no trace.
    """
    return compare(opened(left), opened(right))
