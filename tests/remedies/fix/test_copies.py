"""A library with links, in; a copy with other files in it, and the user's own as they were, out."""

from __future__ import annotations

from pathlib import Path

from migrate_lens.remedies.fix.stage import _linked, put


def _tree(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def _beside(tmp_path: Path) -> tuple[Path, Path]:
    """What stands beside a lone script, and a folder with links to it."""
    mine, copy = tmp_path / "mine", tmp_path / "copy"
    (mine / "pkg" / "sub").mkdir(parents=True)
    for name in ("prog.py", "helper.py", "pkg/__init__.py", "pkg/a.py", "pkg/sub/b.py"):
        (mine / name).write_text(f"# {name}\n")
    copy.mkdir()
    _linked(mine, copy, "prog.py")
    return mine, copy


def test_a_file_that_is_a_link_in_the_copy_is_replaced_there_alone(tmp_path: Path) -> None:
    mine, copy = _beside(tmp_path)
    before = _tree(mine)
    put(copy, "helper.py", b"changed\n")
    assert _tree(mine) == before
    assert (copy / "helper.py").read_text() == "changed\n"


def test_a_file_below_a_folder_that_is_a_link_too(tmp_path: Path) -> None:
    mine, copy = _beside(tmp_path)
    before = _tree(mine)
    put(copy, "pkg/sub/b.py", b"changed\n")
    put(copy, "pkg/new.py", b"new\n")
    assert _tree(mine) == before
    assert (copy / "pkg/sub/b.py").read_text() == "changed\n"
    assert (copy / "pkg/a.py").read_text() == "# pkg/a.py\n"
    assert (copy / "pkg/new.py").read_text() == "new\n"


def test_a_read_only_file_is_replaced_in_the_copy(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old\n")
    (tmp_path / "a.py").chmod(0o444)
    put(tmp_path, "a.py", b"new\n")
    assert (tmp_path / "a.py").read_text() == "new\n"
