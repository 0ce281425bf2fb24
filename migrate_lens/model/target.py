"""The target: the framework that is to answer ``import torch``, as everything outside the worker knows it.

Another target is another folder in ``worker/backends/`` and another value here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """What a framework that answers ``import torch`` is called.

    Attributes:
        name: of the runtime, in options, in JSON keys and in labels.
        title: in prose.
        package: what its own modules are imported as.
        switch: the function that lets its compat layer answer, below ``package``.
        namespaces: of its own types in C++.
        public: its public modules and classes in which it may have what torch has under another name, nearest first.
        private: where it has what it does not offer to users.
    """

    name: str
    title: str
    package: str
    switch: str
    namespaces: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    @property
    def compat(self) -> str:
        """Its compat layer, in prose."""
        return f"{self.title}'s compat layer"

    def scoped(self, packages: Iterable[str]) -> str:
        """The line of Python that lets it answer in some packages."""
        names = ", ".join(f'"{package}"' for package in packages)
        return f"{self.package}.{self.switch}(scope={{{names}}})"


TARGET = Target(
    name="paddle",
    title="Paddle",
    package="paddle",
    switch="enable_compat",
    namespaces=("paddle", "phi"),
    public=(
        "paddle",
        "paddle.Tensor",
        "paddle.nn",
        "paddle.nn.functional",
        "paddle.linalg",
        "paddle.special",
        "paddle.fft",
        "paddle.utils",
        "paddle.autograd",
        "paddle.incubate",
    ),
    private=("paddle._C_ops", "paddle.base.core", "paddle.framework.core"),
)
