"""A backward pass that the program does not make: its result and its leaves in; their gradients, all recorded, out.

Where the program has made one itself, its graph is gone: the gradients are those that it left.

The loss is the sum of the cubes of the differentiable tensors of the result: unlike a plain sum or a sum of squares it
has a gradient behind a softmax and behind a normalisation too.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from migrate_lens.protocol.journal import BACKWARD_PASS
from migrate_lens.worker.backends.building import Leaves
from migrate_lens.worker.observe.import_hook import Instrumenter

SOURCE = b"""
def gradients(results, leaves):
    if results:
        loss = (results[0] * results[0] * results[0]).sum()
        for result in results[1:]:
            loss = loss + (result * result * result).sum()
        loss.backward()
    return {name: leaf.grad for name, leaf in leaves}
"""


def with_gradients(
    value: Any,
    leaves: Iterable[tuple[str, Any]],
    backend: Leaves,
    instrumenter: Instrumenter | None,
    prepare: Callable[[types.ModuleType], None],
) -> Any:
    """The program's result with the gradients of its leaves by name; the result alone where nothing is differentiable.

    Args:
        value: the program's result.
        leaves: parameters and inputs, by name.
        backend: the framework.
        instrumenter: rewrites the pass so that its calls are recorded; None where nothing is recorded.
        prepare: told the module of the pass, to put it where the framework answers it.
    """
    wanted = [(name, t) for name, t in leaves if backend.differentiable(t)]
    made = any(t.grad is not None for _, t in wanted)
    results = [] if made else [t for t in _tensors(value, backend) if backend.differentiable(t)]
    if not wanted or not (results or made):
        return value
    module = types.ModuleType(BACKWARD_PASS)
    prepare(module)
    if instrumenter is not None:
        code = instrumenter.compile(BACKWARD_PASS, "<backward pass>", SOURCE)
    else:
        code = compile(SOURCE, "<backward pass>", "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return value, module.__dict__["gradients"](results, wanted)


def of_layer(layer: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """A layer's parameters by name."""
    yield from ((f"{name}.{key}" if name else key, value) for key, value in layer.named_parameters())


def of_names(space: dict[str, Any], backend: Leaves) -> Iterator[tuple[str, Any]]:
    """Parameters of the layers, and tensors that require a gradient, among a program's names."""
    for name, value in list(space.items()):
        if isinstance(value, backend.module):
            yield from of_layer(value, name)
        elif isinstance(value, backend.tensor) and backend.is_leaf(value):
            yield name, value


def as_leaves(inputs: Iterable[Any], backend: Leaves) -> Iterator[tuple[Any, Any]]:
    """For each input, a leaf whose gradient can be read, and what the program gets: its copy, which may be written."""
    for value in inputs:
        if isinstance(value, backend.tensor) and backend.can_differentiate(value):
            leaf = backend.leaf_of(value)
            yield leaf, leaf.clone()
        else:
            yield None, value


def _tensors(value: Any, backend: Leaves) -> Iterator[Any]:
    if isinstance(value, backend.tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, backend)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item, backend)
