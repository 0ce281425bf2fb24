"""A framework as a process has it: what is imported, how ``import torch`` is answered, and its side of the seam.

A target framework is a folder beside this file, whose package has a ``FRAMEWORK``, and an entry in
``migrate_lens.worker.backends``.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from migrate_lens.worker.backends.building import Building, Healing, Leaves
from migrate_lens.worker.backends.writes import Writes

Note = Callable[[str, Any], None]
NoteItem = Callable[[int, Any], None]


class NoCompatError(LookupError):
    """The framework that is installed does not answer ``import torch``."""


class About(NamedTuple):
    """What a framework says of itself: version, commit (empty where it is not known), and the device it computes on."""

    version: str
    commit: str
    device: str


class Zoom(Protocol):
    """Low-level operators below calls."""

    def open(self) -> AbstractContextManager[None]:
        """Note what runs inside."""

    def counted(self) -> dict[str, int]:
        """How often each kernel has run so far by the framework's own count; empty where it does not count."""


class Backend(Writes, Building, Leaves):
    """A framework's whole side of the seam: each part of the worker asks one of these three."""


class TargetBackend(Backend, Healing):
    """The same of a framework that answers for torch, to which torch's values are handed."""


class Framework(ABC):
    """One framework in this process.

    Attributes:
        name: as ``backends.load`` knows it.
        baseline: whether it is torch itself, whose inputs are recorded.
    """

    name: str
    baseline: bool = False

    @abstractmethod
    def start(self, *, keep_torch: bool) -> About:
        """Import the framework, once, before anything else is asked of it.

        Args:
            keep_torch: leave real torch visible beside it.

        Raises:
            NoCompatError: it does not answer ``import torch``.
            Exception: whatever importing it raises.
        """

    @abstractmethod
    def make_backend(self) -> Backend:
        """Its side of the seam; it is imported."""

    @abstractmethod
    def seed(self, number: int) -> None:
        """Seed its generators."""

    @abstractmethod
    def zoom(self, note: Note) -> Zoom:
        """What sees the operators below calls; ``note`` is told each one's name and its result."""

    def answer_torch(self, scope: Sequence[str] | None) -> None:
        """Answer ``import torch`` from now on: of the modules of a scope, or of all where it is None."""
        return

    def admit(self, module: types.ModuleType) -> None:
        """Put a script into the scope, as the framework does with a module of the scope that it imports."""
        return

    def watch_loaders(self, note: NoteItem) -> None:
        """Note every item that a data loader hands out, with the number of the iteration, from 1."""
        return
