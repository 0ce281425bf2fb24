"""What an installed Paddle has for torch's names: its torch proxy is asked for each while real torch is hidden.

Loaded by path in an interpreter that need not have migrate-lens installed (see ``worker.run.surface``).
"""

from __future__ import annotations

import importlib
import importlib.abc
import inspect
import sys
import types
from pathlib import Path
from typing import Any

from migrate_lens.worker.run.surface import Row, kind_of

BOGUS = "migrate_lens_no_such_keyword"


class Hide(importlib.abc.MetaPathFinder):
    """Keeps real torch out of this process: a name that the proxy does not answer is then absent."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "torch" or fullname.startswith("torch."):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


ANSWERS = (ImportError, AttributeError, RuntimeError, TypeError, ValueError, OSError, NotImplementedError)


class Proxy:
    """Paddle's torch proxy, asked the way a program asks it: import the module, then take the attribute."""

    def __init__(self, modules: set[str]) -> None:
        self.modules = modules
        self.cache: dict[str, object] = {}

    def get(self, name: str) -> object:
        """The object behind a dotted torch name, or ``Hide`` (never an answer of Paddle's) if there is none."""
        if name not in self.cache:
            self.cache[name] = self._import(name) if name in self.modules else self._attribute(name)
        return self.cache[name]

    def _import(self, name: str) -> object:
        try:
            return importlib.import_module(name)
        except ANSWERS:
            return self._attribute(name) if "." in name else Hide

    def _attribute(self, name: str) -> object:
        owner, _, last = name.rpartition(".")
        base = self.get(owner) if owner else Hide
        try:
            return Hide if base is Hide else getattr(base, last)
        except ANSWERS:
            return Hide


def rejected(value: Any, keywords: list[str]) -> tuple[list[str], list[str]]:
    """Keywords that a callable refuses, and those it would not tell about.

    The call carries a keyword that nothing accepts, so binding fails and the body never runs; Python and Paddle's own
    parsers name the first keyword that they do not know.
    """
    refused: list[str] = []
    unclear: list[str] = []
    for name in keywords:
        if name == "*":
            continue
        verdict = ask_keyword(value, name)
        if verdict is not None:
            (refused if verdict else unclear).append(name)
    return refused, unclear


def ask_keyword(value: Any, name: str) -> bool | None:
    """True: refused. None: accepted. False: no clear answer."""
    try:
        value(**{name: None, BOGUS: None})
    except TypeError as error:
        text = str(error)
        if BOGUS in text:
            return None
        return f"'{name}'" in text and "unexpected keyword" in text
    except (ValueError, RuntimeError, AttributeError, AssertionError, NotImplementedError, ImportError, OSError):
        return False
    return False


def is_fake(value: object) -> bool:
    """Whether Paddle itself marks the object as a stand-in without function."""
    for candidate in (value, getattr(value, "__init__", None)):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, types.CodeType) and any("fake_interface" in name for name in code.co_names):
            return True
    return False


def constructor(cls: type) -> Any:
    """What a class is called with."""
    return inspect.getattr_static(cls, "__init__")


def safe_to_ask(value: Any) -> bool:
    """Whether binding is checked before anything else happens: no open ``**kwargs`` takes part."""
    target: Any = constructor(value) if isinstance(value, type) else value
    while getattr(target, "__wrapped__", None) is not None:
        target = target.__wrapped__
    code = getattr(target, "__code__", None)
    return not isinstance(code, types.CodeType) or not code.co_flags & inspect.CO_VARKEYWORDS


def answer(value: object, expected: Row) -> Row:
    """[kind, refused keywords, unclear keywords, fake] of what Paddle has for one torch name."""
    kind = kind_of(value)
    keywords = [n for n in expected[1] or () if not n.startswith("_")]
    if kind not in ("function", "class") or expected[0] not in ("function", "class") or not safe_to_ask(value):
        return [kind, [], keywords, is_fake(value)]
    return [kind, *rejected(value, keywords), is_fake(value)]


def names(asked: dict[str, Row]) -> dict[str, Row]:
    """What the proxy has for each torch name; absent names are absent."""
    import paddle

    sys.meta_path.insert(0, Hide())
    paddle.enable_compat()
    proxy = Proxy({name for name, row in asked.items() if row[0] == "module"})
    rows = {name: answer(value, row) for name, row in asked.items() if (value := proxy.get(name)) is not Hide}
    for owner, instance in instances(paddle).items():
        for name, row in asked.items():
            if name.startswith(f"{owner}.") and row[0] != "module":
                answer_member(rows, name, instance)
    return rows


def instances(paddle: Any) -> dict[str, object]:
    """What Paddle gives a program where torch gives an instance of a class: the two classes have other names."""
    tensor = paddle.ones([2, 2])
    return {
        "torch.Tensor": tensor,
        "torch.nn.Parameter": tensor,
        "torch.dtype": tensor.dtype,
        "torch.device": getattr(tensor, "device", tensor.place),
        "torch.Size": tensor.shape,
        "torch.nn.Module": paddle.nn.Linear(1, 1),
        "torch.autograd.function.FunctionCtx": context(paddle),
    }


