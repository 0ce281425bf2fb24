"""One source file as a whole: bytes in; its tree, its ignore comments, its imports' place and its re-exports out."""

from __future__ import annotations

import ast
import re
import warnings

IGNORE = re.compile(rb"#\s*migrate-lens:\s*ignore(?:\[([^\]\n]*)\])?")


def parse(source: bytes, path: str) -> ast.Module | str:
    """The syntax tree, or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, path)
    except SyntaxError as error:
        return f"syntax error on line {error.lineno}: {error.msg}"
    except (ValueError, LookupError) as error:
        return f"not Python text: {error}"
    except (RecursionError, MemoryError):
        return "nested too deeply to parse"


def ignores(source: bytes) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Lines with an ignore comment and the rules that they name."""
    if b"migrate-lens:" not in source:
        return ()
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        if match := IGNORE.search(line):
            names = (match[1] or b"").decode("utf-8", "replace").replace(",", " ").split()
            found.append((number, tuple(names)))
    return tuple(found)


def import_span(tree: ast.Module) -> tuple[int, int]:
    """Where the module begins and ends to import; ``__future__`` is no import."""
    found = [
        node.lineno
        for node in tree.body
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    ]
    return (found[0], found[-1]) if found else (0, 0)


def exports(scope: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Module-level names that another module could import and that stand for torch names."""
    return tuple((name, found) for name, found in scope.items() if found[:5] == "torch" and found[0] not in "=~?%$")
