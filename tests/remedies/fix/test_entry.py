"""Lines at the top of a file: where they go, and what they leave alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.remedies.fix.entry import build_switch, scope_line, switched_on, top_of
from migrate_lens.remedies.fix.patches import Comment, patched
from migrate_lens.remedies.port.checking import check_text

_COMMENT = Comment(
    "jane", "import torch without a switch", "it finds nothing", "the smallest scope", "delete these lines"
)


@pytest.mark.parametrize(("source", "top"), [
    (b"import a\n", b"import a\n"),
    (b'"""Doc."""\nimport a\n', b"import a\n"),
    (b'"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n', b"x = 1\n"),
    (b"# head\n\n@d\ndef f(): ...\n", b"@d\ndef f(): ...\n"),
    (b'"""Doc."""\n', b""), (b"", b""), (b"\xef\xbb\xbfx = 1\n", b"x = 1\n"),
])  # fmt: skip
def test_the_top_is_below_docstring_and_future(source: bytes, top: bytes) -> None:
    assert source[top_of(source) :] == top


@given(
    st.lists(st.sampled_from(["# ünï", "", '"""Doc."""', "from __future__ import annotations"]), max_size=3),
    st.lists(st.sampled_from(["import torch", "x = 'é'  # kept", ""]), max_size=3),
    st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_lines_are_put_in_and_every_other_byte_is_kept(
    head: list[str], tail: list[str], newline: str, bom: bool, last: bool
) -> None:
    text = newline.join([*head, *tail]) + (newline if last else "")
    source = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    try:
        ast.parse(source)
    except SyntaxError:
        return
    changed = _with_scope(source)
    ast.parse(changed)
    at = top_of(source)
    assert changed.startswith(source[:at])
    assert changed.endswith(source[at:])
    if b"\r\n" in source and b"\n" not in source.replace(b"\r\n", b""):
        assert b"\n" not in changed.replace(b"\r\n", b"")


def _with_scope(source: bytes) -> bytes:
    folder = Path(__file__).parent
    one = scope_line(_Bytes(folder / "m.py", source), ["a"])  # type: ignore[arg-type]
    return patched(source, [((one,), _COMMENT)])


class _Bytes:
    """A path with bytes of the test's own."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data, self.suffix = path, data, path.suffix

    def read_bytes(self) -> bytes:
        return self._data


def test_the_finishing_check_takes_both_lines(tmp_path: Path) -> None:
    for name, make in (("smoke.py", lambda p: scope_line(p, ["mylib", "helper"])), ("setup.py", build_switch)):
        path = tmp_path / name
        path.write_text("import torch\n")
        text = patched(path.read_bytes(), [((make(path),), _COMMENT)]).decode()
        assert list(check_text(name, text)) == []
        assert not switched_on(path)
        path.write_text(text)
        assert switched_on(path)
    assert [c.rule for c in check_text("smoke.py", text)] == ["global_compat"]


def test_an_empty_file_gets_its_line(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_bytes(b"")
    text = patched(b"", [((scope_line(tmp_path / "run.py", ["a"]),), _COMMENT)]).decode()
    assert text.startswith("# TODO(jane): remove this workaround")
    assert text.rstrip().endswith('paddle.enable_compat(scope={"a"})')
