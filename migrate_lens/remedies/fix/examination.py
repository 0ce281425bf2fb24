"""A program in; the program with an examination of all that can be seen after it, and whether two saw the same, out.

A call is more than its result: it writes to its inputs, its result shares memory with them, gradients flow through it
or are stopped, and what comes after it sees what it has set. The examination is written in torch's spelling, of what
both sides are known to answer alike.
"""

from __future__ import annotations

from enum import StrEnum

from migrate_lens.model.value import NAMED_TUPLE, TUPLE, Encoded, difference, tag
from migrate_lens.programs.drafts import Text
from migrate_lens.programs.values import LISTS, items_of
from migrate_lens.remedies.fix.slots import fill

_RAISED = "raised "
_HELPERS = f'''
import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHORT = {{torch.float16: "float16", torch.bfloat16: "bfloat16"}}
PARTS = (1, 0.37, 0.73, 1.9, 3.1)
PLAIN = (bool, int, float, str, type(None))


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def leaves_in(value):
    if isinstance(value, torch.nn.Module):
        yield from (p for n, p in sorted(value.named_parameters(), key=lambda named: named[0]) if p.requires_grad)
    elif isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf:
        yield value


def copies(tensors):
    return [t.detach().clone() for t in tensors]


def told(value):
    """What a result without tensors says."""
    if isinstance(value, (list, tuple)):
        return [told(item) for item in value]
    return value if isinstance(value, PLAIN) else ""


def rounded(space, name, call):
    """Every digit of results that have few, for several inputs: what is rounded once more or once less gives others."""
    digits = []
    for part in PARTS:
        for n, v in space.get("_given", {{}}).items():
            space[n] = v * part
        exec(call, space)
        short = [t for t in copies(tensors_in(space.get(name))) if t.dtype in SHORT]
        digits += [[SHORT[t.dtype], t.to(torch.float32)] for t in short]
    return digits


def tried(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return {_RAISED!r} + type(error).__name__


def train(space):
    """Each input that floats can be as the copy of a leaf; the leaves."""
    leaves = []
    for name, value in list(space.items()):
        if isinstance(value, torch.Tensor) and value.dtype in FLOATS:
            leaf = value.detach()
            leaf.requires_grad = True
            leaves.append(leaf)
            space[name] = leaf.clone()
    return leaves


def vary(space, how):
    """Each input as another one: of another dtype, twice as long, of equal elements, on another device."""
    for name, value in list(space.items()):
        if isinstance(value, torch.Tensor):
            space[name] = varied(value.detach(), how)
            if value.requires_grad:
                space[name].requires_grad = True
    tensors = [(n, v) for n, v in space.items() if isinstance(v, torch.Tensor)]
    space["_given"] = {{n: v.detach().clone() for n, v in tensors if v.dtype in SHORT}}


def varied(value, how):
    if how == "dtype" and value.dtype in FLOATS:
        return value.to(torch.float32 if value.dtype == torch.float64 else torch.float64)
    if how == "half" and value.dtype in FLOATS:
        return value.to(torch.bfloat16)
    if how == "float16" and value.dtype in FLOATS:
        return value.to(torch.float16)
    if how == "size" and value.dim():
        return torch.cat([value, value])
    if how == "ties" and value.dtype in FLOATS:
        return torch.ones_like(value)
    return value.to("meta") if how == "device" else value


def gradients(results, leaves):
    """What reaches the leaves from a loss that has a gradient behind a softmax too; a pass that was made is kept."""
    results = [t for t in results if t.requires_grad and t.dtype in FLOATS]
    if results and all(leaf.grad is None for leaf in leaves):
        sum((t.to(torch.float32) * t.to(torch.float32) * t.to(torch.float32)).sum() for t in results).backward()
    return [None if leaf.grad is None else leaf.grad.detach() for leaf in leaves]


def memory(inputs, results):
    """What of a write to one side is seen on the other."""
    with torch.no_grad():
        for number, t in enumerate(inputs):
            t.fill_(7 + number)
        seen = [copies(results)]
        for number, t in enumerate(results):
            t.fill_(40 + number)
    return [*seen, copies(inputs)]


def state(value):
    if not isinstance(value, torch.nn.Module):
        return []
    parameters = [[n, list(p.shape), p.dtype, p.requires_grad] for n, p in value.named_parameters()]
    return [parameters, sorted(value.state_dict()), value.training]


def around():
    new = torch.ones(1, requires_grad=True) * 1
    return [new.dtype, new.requires_grad]


def own(value, short):
    plain = (*PLAIN, tuple)
    known = sorted((n, v) for n, v in vars(value).items()) if isinstance(value, torch.nn.Module) else []
    return [[n for n, v in known], [v for n, v in known if isinstance(v, plain)], short, torch.rand(2)]


def examined(space, before, leaves, name, call):
    value = space.get(name)
    results = list(tensors_in(value))
    inputs = [t for v in before.values() for t in tensors_in(v)]
    leaves = leaves + [leaf for v in before.values() for leaf in leaves_in(v)]
    seen = [copies(results) or told(value), [t.requires_grad for t in results], copies(inputs), state(value)]
    seen += [tried(gradients, results, leaves), tried(memory, inputs, results)]

    def again():
        exec(call, space)
        return copies(tensors_in(space.get(name)))

    return [*seen, tried(again), around(), own(value, tried(rounded, space, name, call))]


def trained(space, value):
    leaves = [leaf for n in sorted(space) if n != "result" for leaf in leaves_in(space[n])]
    results = list(tensors_in(value))
    return [[t.requires_grad for t in results], tried(gradients, results, leaves)]


def whole(space):
    value = space.get("result")
    inputs = [t for n in sorted(space) if n != "result" and n[:1] != "_" for t in tensors_in(space[n])]
    results = list(tensors_in(value))
    return [copies(results), copies(inputs), trained(space, value), tried(memory, inputs, results), around()]
'''
_LOOK = ('_look = {"__name__": __name__}', f"exec({_HELPERS!r}, _look)")


