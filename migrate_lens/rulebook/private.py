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
    for chain in _CHAIN.finditer(text):
        name = chain[0]
        if _HIDDEN.search(name) or _INTERNAL.match(name):
            return name
    native = _NATIVE.search(text)
    return native[0] if native else ""
