"""One source file as a whole: bytes in; its tree, its ignore comments, its imports' place and its re-exports out."""

from __future__ import annotations

import ast
import re
import warnings

from migrate_lens.model.uses import Ignore, Lines

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


def ignores(source: bytes) -> tuple[Ignore, ...]:
    """Lines with an ignore comment and the rules that they name."""
    if b"migrate-lens:" not in source:
        return ()
    comments = []
    for number, line in enumerate(source.splitlines(), 1):
        if match := IGNORE.search(line):
            rules = (match[1] or b"").decode("utf-8", "replace").replace(",", " ").split()
            comments.append(Ignore(number, tuple(rules)))
    return tuple(comments)


def import_span(tree: ast.Module) -> Lines:
    """Where the module begins and ends to import; ``__future__`` is no import."""
    lines = [
        node.lineno
        for node in tree.body
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    ]
    return Lines(lines[0], lines[-1]) if lines else Lines()