class Varied(StrEnum):
    """In what the inputs of a call are others than those that were recorded."""

    NOTHING = ""
    DTYPE = "dtype"
    HALF = "half"
    FLOAT16 = "float16"
    SIZE = "size"
    TIES = "ties"
    DEVICE = "device"


class Aspect(StrEnum):
    """What is looked at after a call, in the order of the examination; as reports say it."""

    RESULT = "result"
    REQUIRES_GRAD = "requires_grad"
    INPUTS = "inputs afterwards"
    STATE = "parameters"
    GRADIENTS = "gradients"
    MEMORY = "shared memory"
    AGAIN = "second call"
    AROUND = "defaults"
    OWN = "attributes, the last digit of short floats and random numbers"


_ASPECTS = tuple(Aspect)


def of_call(text: Text, target: str, *, trained: bool, varied: Varied = Varied.NOTHING, use: str = "") -> str:
    """A program that ends in a call, with an examination of all that the call did.

    Args:
        text: the program; its last line is the call.
        target: the name that the result has; empty where it has none.
        trained: make each input that floats can be require a gradient.
        varied: give it other inputs.
        use: an expression that the result is put into first, with ``{0}`` for it.
    """
    *setup, call = text.lines
    call += f"; {target} = {fill(use, [target])}" if use else ""
    leaves = '_look["train"](globals())' if trained else "[]"
    lines = (
        *setup,
        *_LOOK,
        *([f'_look["vary"](globals(), {str(varied)!r})'] if varied else []),
        f"_leaves = {leaves}",
        '_before = {n: v for n, v in globals().items() if n[:1] != "_"}',
        call,
        f'result = _look["examined"](globals(), _before, _leaves, {target!r}, {call!r})',
    )
    return "\n".join(lines) + "\n"


def of_program(source: str) -> str:
    """A program that assigns a result, with that and the gradients of its parameters and inputs as its result."""
    tail = (*_LOOK, 'result = [result, _look["trained"](globals(), result)]')
    return "\n".join((source.rstrip("\n"), *tail)) + "\n"


def of_script(source: bytes) -> bytes:
    """A program with all that can be seen at its end as its result, for a trial on torch alone."""
    tail = "\n".join((*_LOOK, 'result = _look["whole"](globals())'))
    return source.rstrip(b"\n") + b"\n" + tail.encode() + b"\n"


def unlike(want: Encoded, got: Encoded, *, own: bool) -> Aspect | None:
    """The first aspect in which an examination differs from torch's.

    Args:
        want: what torch's saw.
        got: what the other one saw.
        own: whether the other one is torch's too, so that attributes and random numbers are held as well.
    """
    for aspect, one, two in zip(_ASPECTS, items_of(want), items_of(got), strict=True):
        if (own or aspect is not Aspect.OWN) and not alike(one, two):
            return aspect
    return None


def alike(want: Encoded, got: Encoded) -> bool:
    """Whether two things that were seen are the same; what torch itself does not do is not asked."""
    if isinstance(want, str) and want.startswith(_RAISED):
        return True
    if tag(want) in LISTS and tag(got) == tag(want):
        left, right = items_of(want), items_of(got)
        return len(left) == len(right) and all(map(alike, left, right))
    return agrees(want, got)


def agrees(want: Encoded, got: Encoded, *, unnamed: bool = False) -> bool:
    """Whether a result is torch's, for a program that may ask for its Python type and for its fields too.

    Args:
        want: torch's result.
        got: the other one.
        unnamed: whether a tuple does for a named tuple, since the program asks for no field.
    """
    differs = difference(want, got)
    if differs is not None and differs.aspect != "type":
        return False
    kind, other = tag(want), tag(got)
    if not kind:
        return type(want) is type(got)
    if kind == NAMED_TUPLE and other != NAMED_TUPLE and not (unnamed and other == TUPLE):
        return False
    if kind != NAMED_TUPLE and (kind not in LISTS or kind != other):
        return True
    left, right = items_of(want), items_of(got)
    return len(left) == len(right) and all(agrees(*pair, unnamed=unnamed) for pair in zip(left, right, strict=True))
