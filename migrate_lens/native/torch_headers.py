"""The include folders of a torch build go in; the headers, macros, functions and types that torch offers come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

# ATen/ops holds one header a function, so those are known by file name and not read.
READ = ("c10", "torch/headeronly", "torch/csrc/api/include", "torch/csrc/autograd", "pybind11")
READ_FLAT = ("ATen", "ATen/core", "ATen/core/dispatch", "ATen/core/op_registration", "torch", "torch/csrc/jit")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_TYPE = re.compile(
    r"^(?:template <[^>\n]*>\s*)?(?:class|struct|enum(?: class)?|using)\s+(?:[A-Z][A-Z0-9_]+(?:\([^)]*\))?\s+)?"
    r"([A-Za-z]\w*)",
    re.MULTILINE,
)
_METHOD = re.compile(
    r"^  (?:inline |virtual )?((?:const )?[\w:<>, ]+?(?: ?&)?) ([a-z_]\w*)\([^;{]*\) const", re.MULTILINE
)


class Known(Protocol):
    """What can be asked about torch's side without compiling anything."""

    def header(self, name: str) -> bool:
        """Whether torch ships this header."""
        ...

    def macro(self, name: str) -> bool:
        """Whether some public header of torch defines this macro."""
        ...

    def qualified(self, name: str) -> str:
        """The full name of a function or type that torch declares, empty if it has none of that name."""
        ...

    def returns_tensor(self, api: str) -> bool:
        """Whether a function or method of this full name gives a tensor, whichever overload is meant."""
        ...

    def parameters(self, macro: str) -> tuple[str, ...]:
        """The named parameters of a variadic macro."""
        ...


class _Names(NamedTuple):
    """Macros, and types with their full names."""

    macros: frozenset[str]
    types: dict[str, str]


class TorchHeaders:
    """Reads the headers lazily: a build without errors never asks."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.roots = tuple(root for root in roots if root.is_dir())

    def header(self, name: str) -> bool:
        """Whether torch ships this header."""
        return any((root / name).is_file() for root in self.roots)

    def macro(self, name: str) -> bool:
        """Whether some public header of torch defines this macro."""
        return name in self._names.macros

    def qualified(self, name: str) -> str:
        """The full name of a function or type that torch declares, empty if it has none of that name."""
        if any((root / "ATen/ops" / f"{name.removesuffix('_out')}.h").is_file() for root in self.roots):
            return f"at::{name}"
        return self._names.types.get(name, "")

    def returns_tensor(self, api: str) -> bool:
        """Whether a function or method of this full name gives a tensor, whichever overload is meant."""
        owner, _, name = api.rpartition("::")
        if owner == "at::Tensor":
            return self._tensor_methods.get(name, False)
        if owner not in ("at", "torch"):
            return False
        overload = re.compile(rf"^inline (.+) {re.escape(name)}\(", re.MULTILINE)
        results: list[str] = []
        for root in self.roots:
            results += overload.findall(_text(root / "ATen/ops" / f"{name}.h"))
        return bool(results) and all(result == "at::Tensor" for result in results)

    def parameters(self, macro: str) -> tuple[str, ...]:
        """The named parameters of a variadic macro."""
        pattern = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(macro)}\(([^)]*),\s*\.\.\.\)", re.MULTILINE)
        for _, path in self._files():
            if match := pattern.search(_text(path).replace("\\\n", "")):
                return tuple(name.strip() for name in match[1].split(","))
        return ()

    @cached_property
    def _names(self) -> _Names:
        macros: set[str] = set()
        types: dict[str, str] = {}
        for root, path in self._files():
            text = _text(path)
            macros.update(_MACRO.findall(text))
            space = _namespace(path.relative_to(root).parts)
            if not space:
                continue
            for name in _TYPE.findall(text):
                types.setdefault(name, f"{space}::{name}")
        return _Names(frozenset(macros), types)

    @cached_property
    def _tensor_methods(self) -> dict[str, bool]:
        """Each method of Tensor, with whether all of its overloads give a tensor."""
        methods: dict[str, bool] = {}
        for root in self.roots:
            for part in ("ATen/core/TensorBody.h", "ATen/core/TensorBase.h"):
                for result, name in _METHOD.findall(_text(root / part)):
                    tensor = result.removeprefix("const ").removeprefix("at::").strip(" &") == "Tensor"
                    methods[name] = methods.get(name, True) and tensor
        return methods

    def _files(self) -> Iterator[tuple[Path, Path]]:
        for root in self.roots:
            for part in READ:
                yield from ((root, path) for path in sorted((root / part).rglob("*.h")))
            for part in READ_FLAT:
                yield from ((root, path) for path in sorted((root / part).glob("*.h")))


def _namespace(parts: tuple[str, ...]) -> str:
    return {"c10": "c10", "ATen": "at", "torch": "torch"}.get(parts[0], "")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class NothingKnown:
    """Stands in where the torch side left no include folder to look into."""

    def header(self, name: str) -> bool:
        """A header in torch's own folders is taken for torch's."""
        return name.startswith(("ATen/", "c10/", "torch/", "caffe2/"))

    def macro(self, name: str) -> bool:
        """A macro with torch's own prefixes is taken for torch's."""
        return name.startswith(("TORCH_", "AT_", "C10_", "PYBIND11_"))

    def qualified(self, name: str) -> str:
        """Nothing is known of plain names."""
        return ""

    def returns_tensor(self, api: str) -> bool:
        """Nothing is known of results."""
        return False

    def parameters(self, macro: str) -> tuple[str, ...]:
        """Nothing is known of macros' parameters."""
        return ()
