"""What makes a site optional: the test of a condition, or the handlers of a try statement, in; a word for it, out."""

from __future__ import annotations

import ast
import re

from migrate_lens.model.uses import Guard

IMPORT_ERRORS = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"))


def literal_of(node: ast.expr) -> str:
    """The text of a string literal."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_number(node: ast.expr) -> bool:
    """Whether an argument is a literal number."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)


CONDITIONS = (
    (Guard.TYPE_CHECKING, re.compile(r"TYPE_CHECKING")),
    (Guard.HASATTR, re.compile(r"\bhasattr\b|\bgetattr\b")),
    (Guard.MAIN, re.compile(r"__name__")),
    (Guard.VERSION, re.compile(r"(?<![nN])version|_ge_|_GE_|greater_or_equal|_ROCM|is_rocm|HIP\b|\bhip\b", re.I)),
    (
        Guard.CUDA,
        re.compile(r"is_available|is_cuda|is_npu|is_xpu|device_count|_available\b|has_cuda|is_scripting|is_compiling"),
    ),
    (Guard.OPTION, re.compile(r"find_spec|is_installed|HAS_|_AVAILABLE|_INSTALLED|is_initialized")),
)


def guard_of(test: ast.expr) -> Guard:
    """What a condition makes optional: asked of the names in it."""
    names = " ".join(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(test)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    if not names:
        return Guard.NONE
    return next((guard for guard, pattern in CONDITIONS if pattern.search(names)), Guard.NONE)


def guard_of_try(node: ast.Try | ast.TryStar) -> Guard:
    """``import`` if an absent module or attribute is survived."""
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            name = kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")
            if (kind is None or name in IMPORT_ERRORS) and not reraises(handler):
                return Guard.IMPORT
    return Guard.NONE


def reraises(handler: ast.ExceptHandler) -> bool:
    """Whether a handler's last word is to raise: then the site is needed after all."""
    return bool(handler.body) and isinstance(handler.body[-1], ast.Raise)
