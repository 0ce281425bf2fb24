"""What holds of the house as a whole, read off its own sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import migrate_lens

PACKAGE = Path(migrate_lens.__file__).parent
WORD = re.compile("paddle", re.IGNORECASE)


@pytest.mark.parametrize("package", ["compare", "classify", "diagnosis", "reports"])
def test_only_data_names_the_target(package: str) -> None:
    """Another target is another folder in ``worker/backends/`` and another value in ``model/target.py``."""
    named = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if WORD.search(line)
    ]
    assert named == []
