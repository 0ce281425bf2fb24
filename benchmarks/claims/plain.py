"""Runs in a plain interpreter of one side: a job as JSON in; what a program can see there, or what names answer, out.

usage: python plain.py JOB.json OUT.json

Nothing of migrate-lens is imported: this is the second opinion. A job is ``{"side", "paths"}`` and one of

- ``program``: run it; ``follow`` asks for everything that is left in its globals, with a backward of its own; else
  only the mapping ``result`` is described;
- ``names``, ``keywords``: which of them are there;
- ``heal``: run a program with the statement at a line put aside, and what that made under torch in its place;
- ``capture``: what statements of a library are given under torch, and ``replay``: run them again with that on a side.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import inspect
import json
import math
import random
import re
import sys
import textwrap
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace, TracebackType
from typing import Any

MOST = 20_000  # elements of one tensor that are written down
LARGEST = 200_000  # elements of one tensor that are handed on


def main(job_file: str, out_file: str) -> int:
    """Do one job."""
    job = json.loads(Path(job_file).read_text())
    sys.path[:0] = job["paths"]
    if job["side"] == "paddle":
        import paddle

        paddle.disable_signal_handler()
        paddle.enable_compat()
    work = next(work for key, work in JOBS.items() if key in job)
    Path(out_file).write_text(json.dumps(work(job)))
    return 0


# -- a program ---------------------------------------------------------------------------------------------------------


def ran(job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a program as a person runs it; how it ended, which lines of the watched files ran, and what can be seen."""
    seeded(job["side"], job["seed"])
    if job["dtype"]:
        torch = importlib.import_module("torch")
        torch.set_default_dtype(getattr(torch, job["dtype"]))
    lines: set[tuple[str, int]] = set()
    code = compile(Path(job["program"]).read_text(), job["program"], "exec", dont_inherit=True)
    space = own_main(job["program"])
    ending = ended(code, space, watching(frozenset(job["watch"]), lines))
    seen: dict[str, Any] = {}
    result = space.get("result")
    for name, value in result.items() if isinstance(result, dict) else [("result", result)]:
        seen.update(shown(f"result.{name}", value, 0))
    if job["follow"]:
        left = {name: space[name] for name in sorted(set(space) - {"result"}) if not name.startswith("__")}
        seen.update(followed(left, result if isinstance(result, dict) else {"result": result}))
    return {"ending": ending, "lines": sorted(lines), "seen": seen}


def own_main(program: str) -> dict[str, Any]:
    """The globals of a main module that has nothing of this one."""
    module = ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    return module.__dict__


def seeded(side: str, seed: int) -> None:
    """The same draws in every run."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if side == "torch":
        import torch

        torch.manual_seed(seed)
    else:
        import paddle

        paddle.seed(seed)


def watching(files: frozenset[str], lines: set[tuple[str, int]]) -> Any:
    """A trace function that notes the lines of some files."""

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        return line(frame, "line", _)

    return call


def ended(code: CodeType, space: dict[str, Any], trace: Any, text: str = "") -> dict[str, Any]:
    """How a program ended: the exception with its text and its frames, or nothing."""
    sys.settrace(trace)
    try:
        exec(code, space)
    except BaseException as error:  # noqa: BLE001 - whatever ends a program is a result
        sys.settrace(None)
        frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)][1:]
        place = spot(error.__traceback__, code, text)
        return {"error": type(error).__name__, "message": str(error)[:2000], "frames": frames, "spot": place}
    finally:
        sys.settrace(None)
    return {"error": "", "message": "", "frames": []}


def spot(trace: TracebackType | None, code: CodeType, text: str) -> str:
    """The expression of a program that failed, of the innermost of its own frames."""
    found = ""
    while trace is not None:
        own = trace.tb_frame.f_code
        if own.co_filename == code.co_filename:
            first, last, start, end = list(own.co_positions())[trace.tb_lasti // 2]
            if text and first is not None and None not in (last, start, end):
                lines = [line.encode() for line in text.splitlines()][first - 1 : last]
                lines[-1], lines[0] = lines[-1][:end], lines[0][start:] if len(lines) > 1 else lines[0][start:end]
                found = b"\n".join(lines).decode()
        trace = trace.tb_next
    return found


# -- what can be seen --------------------------------------------------------------------------------------------------


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of the framework at hand."""
    for name in ("torch", "paddle"):
        module = sys.modules.get(name)
        kind = getattr(module, "Tensor", None)
        if isinstance(kind, type) and isinstance(value, kind):
            return True
    return False


