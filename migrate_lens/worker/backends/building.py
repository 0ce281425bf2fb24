"""Recorded values as live objects of one framework: encoded values in, tensors, gradients' leaves and layers out.

``Building`` is what a call needs that is made again, ``Leaves`` what a backward pass needs that the program does not
make itself, and ``Healing`` what the healer asks beyond that to hand torch's results to a program.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from migrate_lens.model.value import RAW, ArrayValue, Data, Encoded
from migrate_lens.worker.backends.encoding import Encoding


class Building(Encoding):
    """Makes and fills tensors."""

    @abstractmethod
    def build_tensor(self, encoded: Encoded) -> Any:
        """A new tensor with a recorded shape, dtype and values; zeros where the values were not kept."""

    @abstractmethod
    def fill(self, tensor: Any, dtype: str, shape: tuple[int, ...], data: Data) -> bool:
        """Write recorded values into a tensor of the same shape and dtype, in place, outside the graph.

        Returns:
            Whether it could be done.
        """

    @abstractmethod
    def dtype_of(self, name: str) -> Any:
        """The framework's own dtype.

        Raises:
            AttributeError: it has none of that name.
        """


class Leaves(Encoding):
    """Makes tensors whose gradients can be read."""

    def is_leaf(self, value: Any) -> bool:
        """Whether a tensor requires a gradient of its own."""
        return self.differentiable(value) and bool(value.is_leaf)

    @abstractmethod
    def can_differentiate(self, value: Any) -> bool:
        """Whether a tensor's elements are floating-point or complex numbers."""

    @abstractmethod
    def leaf_of(self, value: Any) -> Any:
        """A copy of a tensor that requires a gradient."""


class Healing(Building):
    """Makes of torch's recorded values what a program of the target can go on with."""

    @abstractmethod
    def grafted(self, value: Any, node: Any) -> Any:
        """A value with the gradient graph of a result of its shape and dtype, so that a backward pass reaches it."""

    @abstractmethod
    def linked(self, value: Any, sources: list[Any]) -> Any:
        """A value from which a backward pass goes on to the sources, and brings them no gradient of its own."""

    @abstractmethod
    def as_key(self, value: Any) -> Any:
        """A size as one that can be a key, as torch's can; all else as it is."""

    @abstractmethod
    def size_of(self, extents: tuple[int, ...]) -> Any:
        """A size.

        Raises:
            TypeError: the framework's own cannot be made.
        """

    @abstractmethod
    def device_of(self, name: str) -> Any:
        """A device; None where the framework has none of that name."""

    @abstractmethod
    def child_of(self, layer: Any, name: str) -> Any:
        """The layer that another holds under a name; None where it holds none."""

    @abstractmethod
    def add_child(self, layer: Any, name: str, child: Any) -> None:
        """Have a layer hold another under a name."""

    @abstractmethod
    def add_tensor(self, layer: Any, name: str, tensor: Any, *, trained: bool) -> None:
        """Have a layer hold a tensor under a name: a parameter where it is trained, else a buffer."""


def built_array(want: ArrayValue) -> Any:
    """A recorded numpy array; a scalar of numpy's where it has no extents, zeros where its values were not kept."""
    if not isinstance(want.data, RAW):
        return np.zeros(want.shape, want.dtype)
    array = np.frombuffer(want.data, want.dtype).reshape(want.shape).copy()
    return array if want.shape else array[()]
