"""What a statement makes of a call's result, as far as nothing else is needed."""

from __future__ import annotations

import ast

import pytest

from migrate_lens.programs.sources import of_tree
from migrate_lens.remedies.fix.uses import use_of

_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import int32\nimport numpy\n"


@pytest.mark.parametrize(("line", "use"), [
    pytest.param("n = CALL(x).item()", "{0}.item()", id="method"),
    pytest.param("n = CALL(x).sum(dim=-1).round().to(int32)", "{0}.sum(dim=-1).round().to(torch.int32)", id="chain"),
    pytest.param("n = 2 * CALL(x) + 1", "2 * {0} + 1", id="operators"),
    pytest.param("n = int(CALL(x))", "int({0})", id="argument of a builtin"),
    pytest.param("n = F.relu(CALL(x), inplace=False)", "torch.nn.functional.relu({0}, inplace=False)", id="framework"),
    pytest.param("n = CALL(x)[0].shape", "{0}[0].shape", id="item and attribute"),
    pytest.param("if CALL(x) > 3: pass", "bool({0} > 3)", id="condition"),
    pytest.param("n = CALL(x).add(y).item()", "", id="needs another value"),
    pytest.param("n = CALL(x).sum().add(y)", "{0}.sum()", id="as far as it goes"),
    pytest.param("n = exists(CALL(x))", "", id="function of the program"),
    pytest.param("n = numpy.asarray(CALL(x))", "", id="another library"),
    pytest.param("n = CALL(x)", "", id="kept"),
    pytest.param("n = [CALL(x) for x in y]", "", id="scope"),
    pytest.param("n = a and CALL(x)", "", id="may not be reached"),
    pytest.param("n = CALL(x).map(lambda int: int)", "", id="scope in an argument"),
    pytest.param("len = 3\nn = CALL(x) + len", "", id="name that the file has taken"),
])  # fmt: skip
def test_a_use_is_as_wide_as_what_is_known(line: str, use: str) -> None:
    tree = ast.parse(_HEAD + line)
    call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "CALL")
    assert _plain(use_of(of_tree(tree), call)) == _plain(use)


def _plain(text: str) -> str:
    return ast.unparse(ast.parse(text.replace("{0}", "r")))
