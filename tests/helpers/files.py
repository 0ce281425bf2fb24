"""The type of the fixture that writes a table of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Write = Callable[[dict[str, str | bytes]], Path]
