"""The whole seam between remedies and the two frameworks: a program's text in; how it ends on both sides out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from migrate_lens.model.report import Key
from migrate_lens.model.trace import Ending


@dataclass(frozen=True, slots=True)
class Side:
    """How a program ended in one runtime.

    Attributes:
        ending: its outcome.
        fate: ``SIGSEGV`` and the like, ``timeout``, ``exit status N``; empty where it left an outcome.
        seconds: wall time.
    """

    ending: Ending
    fate: str = ""
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether it ran to its end."""
        return not self.fate and self.ending.how == "finished"


@dataclass(frozen=True, slots=True)
class Trial:
    """One program on both sides; Paddle's side with global compat."""

    torch: Side
    paddle: Side


class Lab(Protocol):
    """Where programs are tried."""

    def torch(self, source: str) -> Side:
        """Run a program under torch."""

    def both(self, source: str) -> Trial:
        """Run a program on both sides, untouched."""

    def gaps(self, source: str) -> frozenset[Key]:
        """Diagnose a program; the key of each gap."""
