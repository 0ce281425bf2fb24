"""Files that break readers, in; a reading or a reason, out; never a crash."""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_samples import Audit, lines
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens.audit import report, tree
from migrate_lens.audit.native import scan_cmake, scan_native, scan_pyproject
from migrate_lens.audit.python import scan_python
from migrate_lens.audit.surface import Surface
from migrate_lens.cpp import headers
from migrate_lens.model.uses import from_plain

GOOD = "import torch\ntorch.frombuffer(b'')\n"
READ = {
    "encoding cookie": b"# -*- coding: latin-1 -*-\nimport torch\nx = '\xe9'; torch.frombuffer(x)\n",
    "byte order mark": b"\xef\xbb\xbfimport torch\n\ntorch.frombuffer(b'')\n",
    "windows lines": GOOD.replace("\n", "\r\n\r\n").encode(),
    "match statement": b"import torch\nmatch torch.frombuffer(b''):\n    case [*_]: pass\n",
    "long sum": b"import torch\nx = " + b"1 + " * 900 + b"torch.frombuffer(b'')\n",
    "100,000 lines": GOOD.encode() + b"x = 1\n" * 100_000,
    "no newline at the end": GOOD.strip().encode(),
}
SKIPPED = {
    "python 2": b"import torch\nprint 'x'\n",
    "syntax error": b"import torch\ndef f(:\n",
    "null bytes": b"import torch\n\x00\n",
    "unknown encoding": b"# -*- coding: no-such-codec -*-\nimport torch\n",
    "wrong encoding": b"import torch\nx = '\xff\xfe'\n",
    "endless nesting": b"import torch\nx = " + b"(" * 5000 + b")" * 5000 + b"\n",
    "not python at all": b"torch\n" + bytes(range(256)),
}


@pytest.mark.parametrize("name", READ)
def test_an_odd_file_is_read(name: str, audit: Audit) -> None:
    library = audit({"lib/a.py": READ[name]})
    assert library.skipped == ()
    assert len(lines(library, "torch.frombuffer:missing_api")) == 1


@pytest.mark.parametrize("name", SKIPPED)
def test_a_broken_file_is_skipped_with_its_reason_and_the_rest_is_read(name: str, audit: Audit) -> None:
    library = audit({"lib/a.py": SKIPPED[name], "lib/b.py": GOOD})
    assert [(one.path, bool(one.reason)) for one in library.skipped] == [("lib/a.py", True)]
    assert lines(library, "torch.frombuffer:missing_api") == [("lib/b.py", 2)]


def test_notebooks_links_and_huge_files_are_named(
    write: Callable[[dict[str, str | bytes]], Path], small: Surface, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({"lib/a.py": GOOD, "n.ipynb": "{}", "lib/huge.h": "x" * 200})
    os.symlink(root, root / "lib/loop")
    os.symlink(root / "lib/a.py", root / "lib/link.py")
    monkeypatch.setattr(tree, "LARGEST", 100)
    with tree.opened(str(root)) as found:
        library = report.audit_tree(found, small, None)
    assert {one.path for one in library.skipped} == {"n.ipynb", "lib/loop", "lib/link.py", "lib/huge.h"}
    assert lines(library, "torch.frombuffer:missing_api") == [("lib/a.py", 2)]


def test_a_folder_that_cannot_be_listed_is_named(
    write: Callable[[dict[str, str | bytes]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({"lib/a.py": GOOD, "locked/b.py": GOOD})
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = tree.walk(root)
    assert [(one.path, one.reason) for one in found.skipped] == [("locked", "cannot be listed: Permission denied")]


def test_a_huge_native_file_is_read(audit: Audit) -> None:
    source = "at::Tensor f();\n" * 20_000 + "TORCH_WARN(1);\n"
    library = audit({"csrc/a.h": source, "csrc/b.cpp": b"\xff\xfe\x00 at::Tensor x; /* never closed"})
    assert lines(library, "TORCH_WARN:missing_api") == [("csrc/a.h", 20_001)]


def test_an_empty_folder_has_no_gaps(audit: Audit) -> None:
    library = audit({})
    assert (library.gaps, library.grade, library.files) == ((), "A", 0)


PIECES = st.sampled_from(
    [
        b"torch",
        b"import ",
        b"from ",
        b"(",
        b")",
        b"{",
        b"}",
        b":\n    ",
        b"\n",
        b".",
        b"=",
        b"'",
        b'"',
        b"#",
        b"at::Tensor",
        b" x",
        b"class A(torch.nn.Module)",
        b"def f(x: torch.Tensor)",
        b"try",
        b"\xff",
        b"TORCH_LIBRARY(a, m)",
        b"/*",
        b"\\",
    ]
)


@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_no_source_breaks_a_reader(source: bytes) -> None:
    rows = source.count(b"\n") + 1
    for scan in (
        scan_python(source, "a.py"),
        scan_native(source),
        scan_cmake(source),
        scan_pyproject(source),
    ):
        assert all(1 <= use.line <= rows for use in scan.uses)
    headers.read_header(source.decode("latin-1"), headers.Declared())


@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_a_scan_is_the_same_after_it_was_kept(source: bytes) -> None:
    scan = scan_python(source, "a.py")
    assert from_plain(marshal.loads(marshal.dumps(scan.plain()))) == scan
