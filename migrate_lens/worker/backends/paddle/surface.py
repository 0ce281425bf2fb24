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
    """[kind, refused keywords, unclear keywords, fake, shadowed] of what Paddle has for one torch name."""
    kind = kind_of(value)
    keywords = [n for n in expected[1] or () if not n.startswith("_")]
    if kind not in ("function", "class") or expected[0] not in ("function", "class") or not safe_to_ask(value):
        return [kind, [], keywords, is_fake(value), False]
    return [kind, *rejected(value, keywords), is_fake(value), False]


def names(asked: dict[str, Row]) -> dict[str, Row]:
    """What the proxy has for each torch name; absent names are absent."""
    import paddle

    sys.meta_path.insert(0, Hide())
    paddle.enable_compat()
    proxy = Proxy({name for name, row in asked.items() if row[0] == "module"})
    rows = {name: answer(value, row) for name, row in asked.items() if (value := proxy.get(name)) is not Hide}
    for name, row in rows.items():
        row[4] = row[0] == "function" and is_shadowed(name, proxy.get(name))
    for owner, instance in instances(paddle).items():
        for name, row in asked.items():
            if name.startswith(f"{owner}.") and row[0] != "module":
                answer_member(rows, name, instance)
    return rows


def is_shadowed(name: str, value: object) -> bool:
    """Whether ``paddle.compat`` has a function of this name with torch's semantics and the proxy has another."""
    owner, _, last = name.replace("torch", "paddle.compat", 1).rpartition(".")
    module = sys.modules.get(owner)
    return module is not None and vars(module).get(last, value) is not value


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
    }


def answer_member(rows: dict[str, Row], name: str, instance: object) -> None:
    """The member of an instance, where the class alone gave no answer or the wrong kind."""
    member = name.rpartition(".")[2]
    kind = kind_of_member(instance, member)
    if kind is None:
        rows.pop(name, None)
    elif name not in rows:
        rows[name] = [kind, [], [], False, False]
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
