"""A recorded event in, drafts of a program that makes this one call, with its inputs written out, out."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from migrate_lens.model.trace import Event, Trace
from migrate_lens.model.value import Encoded, tag, tensors
from migrate_lens.programs.drafts import CALL, METHOD, STATEMENT, TEMPLATE, Argument, Draft, Step
from migrate_lens.programs.literals import Unwritable, literal
from migrate_lens.programs.sources import FRAMEWORK, binding, framework_imports, node_at, root

Known = Mapping[tuple[int, int], Encoded]
BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.USub: "-", ast.Invert: "~", ast.UAdd: "+",
}  # fmt: skip
_FILLED = "for p in m.parameters(): torch.nn.init.constant_(p, 0.5)"


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace, and every tensor of it by (serial, version)."""

    trace: Trace
    known: Known


def recording(trace: Trace) -> Recording:
    """Make the tensors of a trace findable."""
    known = dict(trace.values)
    for event in trace.events:
        if event.what == "call":
            known.update(zip(event.serials, tensors(event.value), strict=False))
    return Recording(trace, known)


def drafts(event: Event, heard: Recording) -> Iterator[Draft]:
    """Programs that make the call of an event, plainest first."""
    kind, node = event.place.kind, node_at(event.place)
    if kind in "pf":
        yield from _import(event)
    elif kind == "a" and isinstance(node, ast.Attribute):
        yield from _attribute(event, node)
    elif kind in "ois" and node is not None:
        yield from _operator(event, node, heard)
    elif kind in "cm":
        yield from _call(event, node if isinstance(node, ast.Call) else None, heard)


# -- inputs ------------------------------------------------------------------------------------------------------------


def arguments(event: Event, heard: Recording) -> tuple[Argument, ...]:
    """The recorded inputs of an event, with tensors written out; each knows its serial, so that it stays one variable.

    Raises:
        Unwritable: a tensor's values were not kept, or a layer cannot be made by a literal.
    """
    found = []
    for value in event.inputs:
        if tag(value) == "kw":
            found.append(Argument(value[1], _resolved(value[2], heard)))
        else:
            found.append(Argument("", _resolved(value, heard)))
    return tuple(found)


def _resolved(value: Encoded, heard: Recording) -> Encoded:
    kind = tag(value)
    if kind == "#":
        known = heard.known.get((value[1], value[2]))
        if known is None or tag(known) != "T":
            raise Unwritable("the values of an input were not kept")
        return (*known[:6], value[1])
    if kind in ("L", "t"):
        return (kind, [_resolved(v, heard) for v in value[1]])
    if kind == "K":
        return _made(value[1], heard)
    return value


def _made(name: str, heard: Recording) -> Encoded:
    """A layer, as the program made one of its class."""
    for event in heard.trace.events:
        if event.api == name and event.flags.made_layer:
            given = arguments(event, heard)
            written = (f"{a.keyword}=" * bool(a.keyword) + literal(a.value) for a in given if tag(a.value) != "$")
            return ("$", f"{name}({', '.join(written)})")
    raise Unwritable(f"nothing is known of how a {name} was made")


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
    statement, dotted = binding(event.place, name)
    if name and dotted.partition(".")[0] == FRAMEWORK:
        yield Draft((statement,), (Step(STATEMENT, ast.unparse(node), "out"),))
        yield Draft(framework_imports(event.place), (Step(STATEMENT, ast.unparse(node), "out"),))
    elif event.api.startswith("torch.Tensor."):
        for dtype, data in (("float32", b"\0\0\x80?" * 6), ("complex64", b"\0\0\x80?\0\0\0@" * 6)):
            receiver = Argument("", ("T", dtype, (2, 3), data, "cpu", False))
            yield Draft((), (Step(TEMPLATE, "{0}." + node.attr, "out", (receiver,)),))


def _operator(event: Event, node: ast.AST, heard: Recording) -> Iterator[Draft]:
    given = arguments(event, heard)
    kind = event.place.kind
    if kind == "s" and len(given) == 3:
        yield Draft((), (Step(TEMPLATE, "{0}[{1}] = {2}", "", (given[0], _index(given[1]), given[2])),), (given[0],))
    elif isinstance(node, ast.Subscript) and len(given) == 2:
        yield Draft((), (Step(TEMPLATE, "{0}[{1}]", "out", (given[0], _index(given[1]))),))
    elif isinstance(node, ast.AugAssign) and len(given) == 2:
        yield Draft((), (Step(TEMPLATE, f"{{0}} {BINARY[type(node.op)]}= {{1}}", "", given),), (given[0],))
    elif isinstance(node, ast.BinOp | ast.Compare) and len(given) == 2:
        op = node.op if isinstance(node, ast.BinOp) else node.ops[0]
        yield Draft((), (Step(TEMPLATE, f"{{0}} {BINARY[type(op)]} {{1}}", "out", given),))
    elif isinstance(node, ast.UnaryOp):
        yield Draft((), (Step(TEMPLATE, f"{BINARY[type(node.op)]}{{0}}", "out", given),))


def _index(argument: Argument) -> Argument:
    """An index as it is written between brackets."""
    value = argument.value
    items = value[1] if tag(value) == "t" else [value]
    if any(tag(v) not in ("/", "") for v in items):
        return argument
    return Argument("", ("$", ", ".join(_place(v) for v in items)))


def _place(item: Encoded) -> str:
    if tag(item) != "/":
        return "..." if item == ("O", "builtins.ellipsis") else literal(item)
    start, stop, step = ("" if v is None else literal(v) for v in item[1])
    return f"{start}:{stop}" + (f":{step}" if step else "")


