"""An interpreter that a test starts is watched as the test is."""

from __future__ import annotations

import marked

marked.watch()
