"""Ctrl-C, SIGTERM and SIGHUP in; one exception that lets everything clean up, and no second one meanwhile, out.

Schedulers and CI systems send SIGTERM, a closed terminal SIGHUP: all three end a command in the same way. While it
cleans up, or does what must not be done by halves, a further signal waits.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BASE = 128
_CLEANING = 10.0  # seconds for which further signals are taken for impatience


class _Heard:
    """What has come so far."""

    def __init__(self) -> None:
        self.number = signal.SIGINT
        self.at: float | None = None
        self.held = 0
        self.waiting = False

    def take(self, number: int, _: FrameType | None) -> None:
        """A signal has come."""
        now = time.monotonic()
        if self.at is not None and now - self.at < _CLEANING:
            return
        self.number = signal.Signals(number)
        if self.held:
            self.waiting = True
            return
        self.at = now
        raise KeyboardInterrupt


_heard = _Heard()


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Signals raise ``KeyboardInterrupt`` in this block, each but those that were ignored before, as under ``nohup``.

    Once one has come, the others are ignored for good: the process is about to end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _heard.at = None
    before = {number: signal.getsignal(number) for number in SIGNALS}
    mine = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in mine:
        signal.signal(number, _heard.take)
    try:
        yield
    finally:
        for number, handler in mine.items():
            signal.signal(number, signal.SIG_IGN if _heard.at is not None else handler)


@contextlib.contextmanager
def later() -> Iterator[None]:
    """What is done in this block is done whole: a signal that comes meanwhile is heard at its end."""
    _heard.held += 1
    try:
        yield
    finally:
        _heard.held -= 1
    if _heard.waiting and not _heard.held:
        _heard.waiting = False
        _heard.take(_heard.number, None)


def exit_code() -> int:
    """The exit code of a command that was ended by the signal that came last; 130 for Ctrl-C."""
    return _BASE + _heard.number
