"""Keep-going on the Paddle side: torch's recorded trace in, torch's recorded results handed to the program.

At a difference the gap is in the trace and the program goes on with torch's value, so that each later call is judged
on inputs equal to torch's. What was handed over is written with each frame: nothing is handed silently.
"""

from __future__ import annotations

import weakref
from typing import Any

from migrate_lens.model.value import Encoded, difference, references, tag, tensors
from migrate_lens.protocol.journal import Journal
from migrate_lens.worker.backends.base import owner_of
from migrate_lens.worker.backends.paddle.backend import PaddleBackend
from migrate_lens.worker.heal.reference import NOTHING, Frame, Reference, key_of, name_of
from migrate_lens.worker.heal.standins import Factory
from migrate_lens.worker.observe.failures import lacking, parameters, torch_error
from migrate_lens.worker.observe.nodes import Node
from migrate_lens.worker.observe.recorder import Recorder

STAND_IN = 4


class Healer(Recorder):
    """A recorder that holds each call against torch's and hands over torch's value where its policy says so.

    Args:
        backend: Paddle's side of the seam.
        journal: where frames go.
        reference: torch's trace.
        everything: heal every difference; else random draws and new layers only.
        spare: nodes, as ``module:line:column:end line:end column:kind``, that are left as Paddle has them.
        skip: nodes that are not called, since the call kills the process.
        hashable: hand over sizes that can be keys, as torch's can.
    """

    def __init__(self, backend: PaddleBackend, journal: Journal, reference: Reference, everything: bool,
                 spare: frozenset[str], skip: frozenset[str], hashable: bool) -> None:  # fmt: skip
        super().__init__(backend, journal, inputs=False)
        backend.keep = None  # values are held against torch's as soon as they are there
        self._reference_trace = reference
        self._everything = everything
        self._spare = spare
        self._factory = Factory(backend, reference.items)
        self._paddle = backend
        self._expected: list[dict[tuple[int, str], Frame]] = [NOTHING]
        self._states: list[dict[tuple[int, str], Frame]] = [NOTHING]
        self._skip = skip
        self._hashable = hashable
        self._spared: set[int] = set()
        self._skipped: set[int] = set()
        self._unequal: set[tuple[int, int, str]] = set()
        self._answered = False
        self._missing: list[Frame] = []
        self._synced: dict[int, tuple[weakref.ref[Any], tuple[int, int]]] = {}
        self._apart: dict[int, weakref.ref[Any]] = {}
        self._strayed: set[tuple[int, int, str]] = set()

    def register(self, module: str, path: str, nodes: tuple[Node, ...]) -> int:
        base = super().register(module, path, nodes)
        for index, node in enumerate(nodes):
            key = key_of(module, node)
            self._expected.append(self._reference_trace.events(key))
            self._states.append(self._reference_trace.states(key))
            name = name_of(key)
            if name in self._spare:
                self._spared.add(base + index)
            if name in self._skip:
                self._skipped.add(base + index)
        return base

    def _want(self, number: int, visit: int, sub: str) -> Frame | None:
        return self._expected[number].get((visit, sub))

    def _heals(self, number: int) -> bool:
        return self._everything and number not in self._spared

    # -- stand-ins -----------------------------------------------------------------------------------------------

    def origin(self, func: Any) -> int:
        owner = owner_of(func)
        if self._factory.is_stand_in(func) or self._factory.is_stand_in(owner) or self._factory.is_empty(func):
            return STAND_IN
        return super().origin(func)

    def concerns(self, values: Any) -> bool:
        return super().concerns(values) or any(self._factory.is_stand_in(v) for v in values)

    def invoke(self, number: int, func: Any, base: Any, args: Any, kwargs: Any, name: str | None, sub: str = "") -> Any:
        visit = self.visits[number]
        if self._everything and (number in self._skipped or self._stands_in(func, args, kwargs)):
            return self._answer(number, visit, sub, func, (base, *args) if base is not None else args, kwargs)
        want = self._want(number, visit, sub)
        if want is not None and want[0] == "call":
            self._prepare(number, visit, sub, func, base, args, kwargs, want)
        return super().invoke(number, func, base, args, kwargs, name, sub)

    def _stands_in(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether a stand-in is called, or handed to a call: Paddle's own function could not do anything with it.

        A layer that stands in is a layer of Paddle's, and may go into its containers.
        """
        if self.origin(func) == STAND_IN:
            return True
        values, layer = (*args, *kwargs.values()), self.backend.module
        return any(self._factory.is_stand_in(v) and not isinstance(v, layer) for v in values)

    def _answer(self, number: int, visit: int, sub: str, func: Any, args: Any, kwargs: Any) -> Any:
        """A call of a stand-in: torch's recorded result, or what the stand-in itself does."""
        want = self._want(number, visit, sub)
        self.journal.write(("handed", number, visit, sub))
        if want is None:
            return None if number in self._skipped else func(*args, **kwargs)
        if want[0] != "call":
            raise torch_error(want)
        self._answered = True
        self._missing.append(want)
        operands = self.tensors((*args, *kwargs.values()))
        self._write_back(operands, want[8])
        result = self._result(want, None, False, operands)
        cut = number in self._skipped and isinstance(result, self.backend.tensor)
        return self._paddle.linked(result, operands) if cut else result

    def _consequence(self, want: Frame) -> bool:
        """Whether a difference may come of what a stand-in (an optimizer) left undone, so that it says nothing."""
        if not self._answered or want[0] != "call":
            return False
        if want[4].endswith(".grad"):
            return self._reference_trace.reaches(want, self._missing)
        return "s" in want[9] or want[4].endswith(".state_dict")

    def _prepare(
        self, number: int, visit: int, sub: str, func: Any, base: Any, args: Any, kwargs: Any, want: Frame
    ) -> None:
        """Bring what changed outside recorded calls (an optimizer's step) to torch's state before the call."""
        state = self._states[number].get((visit, sub))
        if state is not None and isinstance(func, self.backend.module):
            self._fill_layer(func, state[4])
        if not self._everything:
            return
        given = (base, *args) if base is not None else args
        wanted = references(want[5], nested=False)
        operands = self.tensors((*given, *kwargs.values()))
        if len(wanted) != len(operands):
            if self._is_apart(operands):
                self._strayed.add((number, visit, sub))
            return
        for operand, reference in zip(operands, wanted, strict=True):
            value = self._reference_trace.values.get(reference)
            if self._is_apart([operand]):
                if value is None or difference(value, self.backend.encode_tensor(operand)) is not None:
                    self._strayed.add((number, visit, sub))
                continue
            known = self._synced.get(id(operand))
            if value is None or (known and known[0]() is operand and known[1] == reference):
                continue
            if not self._make_equal(operand, value, reference):
                self._unequal.add((number, visit, sub))

    def _make_equal(self, tensor: Any, value: Encoded, reference: tuple[int, int]) -> bool:
        """Give a tensor torch's values to the last bit, so that noise does not add up; whether it has them."""
        mine = self.backend.encode_tensor(tensor)
        if mine[0] == "T" and mine[3] != value[3]:
            self._paddle.fill(tensor, *value[1:4])
            if difference(value, self.backend.encode_tensor(tensor)) is not None:
                return False  # a strided view, or another shape: it cannot be made equal
        self._synced[id(tensor)] = (weakref.ref(tensor), reference)
        return True

    def _inputs(self, given: Any, kwargs: Any) -> list[Encoded]:
        return _Given(given, kwargs)

    def _other_inputs(self, inputs: list[Encoded], want: Frame) -> bool:
        """Whether a call got other arrays or scalars than torch's, so that its result says nothing about it."""
        if not isinstance(inputs, _Given) or want[0] != "call":
            return False
        mine = [*inputs.given, *inputs.kwargs.values()]
        theirs = [v[2] if isinstance(v, tuple) and v and v[0] == "kw" else v for v in want[5]]
        if len(mine) != len(theirs):
            return False
        pairs = zip(mine, theirs, strict=True)
        return any(difference(w, self.backend.encode(v)) for v, w in pairs if tag(w) in ("N", "") and not _flag(w))

    # -- settling what happened ----------------------------------------------------------------------------------

    def returned(self, number: int, visit: int, sub: str, api: str, inputs: list[Encoded], operands: list[Any],
                 written: list[int], flags: str, out: Any) -> Any:  # fmt: skip
        want = self._want(number, visit, sub)
        if want is not None and want[0] == "call":
            written = sorted({*written, *(i for i, _ in want[8] if i < len(operands))})
        changed = [(i, self.encode_written(operands[i], flags)) for i in written]
        encoded = self.encode_out(out, flags)
        healed = self._verdict(number, want, encoded, changed, flags)
        if self._spared:
            self._leave_apart(number, want, operands, written, flags, out, encoded)
        if healed == "differs" and (number, visit, sub) in self._strayed:
            healed = ""  # it was given what a spared place left other than torch does
        unequal = (number, visit, sub) in self._unequal or (want is not None and self._other_inputs(inputs, want))
        if want is not None and healed == "differs" and (unequal or self._consequence(want)):
            flags += "i"
        self.journal.write(("call", number, visit, sub, api, [], encoded, [], changed, flags, healed))
        if not healed or want is None:
            if want is not None and want[0] == "call" and "r" in want[9]:
                self._write_back(operands, want[8])
            if want is not None and want[0] == "call" and self._everything and not self._is_apart(self.inner(out)):
                self._align(out, want)
            return self._paddle.as_key(out) if self._hashable else out
        if want[0] != "call":
            raise torch_error(want)
        if healed == "state":
            self._fill_layer(out, want[6][2])
            return out
        self._write_back(operands, want[8])
        return self._result(want, out, True, operands)

    def _leave_apart(self, number: int, want: Frame | None, operands: list[Any], written: list[int], flags: str,
                     out: Any, encoded: Encoded) -> None:  # fmt: skip
        """Note what a spared place leaves other than torch does, and what is made of that.

        Memory that torch shares or writes, and results that differ, stay as they are here: no later call brings them
        to torch's state.
        """
        left: list[Any] = []
        if number in self._spared and want is not None and want[0] == "call":
            lost = any(f in want[9] and f not in flags for f in "v=")
            left = [*operands, *self.inner(out)] if lost else [operands[i] for i in written]
            if not lost and difference(want[6], encoded) is not None:
                left += self.inner(out)
        elif self._is_apart(operands):
            left = [*self.inner(out), *(operands[i] for i in written)]
        self._apart |= {id(t): weakref.ref(t) for t in left}

    def _is_apart(self, tensors: list[Any]) -> bool:
        known = self._apart
        return bool(known) and any(id(t) in known and known[id(t)]() is t for t in tensors)

    def _align(self, out: Any, want: Frame) -> None:
        """Make a result that agrees with torch's equal to it."""
        mine, theirs = self.inner(out), tensors(want[6])
        if len(mine) == len(theirs) == len(want[7]):
            for tensor, value, reference in zip(mine, theirs, want[7], strict=True):
                self._make_equal(tensor, value, tuple(reference))

    def _verdict(self, number: int, want: Frame | None, encoded: Encoded, changed: list[Any], flags: str) -> str:
        """Why torch's value is handed over, or ``""`` where Paddle's stays."""
        if want is None:
            return ""
        if want[0] != "call":
            return "raised" if self._heals(number) and want[0] == "raise" else ""
        if "k" in want[9] and "k" in flags:
            return "state"
        if "r" in want[9] or "u" in want[9]:
            return "draw" if difference(want[6], encoded, values=False) is None or self._heals(number) else ""
        if not self._heals(number):
            return ""
        if isinstance(want[6], bytes) and isinstance(encoded, bytes):
            return ""  # what one framework serialised only that one reads back
        if difference(want[6], encoded) is not None:
            return "differs"
        old = dict(want[8])
        return "differs" if any(i in old and difference(old[i], v) for i, v in changed) else ""

    def _result(self, want: Frame, out: Any, has: bool, operands: list[Any]) -> Any:
        """Torch's result; the receiver itself where torch handed back the receiver."""
        flags = want[9]
        if "=" in flags:
            index = int(flags.partition("=")[2].partition(";")[0])
            if index < len(operands) and self._paddle.fill(operands[index], *want[6][1:4]):
                return operands[index]
        return self._factory.rebuild(want[6], out, has=has)

    def _write_back(self, operands: list[Any], written: list[tuple[int, Encoded]]) -> None:
        for index, value in written:
            if index < len(operands):
                self._paddle.fill(operands[index], *value[1:4])

    def _fill_layer(self, layer: Any, state: Any) -> bool:
        """Bring a layer to a recorded state; whether all of it could be."""
        own = dict(self.backend.state(layer))
        filled = [
            name in own and self._paddle.fill(own[name], dtype, tuple(shape), data)
            for name, dtype, shape, data in state or ()
        ]
        return all(filled)

    def _is_itself(self, want: Frame, layer: Any) -> bool:
        """Whether a call of a layer's method handed back the layer under torch; then this one is in torch's state."""
        itself = want[0] == "call" and "b" in want[9] and isinstance(layer, self.backend.module)
        return itself and ("c" not in want[9] or self._fill_layer(layer, want[6][2]))

    def raised(self, number: int, visit: int, sub: str, api: str, inputs: list[Encoded], operands: list[Any],
               func: Any, args: Any, kwargs: Any, error: Exception) -> Any:  # fmt: skip
        want = self._want(number, visit, sub)
        heals = self._heals(number) and want is not None
        failure = self.failure(api, error, func, args, kwargs)
        self.journal.write(("raise", number, visit, sub, api, [], failure, "raised" if heals else ""))
        self.journal.enter(0)
        if not heals:
            raise error
        assert want is not None
        if want[0] != "call":
            raise torch_error(want)
        if self._is_itself(want, owner_of(func)):
            return owner_of(func)
        layer = self._without_refused(func, args, kwargs) if "k" in want[9] else None
        if layer is not None:
            self._fill_layer(layer, want[6][2])
            return layer
        self._write_back(operands, want[8])
        return self._result(want, None, False, operands)

    def _without_refused(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A layer made without the keywords that its class refuses, so that its calls are judged like any other."""
        accepted = parameters(func)
        if accepted is None or all(k in accepted for k in kwargs):
            return None
        try:
            return func(*args, **{k: v for k, v in kwargs.items() if k in accepted})
        except Exception:  # noqa: BLE001 - the worker's edge: the gap is recorded already, a stand-in answers instead
            return None

    def not_there(self, number: int, api: str, error: Exception, base: Any = None, sub: str = "") -> Any:
        visit = self.visits[number]
        want = self._want(number, visit, sub)
        heals = self._heals(number) and want is not None and want[0] == "call"
        self.journal.write(("absent", number, visit, sub, api, lacking(error, base), "absent" if heals else ""))
        if not heals:
            if want is not None and self._heals(number):
                raise torch_error(want)
            raise error
        assert want is not None
        self._missing.append(want)
        return self._factory.rebuild(want[6])

    def absent(self, number: int, base: Any, attribute: str, error: Exception, args: Any) -> Any:
        want = self._want(number, self.visits[number], "")
        kind = base if isinstance(base, type) else type(base)
        if want is not None and want[0] == "call" and self._heals(number):
            if self._factory.from_stand_in(kind) or not self.concerns((base,)):
                self.journal.write(("handed", number, self.visits[number], ""))
                return self._factory.rebuild(want[6])
            if args is not None:
                self._write_back(self.tensors((base, *args)), want[8])
        made = super().absent(number, base, attribute, error, args)
        return base if want is not None and self._is_itself(want, base) else made

    def absent_import(self, number: int, module: str, names: tuple[str, ...], error: ImportError) -> list[Any]:
        if not self._heals(number):
            return super().absent_import(number, module, names, error)
        if not names:
            return [self.not_there(number, module, error)]
        return [self.not_there(number, f"{module}.{name}", error, None, name) for name in names]

    def starred(self, number: int, module: str, loaded: Any) -> dict[str, Any]:
        found = super().starred(number, module, loaded)
        want = self._want(number, self.visits[number], "*")
        if want is None or want[0] != "call" or not self._heals(number):
            return found
        rebuild, lost = self._factory.rebuild, set(want[6].split()) - found.keys()
        return found | {name: getattr(loaded, name, None) or rebuild(("F", f"{module}.{name}")) for name in lost}

    def observed(self, number: int, api: str, value: Any, base: Any = None) -> Any:
        visit = self.visits[number]
        want = self._want(number, visit, "")
        encoded = self.backend.encode(value)
        heals = want is not None and want[0] == "call" and self._heals(number)
        differs = heals and want is not None and difference(want[6], encoded) is not None
        flags = "i" if differs and want is not None and self._consequence(want) else ""
        self._note(number, "", api, encoded, [], "differs" if differs else "", flags)
        written = flags and want is not None and isinstance(value, self.backend.tensor)
        if written and want is not None and self._paddle.fill(value, *want[6][1:4]):
            return value  # torch's run wrote this very tensor, so whoever else holds Paddle's sees it too
        value = self._paddle.as_key(value) if self._hashable else value
        return self._factory.rebuild(want[6], value, has=True) if differs and want is not None else value

    def decorated(self, number: int, decorator: Any, target: Any) -> Any:
        if self._factory.is_stand_in(decorator):
            return target
        return super().decorated(number, decorator, target)


class _Given(list[Encoded]):
    """What a call was given, kept until it is known whether it matters; nothing of it is written."""

    def __init__(self, given: Any, kwargs: Any) -> None:
        super().__init__()
        self.given = given
        self.kwargs = kwargs


def _flag(value: Encoded) -> bool:
    """Scalars that no result depends on in a way that could mislead: ``None`` and bools."""
    return value is None or isinstance(value, bool)


def make(backend: Any, journal: Journal, reference: str, everything: bool, spare: list[str], skip: list[str],
         hashable: bool) -> Healer:  # fmt: skip
    """The healer for a job."""
    return Healer(backend, journal, Reference(reference), everything, frozenset(spare), frozenset(skip), hashable)
