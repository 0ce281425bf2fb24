"""How commands print: functions of the command line in, one place for every module that has commands out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Show = Callable[[str], None]
Say = Callable[[], Callable[[str], None]]


@dataclass
class Terminal:
    """What commands print with; ``cli`` sets it before it runs one.

    Attributes:
        show: prints on stdout.
        progress: gives the function that tells a waiting person what is being done.
    """

    show: Show = print
    progress: Say = lambda: lambda line: None


terminal = Terminal()
