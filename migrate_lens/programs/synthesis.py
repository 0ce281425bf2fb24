"""A recorded event in, drafts of a program that makes this one call, with its inputs written out, out."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from migrate_lens.model.trace import Event, Trace
from migrate_lens.model.value import (
    ARRAY,
    KEYWORD,
    LAYER,
    REFERENCE,
    SLICE,
    TENSOR,
    TUPLE,
    Encoded,
    KeywordValue,
    LayerValue,
    ReferenceValue,
    SliceValue,
    tag,
    tensors,
)
from migrate_lens.programs.drafts import Argument, Draft, Step, StepForm
from migrate_lens.programs.literals import Unwritable, literal
from migrate_lens.programs.sources import FRAMEWORK, binding, framework_imports, node_at, root
from migrate_lens.programs.values import (
    GRADIENT,
    LISTS,
    SPELLED,
    GradientOf,
    InputTensor,
    Spelled,
    items_of,
    tensor_of,
)

Known = Mapping[tuple[int, int], Encoded]
BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.USub: "-", ast.Invert: "~", ast.UAdd: "+",
}  # fmt: skip
_WAYS = 3
_FILLED = "for p in m.parameters(): torch.nn.init.constant_(p, 0.5)"


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """What a probe did: its trace, and every tensor of that by (serial, version)."""

    trace: Trace
    known: Known


def probe_record(trace: Trace) -> ProbeRecord:
    """Make the tensors of a trace findable."""
    known = dict(trace.values)
    for event in trace.events:
        if event.what == "call":
            known.update(zip(event.serials, tensors(event.value), strict=False))
    return ProbeRecord(trace, known)


def drafts(event: Event, record: ProbeRecord) -> Iterator[Draft]:
    """Programs that make the call of an event, plainest first."""
    kind, node = event.place.kind, node_at(event.place)
    if kind in "pf":
        yield from _import(event)
    elif kind == "a" and isinstance(node, ast.Attribute):
        yield from _attribute(event, node)
    elif kind in "ois" and node is not None:
        yield from _operator(event, node, record)
    elif kind in "cm":
        yield from _call(event, node if isinstance(node, ast.Call) else None, record)


# -- inputs ------------------------------------------------------------------------------------------------------------


def arguments(event: Event, record: ProbeRecord) -> tuple[Argument, ...]:
    """The recorded inputs of an event, with tensors written out; each knows its serial, so that it stays one variable.

    Raises:
        Unwritable: a tensor's values were not kept, or a layer cannot be made by a literal.
    """
    return tuple(_argument(value, record) for value in event.inputs)


def _argument(value: Encoded, record: ProbeRecord) -> Argument:
    if tag(value) == KEYWORD:
        given = KeywordValue._make(value)
        return Argument(given.name, _resolved(given.value, record))
    return Argument("", _resolved(value, record))


def _resolved(value: Encoded, record: ProbeRecord) -> Encoded:
    kind = tag(value)
    if kind == REFERENCE:
        _, serial, version = ReferenceValue._make(value)
        tensor = record.known.get((serial, version))
        if tensor is None or tag(tensor) != TENSOR:
            raise Unwritable("the values of an input were not kept")
        return tensor_of(tensor)._replace(serial=serial)
    if kind in LISTS:
        return (kind, [_resolved(item, record) for item in items_of(value)])
    if kind == LAYER:
        return _made(LayerValue._make(value).name, record)
    return value


def _made(name: str, record: ProbeRecord) -> Encoded:
    """A layer, as the program made one of its class."""
    for event in record.trace.events:
        if event.api == name and event.flags.made_layer:
            options = (option for option in arguments(event, record) if tag(option.value) != SPELLED)
            return Spelled(SPELLED, f"{name}({', '.join(map(_option, options))})")
    raise Unwritable(f"nothing is known of how a {name} was made")


def _option(argument: Argument) -> str:
    text = literal(argument.value)
    return f"{argument.keyword}={text}" if argument.keyword else text


# -- forms -------------------------------------------------------------------------------------------------------------


def _import(event: Event) -> Iterator[Draft]:
    """An import statement by itself."""
    name = event.part
    statement = event.place.text
    if event.place.kind == "f" and name and name != "*":
        statement = f"from {event.api.rpartition('.')[0]} import {name}"
    elif event.place.kind == "p":
        statement = f"import {event.api}"
    yield Draft((statement,), (), ())


def _attribute(event: Event, node: ast.Attribute) -> Iterator[Draft]:
    name = root(node)
    bound = binding(event.place, name) if name else None
    if bound is not None and bound.is_framework:
        step = Step(StepForm.STATEMENT, ast.unparse(node), "out")
        yield Draft((bound.statement,), (step,))
        yield Draft(framework_imports(event.place), (step,))
    elif event.api.startswith("torch.Tensor."):
        for dtype, data in (("float32", b"\0\0\x80?" * 6), ("complex64", b"\0\0\x80?\0\0\0@" * 6)):
            receiver = Argument("", InputTensor(TENSOR, dtype, (2, 3), data))
            yield Draft((), (Step(StepForm.TEMPLATE, "{0}." + node.attr, "out", (receiver,)),))


def _operator(event: Event, node: ast.AST, record: ProbeRecord) -> Iterator[Draft]:
    given = arguments(event, record)
    if event.place.kind == "s" and len(given) == 3:
        yield _item_assignment(*given)
    elif isinstance(node, ast.UnaryOp):
        yield _template(f"{BINARY[type(node.op)]}{{0}}", given)
    elif len(given) == 2:
        yield from _binary(node, given)


def _template(text: str, given: tuple[Argument, ...]) -> Draft:
    return Draft((), (Step(StepForm.TEMPLATE, text, "out", given),))


def _item_assignment(receiver: Argument, index: Argument, value: Argument) -> Draft:
    step = Step(StepForm.TEMPLATE, "{0}[{1}] = {2}", "", (receiver, _index(index), value))
    return Draft((), (step,), (receiver,))


def _binary(node: ast.AST, given: tuple[Argument, ...]) -> Iterator[Draft]:
    left, right = given
    if isinstance(node, ast.Subscript):
        yield _template("{0}[{1}]", (left, _index(right)))
    elif isinstance(node, ast.AugAssign):
        step = Step(StepForm.TEMPLATE, f"{{0}} {BINARY[type(node.op)]}= {{1}}", "", given)
        yield Draft((), (step,), (left,))
    elif isinstance(node, ast.BinOp | ast.Compare):
        operator = node.op if isinstance(node, ast.BinOp) else node.ops[0]
        yield _template(f"{{0}} {BINARY[type(operator)]} {{1}}", given)


def _index(argument: Argument) -> Argument:
    """An index as it is written between brackets."""
    value = argument.value
    items = items_of(value) if tag(value) == TUPLE else [value]
    if any(tag(item) not in (SLICE, "") for item in items):
        return argument
    return Argument("", Spelled(SPELLED, ", ".join(map(_place, items))))


def _place(item: Encoded) -> str:
    if tag(item) != SLICE:
        return "..." if item == ("O", "builtins.ellipsis") else literal(item)
    bounds = SliceValue._make(item).bounds
    start, stop, step = ("" if bound is None else literal(bound) for bound in bounds)
    return f"{start}:{stop}" + (f":{step}" if step else "")


@dataclass(frozen=True, slots=True)
class _Call:
    """A recorded call that is to be made anew.

    Attributes:
        event: the call.
        func: what is called, as its file has it; None where there is no call in the file.
        given: its arguments, written out.
        target: the name that its result gets; ``""``: it has none.
        results: what is held against torch's.
    """

    event: Event
    func: ast.expr | None
    given: tuple[Argument, ...]
    target: str
    results: tuple[str | Argument, ...]

    def draft(self, imports: tuple[str, ...], name: str, form: StepForm = StepForm.CALL) -> Draft:
        """A program that makes it under a name."""
        return Draft(imports, (Step(form, name, self.target, self.given),), self.results)


def _call(event: Event, node: ast.Call | None, record: ProbeRecord) -> Iterator[Draft]:
    given = arguments(event, record)
    target = "" if event.what == "call" and event.value is None else "out"
    looked_at = (target,) if target else ()
    results = (*looked_at, *_written_to(event, given))
    call = _Call(event, node.func if node else None, given, target, results)
    for form in (_as_written, _as_builtin, _as_method):
        made = tuple(form(call))
        if made:
            yield from made
            return
    if event.api.startswith("torch."):
        yield from _layer(call, record)
        yield from _by_api(call, record)


def _as_written(call: _Call) -> Iterator[Draft]:
    """The call as its file has it, where that names the framework."""
    name = root(call.func) if call.func is not None else ""
    bound = binding(call.event.place, name) if name else None
    if call.func is None or bound is None or not bound.is_framework:
        return
    written = ast.unparse(call.func)
    if bound.dotted == FRAMEWORK != name:  # `import torch as t` says nothing that `import torch` does not
        yield call.draft((f"import {FRAMEWORK}",), FRAMEWORK + written[len(name) :])
    yield call.draft((bound.statement,), written)
    yield call.draft(framework_imports(call.event.place), written)


def _as_builtin(call: _Call) -> Iterator[Draft]:
    """The call of a builtin of Python: ``len(x)``."""
    func = call.func
    if isinstance(func, ast.Name) and binding(call.event.place, func.id) is None and hasattr(builtins, func.id):
        yield call.draft((), func.id)


def _as_method(call: _Call) -> Iterator[Draft]:
    """The call of a tensor's method."""
    if not isinstance(call.func, ast.Attribute) or not call.event.api.startswith("torch.Tensor."):
        return
    if call.given and tag(call.given[0].value) == TENSOR:
        yield call.draft((), call.event.api.rpartition(".")[2], StepForm.METHOD)


