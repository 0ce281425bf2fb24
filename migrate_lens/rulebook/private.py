"""A text in; the first name in it that Paddle keeps to itself, out."""

from __future__ import annotations

import re

# Modules of Paddle without an underscore that are its own all the same.
_INTERNAL = re.compile(r"paddle\.(base|fluid|framework\.core|pir\.core)\b")
_NATIVE = re.compile(r"\b(_PD_\w+|phi::detail::\w+|egr::\w+)")
_CHAIN = re.compile(r"\bpaddle(?:\.\w+)+")
_HIDDEN = re.compile(r"\._(?!_)\w+")


def private_name(text: str) -> str:
    """The first name in a text that is private to Paddle; empty where there is none."""
    for found in _CHAIN.finditer(text):
        if _HIDDEN.search(found[0]) or _INTERNAL.match(found[0]):
            return found[0]
    native = _NATIVE.search(text)
    return native[0] if native else ""