def is_module(value: Any) -> bool:
    """Whether a value is a layer: it has parameters and a state."""
    return not isinstance(value, type) and hasattr(value, "state_dict") and hasattr(value, "named_parameters")


def shown(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """A value and what is in it, each under a path."""
    if is_tensor(value):
        yield name, tensor(value)
    elif is_module(value):
        yield from layer(name, value)
    elif isinstance(value, (list, tuple)) and depth < 4:
        yield name, {"kind": f"{'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}"}
        for index, one in enumerate(value):
            yield from shown(f"{name}[{index}]", one, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        yield name, {"kind": f"dict of {sorted(map(str, value))}"}
        for key, one in value.items():
            yield from shown(f"{name}[{key!r}]", one, depth + 1)
    elif value is None or isinstance(value, (bool, int, float, str, complex)):
        yield name, {"kind": type(value).__name__, "values": [value if isinstance(value, (int, float)) else str(value)]}
    else:
        yield name, {"kind": type(value).__name__}


def tensor(value: Any) -> dict[str, Any]:
    """Everything that a program can see of a tensor."""
    needs = needs_grad(value)
    if not hasattr(value, "stop_gradient") and value.is_meta:
        return {"kind": "meta tensor", "dtype": str(value.dtype), "shape": [int(n) for n in value.shape]}
    grad = value.grad if needs and value.is_leaf else None
    return {
        "kind": "tensor",
        "dtype": str(value.dtype).rpartition(".")[2],
        "shape": [int(n) for n in value.shape],
        "requires_grad": needs,
        "values": numbers(value),
        "grad": None if grad is None else numbers(grad),
    }


def numbers(value: Any) -> list[float]:
    """The elements of a tensor, flat; complex ones as pairs."""
    array = value.detach()
    kind = str(array.dtype).rpartition(".")[2]
    if kind in ("bfloat16", "float16") or kind.startswith("float8"):
        array = array.astype("float32") if hasattr(array, "stop_gradient") else array.float()
    flat = array.cpu().numpy().reshape(-1)[:MOST]
    if "complex" in kind:
        return [part for one in flat.tolist() for part in (one.real, one.imag)]
    return [float(one) for one in flat.tolist()]


def layer(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A module: its mode, the keys of its state, all parameters and buffers."""
    yield name, {"kind": f"module {type(value).__name__}", "values": [f"training {getattr(value, 'training', None)}"]}
    state = value.state_dict()
    yield f"{name}.state_dict", {"kind": f"keys {list(state)}"}
    for key, one in value.named_parameters():
        yield f"{name}.{key}", tensor(one)
    for key, one in state.items():
        if is_tensor(one):
            yield f"{name}.state_dict[{key!r}]", tensor(one)


def followed(left: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Under torch: what is left in the globals, which memory is shared, and a backward from all that has a graph."""
    found: dict[str, Any] = {}
    for name, value in left.items():
        for path, one in shown(name, value, 0):
            yield path, one
        found.update(tensors(name, value, 0))
    found.update({path: one for name, value in result.items() for path, one in tensors(f"result.{name}", value, 0)})
    yield "shared memory", {"kind": "groups", "values": sorted(map(str, groups(found)))}
    leaves = {path: one for path, one in found.items() if one.is_leaf and one.requires_grad}
    for path, one in found.items():
        if one.grad_fn is not None and one.dtype.is_floating_point and not one.is_meta:
            yield f"backward({path})", differentiated(one, leaves)


def tensors(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """All tensors in a value."""
    if is_tensor(value):
        yield name, value
    elif is_module(value):
        yield from ((f"{name}.{key}", one) for key, one in value.named_parameters())
    elif isinstance(value, (list, tuple)) and depth < 4:
        for index, one in enumerate(value):
            yield from tensors(f"{name}[{index}]", one, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for key, one in value.items():
            yield from tensors(f"{name}[{key!r}]", one, depth + 1)


def groups(found: Mapping[str, Any]) -> list[list[str]]:
    """Names of tensors that stand on one storage."""
    at: dict[int, list[str]] = {}
    for path, one in found.items():
        if one.layout is sys.modules["torch"].strided and one.numel() and not one.is_meta:
            at.setdefault(one.untyped_storage().data_ptr(), []).append(path)
    return [sorted(paths) for paths in at.values() if len(paths) > 1]


def differentiated(value: Any, leaves: Mapping[str, Any]) -> dict[str, Any]:
    """The gradients of the sum of a tensor by every leaf, or why there are none."""
    torch = sys.modules["torch"]
    try:
        grads = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True, retain_graph=True)
    except RuntimeError as error:
        return {"kind": f"no backward: {str(error).split('.')[0][:80]}"}
    reached = [path for path, grad in zip(leaves, grads, strict=True) if grad is not None]
    flat = [n for grad in grads if grad is not None for n in numbers(grad)]
    return {"kind": f"reaches {reached}", "values": flat[:MOST]}


# -- a reproduction without the statement that fails -----------------------------------------------------------------


def healed(job: Mapping[str, Any]) -> dict[str, Any]:
    """Under torch, what the statement at a line makes; under Paddle, how the rest ends when that is handed to it."""
    tree = ast.parse(job["heal"])
    place = next(i for i, one in enumerate(tree.body) if one.lineno <= job["line"] <= (one.end_lineno or one.lineno))
    space: dict[str, Any] = {"__name__": "__main__", "__file__": "mre.py"}
    exec(compile(ast.Module(tree.body[:place], []), "mre.py", "exec", dont_inherit=True), space)
    if job["side"] == "torch":
        before = {name: fingerprint(value) for name, value in space.items()}
        exec(compile(ast.Module([tree.body[place]], []), "mre.py", "exec", dont_inherit=True), space)
        changed = {n: v for n, v in space.items() if before.get(n) != fingerprint(v) and not n.startswith("__")}
        made = {name: plain(value) for name, value in changed.items()}
        return {"made": made, "rest": len(tree.body) - place - 1, "whole": all(v is not None for v in made.values())}
    for name, value in job["made"].items():
        space[name] = rebuilt(value)
    rest = ast.Module(tree.body[place + 1 :], [])
    return {"ending": ended(compile(rest, "mre.py", "exec", dont_inherit=True), space, None)}


def fingerprint(value: Any) -> object:
    """What changes when an object is made anew or written into."""
    if not is_tensor(value):
        return id(value)
    return (id(value), value._version, id(value.grad) if value.is_leaf else 0)


def plain(value: Any) -> dict[str, Any] | None:
    """A tensor or a plain value in JSON; None for anything else, and for what has a gradient, which cannot be set."""
    if is_tensor(value) and value.is_leaf and value.grad is not None:
        return None
    try:
        return written(value, graph=True)
    except Unwritable:
        return None


class Unwritable(Exception):  # noqa: N818 - it is a result, not an error
    """A value that cannot be handed to the other side."""


def written(value: Any, *, graph: bool) -> dict[str, Any]:
    """A value in JSON, so that ``rebuilt`` makes the like of it on either side.

    Raises:
        Unwritable: it cannot be.
    """
    torch = sys.modules["torch"]
    if is_tensor(value):
        return written_tensor(value, graph=graph)
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"plain": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).rpartition(".")[2]}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [written(one, graph=graph) for one in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: written(one, graph=graph) for key, one in value.items()}}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    if isinstance(value, FunctionType) and not value.__module__.startswith("torch"):
        with contextlib.suppress(Unwritable):
            return {"source": source_of(value), "name": value.__name__}
    return {"import": home(value)}


def source_of(function: FunctionType) -> str:
    """A function that needs nothing but torch.

    Raises:
        Unwritable: it needs more, or its text is not there.
    """
    names = set(function.__code__.co_names) - set(dir(builtins))
    given = {name for name in names if name in function.__globals__}
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise Unwritable(f"{function.__name__}: {error}") from error
    if function.__closure__ or given - {"torch"} or not text.startswith("def "):
        raise Unwritable(f"{function.__name__}, which needs {', '.join(sorted(given)) or 'what is around it'}")
    return text


def written_tensor(value: Any, *, graph: bool) -> dict[str, Any]:
    """A dense tensor of moderate size."""
    strided = value.layout is sys.modules["torch"].strided
    if not strided or value.is_complex() or value.numel() > LARGEST or value.device.type != "cpu":
        raise Unwritable(f"a tensor of {value.numel()} elements, {value.layout}, on {value.device}")
    dtype = str(value.dtype).rpartition(".")[2]
    needs = bool(value.requires_grad and graph)
    return {"tensor": value.detach().tolist(), "shape": list(value.shape), "dtype": dtype, "requires_grad": needs}


def home(value: Any) -> str:
    """Where a function or class is imported from."""
    name = getattr(value, "__name__", "")
    known = ("torch", "torch.nn.functional", "torch.linalg", "torch.nn", getattr(value, "__module__", "") or "")
    for module in known:
        if name and getattr(sys.modules.get(module), name, None) is value:
            return f"{module}.{name}"
    raise Unwritable(f"a {type(value).__name__}")


def rebuilt(value: Mapping[str, Any]) -> Any:
    """What ``written`` described, on the side at hand."""
    (kind, given), *_ = value.items()
    torch = importlib.import_module("torch")
    match kind:
        case "tensor":
            made = torch.tensor(given, dtype=getattr(torch, value["dtype"])).reshape(value["shape"])
            return made.to("meta") if value.get("meta") else needing(made, value["requires_grad"])
        case "dtype":
            return getattr(torch, given)
        case "tuple" | "list":
            return (tuple if kind == "tuple" else list)(rebuilt(one) for one in given)
        case "dict" | "space":
            made = {key: rebuilt(one) for key, one in given.items()}
            return SimpleNamespace(**made) if kind == "space" else made
        case "slice":
            return slice(*given)
        case "source":
            space = {"torch": torch}
            exec(compile(given, "source.py", "exec", dont_inherit=True), space)
            return space[value["name"]]
        case "module":
            return importlib.import_module(given)
        case "import":
            pair = found(given)
            if pair is None:
                raise Unwritable(f"no {given}")
            return pair[0]
    return given


def needing(made: Any, needs: bool) -> Any:
    """A tensor that asks for a gradient, or does not."""
    if hasattr(made, "stop_gradient"):
        made.stop_gradient = not needs
        return made
    return made.requires_grad_(needs)


# -- statements of a library, with what they were given ----------------------------------------------------------------


def captured(job: Mapping[str, Any]) -> list[Any]:
    """For each place, what its names stood for when it was reached, at most four times; or why that cannot be said."""
    seeded("torch", job["seed"])
    places = {(path, line): index for index, (path, line, _) in enumerate(job["places"])}
    kept: list[list[Any]] = [[] for _ in job["places"]]

    def line(frame: FrameType, event: str, _: Any) -> Any:
        index = places.get((frame.f_code.co_filename, frame.f_lineno))
        if event == "line" and index is not None and len(kept[index]) < 4:
            sys.settrace(None)
            kept[index].append(snapshot(frame, job["places"][index][2]))
            sys.settrace(call)
        return line

    files = {path for path, _, _ in job["places"]}

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename in files else None

    code = compile(Path(job["capture"]).read_text(), job["capture"], "exec", dont_inherit=True)
    ended(code, own_main(job["capture"]), call)
    return kept


def snapshot(frame: FrameType, wanted: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What names stand for in a frame; of an object that cannot be written, the attributes that are asked for."""
    graph = sys.modules["torch"].is_grad_enabled()
    space: dict[str, Any] = {}
    try:
        for name, attributes in wanted.items():
            given = frame.f_locals.get(name, frame.f_globals.get(name, Ellipsis))
            if given is Ellipsis:
                continue
            try:
                space[name] = written(given, graph=graph)
            except Unwritable:
                if not attributes or is_tensor(given) or frameworks_own(given, attributes):
                    raise
                had = [one for one in attributes if hasattr(given, one)]
                space[name] = {"space": {one: written(getattr(given, one), graph=graph) for one in had}}
    except (Unwritable, AttributeError) as error:
        return {"unwritten": f"{name}: {error}"}
    return {"space": space}


def frameworks_own(value: Any, attributes: Sequence[str]) -> bool:
    """Whether attributes of a context are those of the framework, which are others on the other side."""
    kind = sys.modules["torch"].autograd.function.FunctionCtx
    return isinstance(value, kind) and not all(name in vars(value) for name in attributes)


def replays(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Several replays, one after the other."""
    return [replayed(job["side"], one) for one in job["replay"]]


def replayed(side: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run statements with what they were given; what they made, and the gradients of what they were given."""
    try:
        space = {name: rebuilt(varied(one, job["variant"])) for name, one in job["space"].items()}
    except Exception as error:  # noqa: BLE001 - the other side may lack anything
        return {"unbuilt": f"{type(error).__name__}: {str(error)[:200]}"}
    leaves = {name: one for name, one in space.items() if is_tensor(one) and needs_grad(one)}
    space |= {name: one.clone() for name, one in leaves.items()}
    seeded(side, 0)
    ending = ended(compile(job["text"], "replayed.py", "exec", dont_inherit=True), space, None, job["text"])
    seen: dict[str, Any] = {}
    if not ending["error"]:
        for name in job["made"]:
            seen.update(shown(name, space.get(name), 0))
            seen.update(tried(name, space.get(name)))
        seen.update(gradients(leaves, [one for name in job["made"] for _, one in tensors(name, space.get(name), 0)]))
    return {"ending": ending, "seen": seen}


def varied(value: Any, variant: str) -> Any:
    """What was given, with tensors of another dtype, on another device, or of one number so that everything is tied."""
    if isinstance(value, list):
        return [varied(one, variant) for one in value]
    if not isinstance(value, dict):
        return value
    if variant == "meta" and "tensor" in value:
        return {**value, "meta": True}
    if value.get("dtype") == "float32" and "tensor" in value:
        if variant == "ties":
            return {**value, "tensor": [0.5] * math.prod(value["shape"])}
        return {**value, "dtype": variant or "float32"}
    return {key: varied(one, variant) for key, one in value.items()}


def needs_grad(value: Any) -> bool:
    """Whether a tensor asks for a gradient."""
    return bool(not value.stop_gradient if hasattr(value, "stop_gradient") else value.requires_grad)


def tried(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a function does to a small tensor that asks for a gradient; it is the function that was made."""
    if callable(value) and not isinstance(value, type) and not is_module(value) and not is_tensor(value):
        yield name, {"kind": "function"}
        torch = importlib.import_module("torch")
        given = needing(torch.tensor([1.0, 2.0]), True)
        try:
            yield from shown(f"{name}(x)", value(given * 1), 0)
        except Exception as error:  # noqa: BLE001 - it may want something else
            yield f"{name}(x)", {"kind": f"raises {type(error).__name__}"}


def gradients(leaves: Mapping[str, Any], made: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Gradients of the sum of everything made, by everything given."""
    for one in made:
        if needs_grad(one) and not one.is_leaf:
            try:
                one.sum().backward(retain_graph=True)
            except Exception as error:  # noqa: BLE001 - a backward may raise anything
                yield "backward", {"kind": f"raises {type(error).__name__}"}
    for name, leaf in leaves.items():
        yield f"gradient of {name}", {"kind": "gradient", "grad": None if leaf.grad is None else numbers(leaf.grad)}


# -- names -------------------------------------------------------------------------------------------------------------


def asked(job: Mapping[str, Any]) -> dict[str, Any]:
    """For each name whether it resolves, for each keyword whether it is taken: yes, no, or a reason to say neither."""
    import torch

    held = instances(torch)
    names = {name: resolves(name, held) for name in job["names"]}
    keywords = {f"{name}({word}=)": takes(name, word, held) for name, word in job["keywords"]}
    return {"names": names, "keywords": keywords}


def instances(torch: Any) -> dict[str, Any]:
    """An object of each class whose members are asked for on an object."""
    ones = torch.ones([2, 2])
    held: dict[str, Any] = {}

    class Caught(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            held["torch.autograd.function.FunctionCtx"] = ctx
            return grad

    given = torch.ones([2])
    given.stop_gradient = False
    given.requires_grad = True
    Caught.apply(given).sum().backward()
    return held | {"torch.Tensor": ones, "torch.nn.Module": torch.nn.Linear(2, 2), "torch.dtype": ones.dtype,
            "torch.device": getattr(ones, "device", None) or ones.place, "torch.Size": ones.shape}  # fmt: skip


def resolves(name: str, held: Mapping[str, Any]) -> str:
    """Whether a dotted name is there, as a program would come by it."""
    owner, _, last = name.rpartition(".")
    if owner in held:
        return "yes" if there(held[owner], last) else "no"
    if found(name) is not None:
        return "yes"
    made = found(owner)
    return "yes" if made is not None and isinstance(made[0], type) and kept_by(made[0], last) else "no"


def kept_by(kind: type, name: str) -> bool:
    """Whether objects of a class have an attribute: one that it declares, or that its own code sets."""
    for one in kind.__mro__[:-1]:
        if name in getattr(one, "__annotations__", {}):
            return True
        try:
            source = inspect.getsource(one)
        except (OSError, TypeError):
            continue
        if re.search(rf"\bself\.{re.escape(name)}\b[^=\n]*=[^=]", source):
            return True
    return False


def there(value: Any, name: str) -> bool:
    """Whether an object has a member, be it one that raises when it is read in this state."""
    try:
        getattr(value, name)
    except AttributeError:
        return hasattr(type(value), name)
    except Exception:  # noqa: BLE001 - it is there, and does not like to be read now
        return True
    return True


def found(name: str) -> tuple[Any] | None:
    """What a dotted name stands for, in a tuple of one; modules are imported as far as they are modules."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:size]))
            for part in parts[size:]:
                value = getattr(value, part)
        except Exception:  # noqa: BLE001 - an import may raise anything; then it is not there
            continue
        return (value,)
    return None


def takes(name: str, word: str, held: Mapping[str, Any]) -> str:
    """Whether a call takes a keyword: asked with the keyword alone, then behind a tensor."""
    owner, _, last = name.rpartition(".")
    pair = (getattr(held[owner], last, None),) if owner in held else found(name)
    if pair is None or pair[0] is None:
        return "the name is not there"
    answers = {said(pair[0], word, given) for given in ((), (held["torch.Tensor"],))}
    if "no" in answers:
        return "no"
    return "yes" if "yes" in answers else sorted(answers)[0]


def said(call: Any, word: str, given: tuple[Any, ...]) -> str:
    """What one call says about a keyword."""
    try:
        call(*given, **{word: None})
    except TypeError as error:
        return told(str(error), word)
    except Exception as error:  # noqa: BLE001 - it went past the keyword
        return f"{type(error).__name__} before it could be seen"
    return "yes"


def told(message: str, word: str) -> str:
    """Whether a TypeError refuses the keyword, or something else."""
    first, _, rest = message.partition("expected one of")
    if "invalid combination" in first:
        return "yes" if f" {word} " in rest.replace(",", " ").replace("=", " ").replace(")", " ") else "no"
    if "unexpected keyword" in message or "invalid keyword" in message or "is an invalid" in message:
        return "no" if word in message else "another keyword is refused"
    if "missing" in message or "argument" in message:
        return "yes"
    return f"TypeError: {message[:60]}"


JOBS = {"program": ran, "heal": healed, "capture": captured, "replay": replays, "names": asked}

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