def _by_api(call: _Call, record: ProbeRecord) -> Iterator[Draft]:
    """The call under the name that torch documents; a layer that was made before is not called by it."""
    api = call.event.api
    makes = call.event.flags.made_layer
    was_made = any(event.api == api and event.flags.made_layer for event in record.trace.events)
    if not api.startswith("torch.Tensor.") and (makes or not was_made):
        yield call.draft((f"import {api.rpartition('.')[0]}",), api)


def _written_to(event: Event, given: tuple[Argument, ...]) -> list[Argument]:
    """The tensor arguments that the call writes to."""
    if any(tag(argument.value) in LISTS and tensors(argument.value) for argument in given):
        return []
    own = [argument for argument in given if tag(argument.value) == TENSOR]
    return [own[index] for index, _ in event.written if index < len(own)]


def _layer(call: _Call, record: ProbeRecord) -> Iterator[Draft]:
    """A layer is made as the program made one of its class, then called; with plain weights if its own are random."""
    if call.event.flags.made_layer:
        return
    for options in _options(call.event.api, record):
        make = Step(StepForm.CALL, call.event.api, "m", options)
        use = Step(StepForm.CALL, "m", "out", call.given)
        yield Draft(("import torch",), (make, use))
        yield Draft(("import torch",), (make, Step(StepForm.STATEMENT, _FILLED), use))


