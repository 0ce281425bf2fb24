"""A call as a person names it, in; which of a program's calls it is, out; shared by both ends of the wire.

============================  ============================================================================
``12`` or ``#12``             the twelfth call; a call within another's hook counts after it here, before it in lists
``torch.relu``                the first call of that name
``model.py:7``                the first call on that line of a file
``torch.relu#3``              the third such call; the same for ``model.py:7#3``
============================  ============================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"#?(\d+)$")
_NTH = re.compile(r"(?P<what>.+?)(?:#(?P<nth>\d+))?$")
_LINE = re.compile(r"(?P<file>.+):(?P<line>\d+)$")


@dataclass(frozen=True, slots=True)
class Selector:
    """One call of a program.

    Attributes:
        text: as it was written.
        nth: the how-many-th match it is, from 1.
        api: the documented name, ``""`` where any will do.
        file: the end of the file's path, ``""`` where any will do.
        line: the line in it, 0 where any will do.
    """

    text: str
    nth: int
    api: str = ""
    file: str = ""
    line: int = 0

    def fits(self, api: str, path: str, line: int) -> bool:
        """Whether a call is one of those that are counted."""
        if self.file:
            there = path == self.file or path.endswith("/" + self.file)
            return there and line == self.line
        return not self.api or api == self.api


def parse(text: str) -> Selector:
    """Read a selector.

    Raises:
        ValueError: it is none.
    """
    text = text.strip()
    number = _NUMBER.match(text)
    if number:
        nth, what = int(number[1]), ""
    else:
        named = _NTH.match(text)
        if named is None:
            raise ValueError(f"{text!r} names no call")
        nth, what = int(named["nth"] or 1), named["what"]
    if nth < 1:
        raise ValueError(f"{text!r}: calls are counted from 1")
    place = _LINE.match(what)
    if place:
        return Selector(text, nth, file=place["file"], line=int(place["line"]))
    if what and not re.fullmatch(r"[\w.:]+", what):
        raise ValueError(f"{text!r} names no call")
    return Selector(text, nth, api=what)


class Counter:
    """Tells when a selector's call comes by."""

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self._left = selector.nth

    @property
    def waiting(self) -> bool:
        """Whether the call has not come yet."""
        return self._left > 0

    def comes(self, api: str, path: str, line: int) -> bool:
        """Count a call; whether it is the one."""
        if not self.selector.fits(api, path, line):
            return False
        self._left -= 1
        return self._left == 0
