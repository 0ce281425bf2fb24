"""Constructs that a unit lacks go in; a copy of the sources with throw-away stand-ins for them comes out.

g++ says nothing about ``x.select(0, 1).flatten()`` after ``select``, nothing about ``a * 2 + b`` after the ``*``, and
nothing sensible about the body of a dispatch macro or of a class whose base is missing. A stand-in of the right type
lets it go on. The copy is only ever parsed: nothing of it is compiled, linked, shown to the user or kept.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from migrate_lens.cpp.naming import is_registry, of_framework
from migrate_lens.native import standins
from migrate_lens.native.constructs import Construct, Source
from migrate_lens.native.torch_headers import Known

PRELUDE = "migrate_lens_prelude.h"
_BASE = """\
#pragma once
#include <ATen/ATen.h>
#include <type_traits>
namespace migrate_lens {
at::Tensor tensor();
}
#define MIGRATE_LENS_METHOD(...) contiguous()
#define MIGRATE_LENS_FUNCTION(...) migrate_lens::tensor()
"""
_BINARY = """\
namespace at {{
template <class T> Tensor operator{0}(const Tensor&, const T&);
template <class T, class = std::enable_if_t<!std::is_convertible_v<T, Tensor>>>
Tensor operator{0}(const T&, const Tensor&);
}}
"""
_BINARY_OPERATORS = frozenset(["+", "-", "*", "/", "%", "&", "|", "^", "==", "!=", "<", ">", "<=", ">="])
_ASSIGNING = "namespace at {{\ntemplate <class T> Tensor& operator{0}(Tensor&, const T&);\n}}\n"
_ASSIGNING_OPERATORS = frozenset(["+=", "-=", "*=", "/=", "&=", "|=", "^="])
_DISPATCH = """\
#define {name}({parameters}, ...) \\
  [&] {{ using scalar_t [[maybe_unused]] = float; using index_t [[maybe_unused]] = int64_t; return (__VA_ARGS__)(); }}()
"""
_CLASS = """\
namespace {space} {{
{template}struct {name} {{
  template <class... A> {name}(A&&...);
  {name}(const {name}&);
  template <class... A> static at::Tensor apply(A&&...);
}};
}}
"""


@dataclass(slots=True)
class Bridge:
    """A patched copy of the library's native files, growing round by round.

    Attributes:
        root: the sources that are bridged.
        copy: where the patched ones stand.
        apis: what has a stand-in already.
        types: those of them that are classes: what is said of their members follows from their absence.
    """

    root: Path
    copy: Path
    apis: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    parts: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Copies the native files, with the folders they stand in."""
        shutil.rmtree(self.copy, ignore_errors=True)
        for path in standins.native_files(self.root):
            target = self.copy / path.relative_to(self.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def original(self, path: Path) -> Path:
        """The file that a patched file is a copy of."""
        return self.root / path.relative_to(self.copy) if path.is_relative_to(self.copy) else path

    def add(self, constructs: Iterable[Construct], known: Known) -> bool:
        """Makes stand-ins for what can have one; False if there is nothing left to do."""
        constructs = [c for c in constructs if c.site is not None and not c.directive]
        fresh = [c for c in constructs if c.api not in self.apis]
        if not any(hides(c) for c in fresh):
            return False
        edits: dict[Path, list[tuple[int, int, str, str]]] = defaultdict(list)
        grown = False
        for construct in constructs:
            assert construct.site is not None
            if known.returns_tensor(construct.api) and construct.kind in ("method", "function"):
                last = construct.api.rpartition("::")[2]
                edits[construct.site.path].append((construct.site.line, construct.site.column, last, construct.kind))
            elif construct.api not in self.apis and (part := self._part(construct, known)):
                self.parts.append(part)
                grown = True
            self.apis.add(construct.api)
        for path, places in edits.items():
            grown |= self._patch(self.copy / path.relative_to(self.root), places)
        (self.copy / PRELUDE).write_text(_BASE + "".join(self.parts), encoding="utf-8")
        return grown

    def _part(self, construct: Construct, known: Known) -> str:
        """The prelude's lines for an operator, a dispatch macro or a class; empty if it has none to offer."""
        if construct.kind == "operator":
            symbol = construct.api.rpartition("::operator")[2]
            form = _BINARY if symbol in _BINARY_OPERATORS else _ASSIGNING if symbol in _ASSIGNING_OPERATORS else ""
            return form.format(symbol)
        if construct.api.startswith("AT_DISPATCH") and (names := known.parameters(construct.api)):
            return _DISPATCH.format(name=construct.api, parameters=", ".join(names))
        space, _, name = construct.api.rpartition("::")
        if (
            construct.kind != "type"
            or is_registry(construct.api)
            or not of_framework(construct.api)
            or not name[:1].isupper()
        ):
            return ""
        if not re.fullmatch(r"(?:[a-z]\w*)(?:::[a-z]\w*)*", space):
            return ""
        self.types.add(construct.api)
        template = "template <class...> " if _templated(construct, name) else ""
        return _CLASS.format(space=space, name=name, template=template)

    def _patch(self, path: Path, places: Iterable[tuple[int, int, str, str]]) -> bool:
        """Puts the stand-in's macro in place of each name; from the right, so that columns stay true within a line."""
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        patched = False
        for line, _, name, kind in sorted(set(places), reverse=True):
            before = lines[line - 1]
            lines[line - 1] = _replaced(before, name, kind)
            patched |= lines[line - 1] != before
        path.write_text("".join(lines), encoding="utf-8")
        return patched


def hides(construct: Construct) -> bool:
    """Whether an error may keep others from being said: a call that a statement ends with, and whose type is not asked
    for by ``auto``, keeps nothing back."""
    if construct.kind not in ("function", "method") or construct.site is None:
        return True
    lines = Source.lines(construct.site.path)[construct.site.line - 1 : construct.site.line + 20]
    if not lines:
        return True
    head, text = lines[0][: construct.site.column], "\n".join([lines[0][construct.site.column :], *lines[1:]])
    depth = 0
    for index, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == ")" and depth == 0:
            return not text[index + 1 :].lstrip().startswith(";") or re.search(r"\bauto\b", head) is not None
        if letter == ";" and depth <= 0:
            break
    return True


def _replaced(text: str, name: str, kind: str) -> str:
    if kind == "method":
        return re.sub(rf"(\.|->)\s*{re.escape(name)}\s*(?=\()", r"\1MIGRATE_LENS_METHOD", text)
    return re.sub(rf"(?<![.\w>:])(?:::)?(?:\w+\s*::\s*)*{re.escape(name)}\s*(?=\()", "MIGRATE_LENS_FUNCTION", text)


def _templated(construct: Construct, name: str) -> bool:
    """Whether the line uses the class with template arguments."""
    if construct.site is None:
        return False
    lines = construct.site.path.read_text(encoding="utf-8", errors="replace").splitlines()
    line = lines[construct.site.line - 1] if construct.site.line <= len(lines) else ""
    return re.search(rf"\b{re.escape(name)}\s*<", line) is not None