def _options(api: str, record: ProbeRecord) -> list[tuple[Argument, ...]]:
    """With what the program made layers of a class: the first few ways that differ."""
    ways: list[tuple[Argument, ...]] = []
    for event in record.trace.events:
        if event.api != api or not event.flags.made_layer:
            continue
        try:
            options = arguments(event, record)
        except Unwritable:
            continue
        if options not in ways and len(ways) < _WAYS:
            ways.append(options)
    return ways


# -- what a symptom needs beside the call ------------------------------------------------------------------------------


def shared(draft: Draft) -> Iterator[Draft]:
    """The draft with a write to one side of memory that torch shares, and the other side as its result."""
    call = draft.steps[-1]
    target = call.target or "out"
    for argument in call.arguments:
        if tag(argument.value) == TENSOR:
            write = Step(StepForm.TEMPLATE, "{0}.fill_(7)", "", (argument,))
            yield replace(draft, steps=(*draft.steps, write), results=(target,))
            for written in (f"{target}.fill_(7)", f"{target}[0].fill_(7)", f"{target}[...] = 7"):
                yield replace(draft, steps=(*draft.steps, Step(StepForm.STATEMENT, written)), results=(argument,))
        elif tag(argument.value) == ARRAY:
            write = Step(StepForm.TEMPLATE, "{0}[...] = 7", "", (argument,))
            yield replace(draft, steps=(*draft.steps, write), results=(target,))
    if not call.target and call.arguments:
        keep = Step(StepForm.TEMPLATE, "{0}", "alias", call.arguments[:1])
        yield replace(draft, steps=(*draft.steps[:-1], keep, call), results=("alias",))


def stated(draft: Draft) -> Iterator[Draft]:
    """A draft that makes a layer, with what the layer holds as its result."""
    made = draft.steps[-1]
    is_class = made.text.startswith("torch.nn.") and made.text.rpartition(".")[2][:1].isupper()
    if made.form is not StepForm.CALL or not made.target or not is_class:
        return
    name = made.target
    for held in ("parameters", "buffers"):
        yield replace(draft, results=(f"[n for n, _ in {name}.named_{held}()]",))
    yield replace(draft, results=(f"sorted({name}.state_dict())",))
    yield replace(draft, results=(f"[list(p.shape) for p in {name}.parameters()]",))


def differentiated(draft: Draft) -> Iterator[Draft]:
    """The draft with a backward pass, and the gradients of its floating inputs as its results."""
    call = draft.steps[-1]
    wanted = tuple(_requiring(a) for a in call.arguments)
    inputs = [a.value for a in wanted if tag(a.value) == TENSOR and tensor_of(a.value).requires_grad]
    if not inputs:
        return
    results = tuple(Argument("", GradientOf(GRADIENT, value)) for value in inputs)
    for loss in ("out.sum().backward()", "out[0].sum().backward()", "(out * out).sum().backward()"):
        steps = (*draft.steps[:-1], replace(call, arguments=wanted), Step(StepForm.STATEMENT, loss))
        yield replace(draft, steps=steps, results=results)


def _requiring(argument: Argument) -> Argument:
    tensor = tensor_of(argument.value) if tag(argument.value) == TENSOR else None
    if tensor is None or "float" not in tensor.dtype:
        return argument
    return replace(argument, value=tensor._replace(requires_grad=True))
