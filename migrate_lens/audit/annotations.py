"""Annotations of one Python file: a syntax node in, the class that it names out; its torch names are noted."""

from __future__ import annotations

import ast
from typing import Any

from migrate_lens.audit.expressions import Expressions
from migrate_lens.audit.knowledge import SAME
from migrate_lens.audit.receivers import MARKS


class Annotations(Expressions):
    """What a reader adds to expressions where types are written."""

    def annotation(self, node: Any) -> str:
        """The class that an annotation names; its torch names are noted as annotations."""
        if node is None:
            return ""
        if node.__class__ is ast.Constant:
            return self.string_annotation(node)
        if node.__class__ is ast.BinOp:
            return self.annotation(node.left) or self.annotation(node.right)
        if node.__class__ is ast.Subscript:
            return self.generic_annotation(node)
        if node.__class__ not in (ast.Name, ast.Attribute):
            self.anything(node)
            return ""
        found = self.chain(node)
        if "." not in found or found[0] in MARKS or found[0] in "%$":
            return ""
        self.note("annotation", found, node.end_lineno or node.lineno, value="lazy" if self.lazy else "")
        return f"={SAME.get(found, found)}"

    def string_annotation(self, node: ast.Constant) -> str:
        """``"torch.Tensor"``: parsed only if it names torch or could be an imported class."""
        text = node.value
        if not isinstance(text, str) or len(text) > 200:
            return ""
        try:
            inner = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return ""
        for below in ast.walk(inner):
            if hasattr(below, "lineno"):
                below.lineno = below.end_lineno = node.lineno  # type: ignore[attr-defined]
        lazy, self.lazy = self.lazy, True
        found = self.annotation(inner)
        self.lazy = lazy
        return found

    def generic_annotation(self, node: ast.Subscript) -> str:
        """``Optional[X]`` is an X; ``list[X]`` a sequence of X; of other generics only the names are noted."""
        head = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        found = [self.annotation(part) for part in parts]
        self.annotation(node.value)
        if head in ("Optional", "Union", "Annotated", "Final"):
            return next((one for one in found if one), "")
        if head.lower() in ("list", "sequence", "tuple", "iterable") and found and found[0]:
            return found[0] if "[]" in found[0] else f"{found[0][0]}[]{found[0][1:]}"
        return ""
