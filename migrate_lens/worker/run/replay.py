"""Recorded calls made again, each alone: a file of calls in, what became of each out.

In, one frame a call: ``("replay", index, source, given, state, training)``. ``source`` makes the call and leaves what
came of it in ``result``; in it ``given[i]`` is the i-th recorded input and ``restored(layer)`` gives a layer the
recorded parameters. Out, one frame a call: ``("replayed", index, how, encoded)`` with ``how`` one of ``value``,
``raise``, ``unprepared`` (what the call needs raised) and ``cannot``, and before it an ``("op", index, name, encoded)``
for each low-level operator, where they are asked for.
"""

from __future__ import annotations

import contextlib
from typing import Any

from migrate_lens.protocol.journal import Journal, read
from migrate_lens.worker.backends.base import Backend
from migrate_lens.worker.observe.failures import failure_of
from migrate_lens.worker.observe.zoom import ZOOMS
from migrate_lens.worker.run.rebuild import CannotBuildError, build


def replay(backend: Backend, journal: Journal, calls: str, *, zoom: bool) -> None:
    """Make the calls of a file."""
    indices = [0]

    def note(name: str, out: Any) -> None:
        journal.write(("op", indices[0], name, backend.encode(out)))

    zooming = ZOOMS[backend.name](note) if zoom else None
    for _, index, source, given, state, training in read(calls)[1]:
        indices[0] = index
        journal.enter(index + 1)  # 0 says that nothing is in flight
        journal.write(("replayed", index, *_one(backend, source, given, state, training, zooming)))
    journal.enter(0)


def _one(backend: Backend, source: str, given: Any, state: Any, training: bool, zooming: Any) -> tuple[str, Any]:
    def restored(layer: Any) -> Any:
        return _restored(backend, layer, state, training)

    prepare, _, call = source.rpartition("\n\n")
    how = "unprepared"
    try:
        space = {"given": [_given(backend, value) for value in given], "restored": restored}
        exec(prepare, space)
        how = "raise"
        with zooming.open() if zooming else contextlib.nullcontext():
            exec(call, space)
        return "value", backend.encode(space["result"])
    except CannotBuildError as error:
        return "cannot", str(error)
    except Exception as error:  # noqa: BLE001 - the worker's edge: whatever the call raises is what became of it
        return how, failure_of(error)


def _given(backend: Backend, value: Any) -> Any:
    """A recorded input; one that requires a gradient is no leaf, since a leaf may not be written in place."""
    made: Any = build(backend, value)
    leaf = isinstance(made, backend.tensor) and backend.differentiable(made)
    return made.clone() if leaf else made


def _restored(backend: Backend, layer: Any, state: Any, training: bool) -> Any:
    """A layer with recorded parameters and buffers, by name; in training or not, as it was."""
    own = dict(backend.state(layer))
    for name, dtype, shape, data in state or ():
        if name not in own or not backend.fill(own[name], dtype, tuple(shape), data):
            raise CannotBuildError(f"its {name} of shape {list(shape)} cannot be filled in")
    return layer.train() if training else layer.eval()
