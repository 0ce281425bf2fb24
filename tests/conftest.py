"""Folders written from a table, for all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[dict[str, str | bytes]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files below a fresh folder ``lib`` and give the folder."""

    def files(contents: dict[str, str | bytes]) -> Path:
        root = tmp_path / "lib"
        root.mkdir(exist_ok=True)
        for name, content in contents.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return files
