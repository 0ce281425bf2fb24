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
from typing import NamedTuple

from migrate_lens.cpp.naming import is_registry, of_framework
from migrate_lens.native import standins
from migrate_lens.native.constructs import Construct, ConstructKind, Source
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


CALLED = (ConstructKind.FUNCTION, ConstructKind.METHOD)


class Edit(NamedTuple):
    """A name that gets a stand-in's macro: where it is, and what it names."""

    line: int
    column: int
    name: str
    kind: ConstructKind


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
        constructs = [construct for construct in constructs if construct.site is not None and not construct.directive]
        if not any(hides(construct) for construct in constructs if construct.api not in self.apis):
            return False
        edits: dict[Path, list[Edit]] = defaultdict(list)
        grown = False
        for construct in constructs:
            assert construct.site is not None
            if construct.kind in CALLED and known.returns_tensor(construct.api):
                last = construct.api.rpartition("::")[2]
                edit = Edit(construct.site.line, construct.site.column, last, construct.kind)
                edits[construct.site.path].append(edit)
            elif construct.api not in self.apis and (part := self._part(construct, known)):
                self.parts.append(part)
                grown = True
            self.apis.add(construct.api)
        for path, places in edits.items():
            patched = self._patch(self.copy / path.relative_to(self.root), places)
            grown = grown or patched
        (self.copy / PRELUDE).write_text(_BASE + "".join(self.parts), encoding="utf-8")
        return grown

    def _part(self, construct: Construct, known: Known) -> str:
        """The prelude's lines for an operator, a dispatch macro or a class; empty if it has none to offer."""
        if construct.kind is ConstructKind.OPERATOR:
            return _operator(construct.api.rpartition("::operator")[2])
        if construct.api.startswith("AT_DISPATCH") and (names := known.parameters(construct.api)):
            return _DISPATCH.format(name=construct.api, parameters=", ".join(names))
        if construct.kind is not ConstructKind.TYPE or not _is_class(construct.api):
            return ""
        self.types.add(construct.api)
        space, _, name = construct.api.rpartition("::")
        template = "template <class...> " if _templated(construct, name) else ""
        return _CLASS.format(space=space, name=name, template=template)

    def _patch(self, path: Path, edits: Iterable[Edit]) -> bool:
        """Puts the stand-in's macro in place of each name; from the right, so that columns stay true within a line."""
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        patched = False
        for edit in sorted(set(edits), reverse=True):
            before = lines[edit.line - 1]
            after = _replaced(before, edit.name, edit.kind)
            lines[edit.line - 1] = after
            patched = patched or after != before
        path.write_text("".join(lines), encoding="utf-8")
        return patched


def _operator(symbol: str) -> str:
    """The prelude's lines for an operator on tensors; empty if it is neither binary nor assigns."""
    if symbol in _BINARY_OPERATORS:
        return _BINARY.format(symbol)
    return _ASSIGNING.format(symbol) if symbol in _ASSIGNING_OPERATORS else ""


def _is_class(api: str) -> bool:
    """Whether a name is that of a class in a plain namespace of a framework's, and none of the registry's."""
    space, _, name = api.rpartition("::")
    if is_registry(api) or not of_framework(api) or not name[:1].isupper():
        return False
    return re.fullmatch(r"(?:[a-z]\w*)(?:::[a-z]\w*)*", space) is not None


def hides(construct: Construct) -> bool:
    """Whether an error may keep others from being said: a call that a statement ends with, and whose type is not asked
    for by ``auto``, keeps nothing back."""
    if construct.kind not in CALLED or construct.site is None:
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


def _replaced(text: str, name: str, kind: ConstructKind) -> str:
    if kind is ConstructKind.METHOD:
        return re.sub(rf"(\.|->)\s*{re.escape(name)}\s*(?=\()", r"\1MIGRATE_LENS_METHOD", text)
    return re.sub(rf"(?<![.\w>:])(?:::)?(?:\w+\s*::\s*)*{re.escape(name)}\s*(?=\()", "MIGRATE_LENS_FUNCTION", text)


def _templated(construct: Construct, name: str) -> bool:
    """Whether the line uses the class with template arguments."""
    if construct.site is None:
        return False
    lines = construct.site.path.read_text(encoding="utf-8", errors="replace").splitlines()
    line = lines[construct.site.line - 1] if construct.site.line <= len(lines) else ""
    return re.search(rf"\b{re.escape(name)}\s*<", line) is not None
