"""Two revisions of a port in; its edits by layer, and edits that have nothing to do with the port, out."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Layer

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_BUILD = re.compile(
    r"(^|/)(setup\.(py|cfg)|pyproject\.toml|CMakeLists\.txt|MANIFEST\.in|requirements[\w-]*\.txt|.*\.cmake)$"
)
_NATIVE = re.compile(r"\.(cc|cpp|cxx|cu|cuh|h|hpp)$")
_COMMENT = re.compile(r"^\s*(#|//|\*|/\*|$)")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One edit: where it is now, and the lines before and after."""

    path: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def layer(self) -> Layer:
        """The layer that it touches."""
        text = "\n".join((*self.removed, *self.added))
        if _BUILD.search(self.path):
            return Layer.BUILD
        if re.search(r"TORCH_LIBRARY|torch\.(ops|library)\b", text):
            return Layer.OP_REGISTRY
        if _NATIVE.search(self.path):
            return Layer.CPP_API
        if re.search(r"\bpaddle\b|enable_compat|import torch\b|from torch\b", text):
            return Layer.PYTHON_PROXY
        return Layer.PYTHON_INTERFACE

    @property
    def churn(self) -> str:
        """Why it has nothing to do with the port; empty where it may."""
        before, after = (_squeezed(lines) for lines in (self.removed, self.added))
        if before == after:
            return "white space only"
        if all(_COMMENT.match(line) for line in (*self.removed, *self.added)):
            mentions = re.search(r"(?i)workaround|paddle|compat", "\n".join(self.added))
            return "" if mentions else "comments only"
        return _same_syntax(self.removed, self.added)


def _squeezed(lines: tuple[str, ...]) -> str:
    return re.sub(r"\s+", "", "".join(lines))


def _same_syntax(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    import textwrap

    try:
        trees = [ast.dump(ast.parse(textwrap.dedent("\n".join(lines)))) for lines in (before, after)]
    except (SyntaxError, ValueError):
        return ""
    return "formatting only" if trees[0] == trees[1] and before and after else ""


def hunks(root: Path, base: str) -> tuple[Hunk, ...]:
    """All edits of a working tree since a revision; files that are new count whole.

    Raises:
        UsageError: it is no git tree, or there is no such revision.
    """
    done = subprocess.run(
        ["git", "-C", str(root), "diff", "--unified=0", "--no-color", "--no-ext-diff", "--relative", base, "--", "."],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode:
        reason = done.stderr.strip().splitlines()[:1]
        raise UsageError(f"--base {base}: {reason[0] if reason else 'git failed'}", "name a commit of the tree at PATH")
    return tuple(_hunks(done.stdout))


def _hunks(diff: str) -> Iterator[Hunk]:
    path, line = "", 0
    removed: list[str] = []
    added: list[str] = []
    for text in diff.splitlines():
        start = _HUNK.match(text)
        if (start or text.startswith("diff ")) and (removed or added):
            yield Hunk(path, line, tuple(removed), tuple(added))
            removed, added = [], []
        if start:
            line = int(start[1])
        elif text.startswith("+++ "):
            path = text[6:] if text.startswith("+++ b/") else path
        elif text.startswith("--- "):
            path = text[6:] if text.startswith("--- a/") else path
        elif text.startswith("-"):
            removed.append(text[1:])
        elif text.startswith("+"):
            added.append(text[1:])
    if removed or added:
        yield Hunk(path, line, tuple(removed), tuple(added))


def changed_lines(found: tuple[Hunk, ...]) -> dict[str, set[int]]:
    """Lines that were added or changed, by path."""
    lines: dict[str, set[int]] = {}
    for hunk in found:
        lines.setdefault(hunk.path, set()).update(range(hunk.line, hunk.line + len(hunk.added)))
    return lines
