"""The target: the framework that is to answer ``import torch``, as everything outside the worker knows it.

Another target is another folder in ``worker/backends/`` and another value here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """What a framework that answers ``import torch`` is called.

    Attributes:
        name: of the runtime, in options and in JSON.
        title: in prose.
        package: what its own modules are imported as.
    """

    name: str
    title: str
    package: str


TARGET = Target(name="paddle", title="Paddle", package="paddle")
