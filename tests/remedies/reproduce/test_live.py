"""What of a program is left when only what it needs stays."""

from __future__ import annotations

import pytest

from migrate_lens.remedies.reproduce.live import imported, live, sliced

_OWN = frozenset(("lib",))


@pytest.mark.parametrize(("before", "after"), [
    ("import json\nimport lib\nresult = lib.f()\n", "import lib\nresult = lib.f()\n"),
    ("import lib\nprint(lib.g())\nresult = lib.f()\n", "import lib\nresult = lib.f()\n"),
    ("import lib\nlib.g()\nresult = lib.f()\n", "import lib\nresult = lib.f()\n"),
    ("x = [0]\nx.append(1)\nresult = x\n", "x = [0]\nx.append(1)\nresult = x\n"),
    ("import lib\nx = []\nx[0] = 1\nresult = x\n", "import lib\nx = []\nx[0] = 1\nresult = x\n"),
    ("import lib\nfor i in range(2):\n    y = i\nresult = 1\n", "import lib\nresult = 1\n"),
    ("def f():\n    return 1\n\n\ndef g(): ...\n\n\nresult = f()\n", "def f():\n    return 1\nresult = f()\n"),
    ("import lib\nassert lib.f() == 1\n", "import lib\nassert lib.f() == 1\n"),
])  # fmt: skip
def test_what_the_result_is_not_made_of_goes(before: str, after: str) -> None:
    assert sliced(before, _OWN) == after


@pytest.mark.parametrize(("before", "wanted", "after"), [
    ("import os\nX = 1\n\n\ndef f():\n    return X\n\n\ndef g(): ...\n", {"f"}, "X = 1\n\ndef f():\n    return X\n"),
    ("from lib import _C\nimport torch\n", set(), "from lib import _C\nimport torch\n"),
    ("from . import _C\n", set(), "from . import _C\n"),
    ("X = [1]\n__all__ = ['f']\n", set(), "X = [1]\n__all__ = ['f']\n"),
])  # fmt: skip
def test_what_nobody_refers_to_goes(before: str, wanted: set[str], after: str) -> None:
    assert live(before, frozenset(wanted), _OWN) == after


def test_the_files_that_a_program_imports() -> None:
    sources = {
        "lib/__init__.py": "from .a import f\n",
        "lib/a.py": "from lib.sub import g\n",
        "lib/sub/__init__.py": "from ..b import h\n",
        "lib/b.py": "",
        "lib/c.py": "",
    }
    assert imported("import lib\n", sources) == set(sources) - {"lib/c.py"}
