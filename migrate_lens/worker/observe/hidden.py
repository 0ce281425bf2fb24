"""Names of a program's layers that the framework's base class hides: a class and a name in, a way past it out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from migrate_lens.worker.backends.kinds import Kinds


def hides(backend: Kinds, kind: type, name: str) -> bool:
    """Whether what a program's layer holds under a name is not found, since a class of the framework's has one too."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return owner is not None and backend.own(owner)


@dataclass(slots=True, eq=False)
class Hidden:
    """In a program's class, stands for a name of the framework's that hides what the class's layers hold.

    The framework's own code finds the framework's under it, as before.

    Attributes:
        own: what the framework has under the name.
        entry: what a layer holds under it.
        tops: the framework's packages.
        asked: told once that the program asks for the name.
        bare: whether the program finds what the layer holds.
    """

    own: Any
    entry: Callable[[Any], Any]
    tops: frozenset[str]
    asked: Callable[[Any], None]
    bare: bool
    told: bool = False

    def __get__(self, layer: Any, kind: type) -> Any:
        own = self.own.__get__(layer, kind) if hasattr(self.own, "__get__") else self.own
        held = None if layer is None else self.entry(layer)
        caller = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0]
        if held is None or caller in self.tops:
            return own
        if not self.told:
            self.told = True
            self.asked(own)
        return held if self.bare else own
