"""Kinds of observed places, as they travel: one letter each."""

from __future__ import annotations

from typing import Final

CALL: Final = "c"
METHOD: Final = "m"
ATTRIBUTE: Final = "a"
OPERATOR: Final = "o"
INPLACE: Final = "i"
SET_ITEM: Final = "s"
SET_ATTRIBUTE: Final = "t"
DECORATOR: Final = "d"
FROM_IMPORT: Final = "f"
IMPORT: Final = "p"
