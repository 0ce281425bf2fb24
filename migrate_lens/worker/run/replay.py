"""Recorded calls made again, each alone: a file of calls in, what became of each out.

In, one ``frames.Replay`` a call. Its source makes the call and leaves what came of it in ``result``; in it ``given[i]``
is the i-th recorded input and ``restored(layer)`` gives a layer the recorded parameters. Out, one ``frames.Replayed`` a
call, with ``how`` one of ``value``, ``raise``, ``unprepared`` (what the call needs raised) and ``cannot``, and before
it a ``frames.Op`` for each low-level operator, where they are asked for.
"""

from __future__ import annotations

import contextlib
from typing import Any

from migrate_lens.model.value import Encoded, parameters
from migrate_lens.protocol.frames import Op, Replay, Replayed
from migrate_lens.protocol.journal import Journal, read
from migrate_lens.worker.backends.framework import Backend, Framework, Zoom
from migrate_lens.worker.observe.failures import failure_of
from migrate_lens.worker.run.rebuild import CannotBuildError, build


def replay(framework: Framework, backend: Backend, journal: Journal, calls: str, *, zoom: bool) -> None:
    """Make the calls of a file."""
    number = 0

    def note(name: str, out: Any) -> None:
        journal.write(Op("op", number, name, backend.encode(out)))

    zooming = framework.zoom(note) if zoom else None
    for frame in read(calls)[1]:
        call = Replay._make(frame)
        number = call.number
        journal.enter(number + 1)  # 0 says that nothing is in flight
        how, value = _made_again(backend, call, zooming)
        journal.write(Replayed("replayed", number, how, value))
    journal.enter(0)


def _made_again(backend: Backend, call: Replay, zooming: Zoom | None) -> tuple[str, Encoded]:
    """What became of a call: how, and the result, the failure, or why it cannot be made."""

    def restored(layer: Any) -> Any:
        return _restored(backend, layer, call)

    prepare, _, source = call.source.rpartition("\n\n")
    how = "unprepared"
    try:
        space = {"given": [_given(backend, value) for value in call.given], "restored": restored}
        exec(prepare, space)
        how = "raise"
        with zooming.open() if zooming else contextlib.nullcontext():
            exec(source, space)
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


def _restored(backend: Backend, layer: Any, call: Replay) -> Any:
    """A layer with recorded parameters and buffers, by name; in training or not, as it was."""
    own = dict(backend.state(layer))
    for p in parameters(call.state):
        if p.name not in own or not backend.fill(own[p.name], p.dtype, tuple(p.shape), p.data):
            raise CannotBuildError(f"its {p.name} of shape {list(p.shape)} cannot be filled in")
    return layer.train() if call.training else layer.eval()
