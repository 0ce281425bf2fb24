"""What a call wrote, drew and shares: live objects of one framework in, versions, addresses and generator states out.

This is all that the recorder asks of a framework beyond encoding and naming.
"""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from migrate_lens.model.value import Encoded
from migrate_lens.worker.backends.encoding import Encoding
from migrate_lens.worker.observe.frames import hide

# The public entry points whose result may depend on the random generator (torch docs, "Random sampling", "In-place
# random sampling", torch.nn.init, dropout and attention layers). Only for these is the generator's state looked at.
MAY_DRAW = re.compile(
    r"rand|normal|uniform|bernoulli|multinomial|poisson|dropout|cauchy|geometric|exponential|sample|gumbel|rrelu|"
    r"lowrank|attention|transformer|lstm|gru|rnn|perm|shuffle|init|xavier|kaiming|orthogonal|sparse_|fractional",
    re.IGNORECASE,
)
# Functions that write running statistics into their arguments without counting it as a write.
WRITES_UNSEEN = frozenset(["batch_norm", "instance_norm", "native_batch_norm"])
_KINDS = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
# Uninitialised memory: shape and dtype are all that these promise.
UNINITIALISED = frozenset(
    ["empty", "empty_like", "new_empty", "empty_strided", "empty_permuted", "resize_", "resize_as_"]
)
# What takes the extents of a tensor whose memory nobody wrote, or else its values.
ALLOCATES = frozenset(["new", "Tensor", *(f"{kind}Tensor" for kind in _KINDS)])


class Writes(Encoding):
    """Sees what a call did beside its result."""

    @abstractmethod
    def version(self, value: Any) -> int:
        """How many times a tensor was written in place."""

    @abstractmethod
    def held(self, layer: Any) -> Iterable[Any]:
        """Parameters and buffers of a layer and of the layers in it."""

    def entry_of(self, layer: Any, name: str) -> Any:
        """The layer, parameter or buffer that a layer holds under a name; None where it holds none, or hides none."""
        return None

    @abstractmethod
    def extent(self, value: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's elements; None where it has no memory of its own kind."""

    @abstractmethod
    def random_state(self) -> bytes:
        """The state of the default generator."""

    def unseen(self, look: Callable[..., Any], *args: Any) -> Any:
        """Look at objects beneath everything by which a program could see that they are looked at."""
        return look(*args)

    def versions(self, values: list[Any]) -> list[int]:
        """``version`` of each."""
        return [self.version(v) for v in values]

    def contents(self, tensors: list[Any]) -> list[Encoded]:
        """What tensors hold now, to be compared later: where a write to them may not count as one."""
        keep, self.keep = self.keep, None
        try:
            return [self.encode_tensor(t) for t in tensors]
        finally:
            self.keep = keep

    def may_view(self, value: Any) -> bool:
        """Whether a result could lie in memory that it does not own."""
        return True

    def overlaps(self, value: Any, others: list[Any]) -> bool:
        """Whether a tensor or array lies in the memory of one of the others."""
        mine = self._memory(value) if others else None
        if mine is None:
            return False
        address, _ = mine
        spans = (self._memory(other) for other in others)
        return any(span is not None and span[0] <= address < span[0] + span[1] for span in spans)

    def _memory(self, value: Any) -> tuple[int, int] | None:
        if isinstance(value, np.ndarray):
            return (value.__array_interface__["data"][0], max(1, value.nbytes))
        return self.extent(value) if isinstance(value, self.tensor) else None


hide(sys.modules[__name__])
