"""An interpreter that a test starts is watched as the test is."""

from __future__ import annotations

import sys

import marked

marked.watch(sys.exit)