def _call(event: Event, node: ast.Call | None, heard: Recording) -> Iterator[Draft]:
    given = arguments(event, heard)
    func = node.func if node else None
    written = tuple(given[i] for i in _written(event, given))
    target = "" if event.what == "call" and event.value is None else "out"
    results = (*((target,) if target else ()), *written)
    if func is not None and root(func):
        statement, dotted = binding(event.place, root(func))
        if dotted.partition(".")[0] == FRAMEWORK:
            if dotted == FRAMEWORK != root(func):  # `import torch as t` says nothing that `import torch` does not
                plain = FRAMEWORK + ast.unparse(func)[len(root(func)) :]
                yield Draft((f"import {FRAMEWORK}",), (Step(CALL, plain, target, given),), results)
            step = Step(CALL, ast.unparse(func), target, given)
            yield Draft((statement,), (step,), results)
            yield Draft(framework_imports(event.place), (step,), results)
            return
        if isinstance(func, ast.Name) and not dotted and hasattr(builtins, func.id):
            yield Draft((), (Step(CALL, func.id, target, given),), results)
            return
    method = isinstance(func, ast.Attribute) and event.api.startswith("torch.Tensor.")
    if method and given and tag(given[0].value) == "T":
        yield Draft((), (Step(METHOD, event.api.rpartition(".")[2], target, given),), results)
        return
    if event.api.startswith("torch.") and not event.flags.made_layer:
        yield from _layer(event, given, heard)
    made = any(e.api == event.api and e.flags.made_layer for e in heard.trace.events)
    if (
        event.api.startswith("torch.")
        and not event.api.startswith("torch.Tensor.")
        and (not made or event.flags.made_layer)
    ):
        yield Draft((f"import {event.api.rpartition('.')[0]}",), (Step(CALL, event.api, target, given),), results)


def _written(event: Event, given: tuple[Argument, ...]) -> list[int]:
    """Positions of the tensor arguments that the call writes to."""
    positions = [i for i, a in enumerate(given) if tag(a.value) == "T"]
    nested = any(tag(a.value) in ("L", "t") and tensors(a.value) for a in given)
    return [] if nested else [positions[i] for i, _ in event.written if i < len(positions)]


def _layer(event: Event, given: tuple[Argument, ...], heard: Recording) -> Iterator[Draft]:
    """A layer is made as the program made one of its class, then called; with plain weights if its own are random."""
    seen: list[tuple[Argument, ...]] = []
    for made in heard.trace.events:
        if made.api != event.api or not made.flags.made_layer:
            continue
        try:
            options = arguments(made, heard)
        except Unwritable:
            continue
        if options in seen or len(seen) == 3:
            continue
        seen.append(options)
        make, use = Step(CALL, event.api, "m", options), Step(CALL, "m", "out", given)
        yield Draft(("import torch",), (make, use))
        yield Draft(("import torch",), (make, Step(STATEMENT, _FILLED), use))


# -- what a symptom needs beside the call ------------------------------------------------------------------------------


def shared(draft: Draft) -> Iterator[Draft]:
    """The draft with a write to one side of memory that torch shares, and the other side as its result."""
    call = draft.steps[-1]
    target = call.target or "out"
    for argument in call.arguments:
        if tag(argument.value) == "T":
            write = Step(TEMPLATE, "{0}.fill_(7)", "", (argument,))
            yield replace(draft, steps=(*draft.steps, write), results=(target,))
            for written in (f"{target}.fill_(7)", f"{target}[0].fill_(7)", f"{target}[...] = 7"):
                yield replace(draft, steps=(*draft.steps, Step(STATEMENT, written)), results=(argument,))
        elif tag(argument.value) == "N":
            write = Step(TEMPLATE, "{0}[...] = 7", "", (argument,))
            yield replace(draft, steps=(*draft.steps, write), results=(target,))
    if not call.target and call.arguments:
        keep = Step(TEMPLATE, "{0}", "alias", call.arguments[:1])
        yield replace(draft, steps=(*draft.steps[:-1], keep, call), results=("alias",))


def stated(draft: Draft) -> Iterator[Draft]:
    """A draft that makes a layer, with what the layer holds as its result."""
    made = draft.steps[-1]
    if (
        made.form == CALL
        and made.target
        and made.text.startswith("torch.nn.")
        and made.text.rpartition(".")[2][:1].isupper()
    ):
        name = made.target
        for held in ("parameters", "buffers"):
            yield replace(draft, results=(f"[n for n, _ in {name}.named_{held}()]",))
        yield replace(draft, results=(f"sorted({name}.state_dict())",))
        yield replace(draft, results=(f"[list(p.shape) for p in {name}.parameters()]",))


def differentiated(draft: Draft) -> Iterator[Draft]:
    """The draft with a backward pass, and the gradients of its floating inputs as its results."""
    call = draft.steps[-1]
    wanted = tuple(_requiring(a) for a in call.arguments)
    inputs = [a for a in wanted if tag(a.value) == "T" and a.value[5]]
    if not inputs:
        return
    results = tuple(Argument("", ("g", a.value)) for a in inputs)
    for loss in ("out.sum().backward()", "out[0].sum().backward()", "(out * out).sum().backward()"):
        steps = (*draft.steps[:-1], replace(call, arguments=wanted), Step(STATEMENT, loss))
        yield replace(draft, steps=steps, results=results)


def _requiring(argument: Argument) -> Argument:
    value = argument.value
    if tag(value) == "T" and "float" in value[1]:
        return replace(argument, value=(*value[:5], True, *value[6:]))
    return argument
