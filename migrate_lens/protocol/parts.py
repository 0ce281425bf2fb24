"""Parts of a program that are the same wherever they run (a test, a module, a fixture): how their calls are counted.

The visits of a place within a part are counted from the part's number, shifted: so a visit says which part it is of.
"""

from __future__ import annotations

import zlib
from typing import Final

PART_BITS: Final = 32
# Of a place that a part comes to more often, only these visits are recorded: a loop of millions has bounds too.
MOST_VISITS: Final = 20_000


def part_of(visit: int) -> int:
    """The number of the part that a visit is of; 0 for the program itself."""
    return visit >> PART_BITS


def number_of(name: str) -> int:
    """The number of a test, a fixture or a module: the same in each run, and never 0."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF or 1
