"""Who hears what is being done while somebody waits."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