def context(paddle: Any) -> object:
    """What a custom operation's forward is handed."""
    seen: list[object] = []

    def forward(ctx: object, x: Any) -> Any:
        seen.append(ctx)
        return x.clone()

    def backward(ctx: object, grad: Any) -> Any:
        return grad

    own = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    layer: Any = type("Asked", (paddle.autograd.PyLayer,), own)
    layer.apply(paddle.ones([1]))
    return seen[0]


class Nearest:
    """The public name of Paddle's that is called most like a name of torch's.

    Asked of the installed Paddle: the same path in ``paddle.compat`` or in ``paddle``; else the same name, however it
    is capitalised, in the module that is most like torch's, or anywhere for what torch has at its root; for a module
    the one that has the most of its names. It is near by name: nobody has compared what the two do.
    """

    FEWEST = 3  # names that two modules share before they are called near
    ROOTS = ("torch", "torch.Tensor")
    OTHERS = ("torch.ao", "torch.onnx", "torch.nn.quantized", "torch.nn.qat", "torch.nested", "torch.quantization")

    def __init__(self, torchs: dict[str, Row]) -> None:
        self.torchs = torchs
        self.inside: dict[str, set[str]] = {}
        for name in torchs:
            owner, _, last = name.rpartition(".")
            if not last.startswith("_"):
                self.inside.setdefault(owner, set()).add(last)
        self.modules = {
            name: frozenset(public(module))
            for name, module in sorted(sys.modules.items())
            if name.partition(".")[0] == "paddle" and is_public(name) and isinstance(module, types.ModuleType)
        }
        self.by_word: dict[str, list[str]] = {}
        for module, names in self.modules.items():
            for name in sorted(names):
                self.by_word.setdefault(word(name), []).append(f"{module}.{name}")
        self.like: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The nearest name; empty where there is none."""
        if name.startswith(self.OTHERS):  # what is called as a plain layer there is none
            return ""
        kind = self.torchs[name][0]
        for root in ("paddle.compat", "paddle"):
            same = name.replace("torch", root, 1)
            if resolved(same) is not None:
                return same
        if kind == "module":
            return self.like_module(name)
        owner, _, last = name.rpartition(".")
        if last.startswith("_"):
            return ""
        places = {self.like_module(owner), owner.replace("torch", "paddle", 1)}
        found = [
            one
            for one in self.by_word.get(word(last), ())
            if kind_of(resolved(one)) == kind and (owner in self.ROOTS or one.rpartition(".")[0] in places)
        ]
        return min(found, key=lambda one: (one.rpartition(".")[2] != last, one.count("."), one), default="")

    def like_module(self, name: str) -> str:
        """The public module that has the most of a torch module's names, for its own size."""
        if name not in self.like:
            wanted = self.inside.get(name, set())
            shared = {module: len(names & wanted) for module, names in self.modules.items()}
            near = [module for module, number in shared.items() if number >= self.FEWEST]
            self.like[name] = max(near, key=lambda one: (shared[one] ** 2 / len(self.modules[one]), one), default="")
        return self.like[name]


def is_public(name: str) -> bool:
    """Whether a dotted name is part of what Paddle documents."""
    inner = ("base", "utils", "libpaddle", "incubate", "proxy")
    return not any(part.startswith("_") or part in inner for part in name.split(".")[1:])


def public(module: types.ModuleType) -> list[str]:
    """What a module hands out: what it lists; one without a list hands out nothing."""
    return [name for name in getattr(module, "__all__", ()) if not name.startswith("_") and hasattr(module, name)]


def word(name: str) -> str:
    """A name without what the two frameworks write otherwise: ``MaxPool2d``, ``MaxPool2D``."""
    return name.replace("_", "").lower() if not name.endswith("_") else name


def resolved(name: str) -> object | None:
    """What a program gets by a dotted name of Paddle's; None where there is no such thing."""
    value: object = sys.modules["paddle"]
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except ANSWERS:
            return None
    return value


def beside(asked: dict[str, Row], rows: dict[str, Row]) -> dict[str, Any]:
    """What is known beside the names: for those that the proxy has not, the nearest that Paddle has."""
    nearest = Nearest(asked)
    near = {name: nearest.of(name) for name in asked if name not in rows}
    return {"nearest": {name: found for name, found in near.items() if found}}


def answer_member(rows: dict[str, Row], name: str, instance: object) -> None:
    """The member of an instance, where the class alone gave no answer or the wrong kind."""
    member = name.rpartition(".")[2]
    kind = kind_of_member(instance, member)
    if kind is None:
        rows.pop(name, None)
    elif name not in rows:
        rows[name] = [kind, [], [], False]
    elif rows[name][0] == "value":
        rows[name][0] = kind


def kind_of_member(instance: object, name: str) -> str | None:
    """A property may hold something that can be called, so an instance is asked; None if it has no such member."""
    try:
        return "function" if callable(getattr(instance, name)) else "value"
    except AttributeError:
        return None
    except ANSWERS:
        return "value"


def identity() -> list[str]:
    """Version and commit."""
    module: Any = sys.modules["paddle"]
    return [module.version.full_version, getattr(module.version, "commit", "") or ""]


def include_dirs() -> list[str]:
    """Where the compiler finds Paddle's own headers, and those that answer for torch's."""
    importlib.import_module("paddle.utils.cpp_extension")
    root = Path(importlib.import_module("paddle").__file__ or "").parent / "include"
    compat = root / "paddle/phi/api/include/compat"
    return [str(root), str(compat), str(compat / "torch/csrc/api/include")]
