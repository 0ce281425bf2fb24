"""A scope gap in; packages of two or three files in which the proxy's boundary may fail in the same way, out.

Each is one mechanism. Whether it is the one at work is found by running it, as with every other reproduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from migrate_lens.model.report import Gap

MAIN = "mre.py"


class Answer(StrEnum):
    """Who answered ``import torch`` of a module that should have got the other one: the last word of a gap's detail."""

    PROXY = "proxy"
    REAL = "torch"


# The proxy is an object of another type than a module; with real torch there is none.
_NOT_PROXY = 'assert type({0}).__name__ == "module", "Paddle\'s proxy answers outside the scope"\n'


_LAZY = {
    "pkg.py": "def lazy():\n    import torch\n\n    return torch\n",
    MAIN: "import pkg\n\npkg.lazy()\nimport torch\n\n" + _NOT_PROXY.format("torch"),
}
_IMPORTED = {
    "pkg.py": "import other\n",
    "other.py": "import torch\n",
    MAIN: "import pkg\n\n" + _NOT_PROXY.format("pkg.other.torch"),
}
_LATE = {
    "pkg.py": _LAZY["pkg.py"],
    MAIN: "import sys\n\nimport torch\n\nimport pkg\n\n"
    'assert "paddle" not in sys.modules or pkg.lazy() is not torch, "real torch answers in the scope"\n',
}


def packages(gap: Gap, root: Path) -> tuple[Mapping[str, str], ...]:
    """Files by name; ``pkg`` is in the scope, nothing else is.

    Args:
        gap: the gap.
        root: the library.
    """
    match gap.detail.rpartition(" ")[2]:
        case Answer.PROXY:
            return (_IMPORTED, _LAZY) if _at_top(gap, root) else (_LAZY, _IMPORTED)
        case Answer.REAL:
            return (_LATE,)
        case _:
            return ()


def _at_top(gap: Gap, root: Path) -> bool:
    """Whether the import that was answered stands at the top level of its module."""
    for site in gap.sites:
        path = root / site.path
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        if site.line <= len(lines):
            return not lines[site.line - 1][:1].isspace()
    return False


def programs(texts: list[str]) -> Iterator[Mapping[str, str]]:
    """A diagnosed program as the package in the scope."""
    for text in texts:
        yield {"pkg.py": text, MAIN: "import pkg\n"}
