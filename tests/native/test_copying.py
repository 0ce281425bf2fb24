"""Trees with links, leftovers and odd files, in; a copy that can be built, and an untouched original, out."""

from __future__ import annotations

import os
from pathlib import Path

from migrate_lens.native.copying import copy_tree, without_libraries


def make(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def listing(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path.relative_to(root)): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in root.rglob("*")}


def test_sources_are_copied_and_leftovers_are_not(tmp_path: Path) -> None:
    kept = ["setup.py", "pkg/__init__.py", "pkg/build/tool.py", "csrc/a.cc"]
    left = [
        ".git/HEAD",
        "build/x.o",
        "dist/a.whl",
        "pkg/__pycache__/a.pyc",
        "pkg/_C.so",
        "a.egg-info/PKG-INFO",
        ".venv/x",
    ]
    root = make(tmp_path / "lib", *kept, *left)
    before = listing(root)
    copy = copy_tree(root, tmp_path / "copy")
    assert sorted(str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file()) == sorted(kept)
    assert listing(root) == before


def test_a_link_that_leaves_the_tree_still_leads_somewhere(tmp_path: Path) -> None:
    make(tmp_path, "shared/a.cc", "lib/setup.py", "lib/b.cc")
    root = tmp_path / "lib"
    (root / "csrc").symlink_to("../shared")
    (root / "same.cc").symlink_to("b.cc")
    (root / "broken").symlink_to("nowhere")
    copy = copy_tree(root, tmp_path / "deep" / "er" / "copy")
    assert (copy / "csrc/a.cc").read_text() == "shared/a.cc"
    assert os.readlink(copy / "same.cc") == "b.cc"
    assert (copy / "broken").is_symlink()


def test_pipes_are_left_out_and_read_only_files_can_be_written_in_the_copy(tmp_path: Path) -> None:
    root = make(tmp_path / "lib", "a.cc")
    os.mkfifo(root / "pipe")
    (root / "a.cc").chmod(0o444)
    root.chmod(0o555)
    try:
        copy = copy_tree(root, tmp_path / "copy")
    finally:
        root.chmod(0o755)
    assert not (copy / "pipe").exists()
    assert (copy / "a.cc").stat().st_mode & 0o200
    assert copy.stat().st_mode & 0o200


def test_a_copy_below_its_own_tree_does_not_copy_itself(tmp_path: Path) -> None:
    root = make(tmp_path / "lib", "a.cc")
    copy = copy_tree(root, root / "work" / "copy")
    assert [p.name for p in copy.rglob("*") if p.is_file()] == ["a.cc"]
    again = copy_tree(root, root / "work" / "copy")
    assert [p.name for p in again.rglob("*") if p.is_file()] == ["a.cc"]


def test_a_library_without_what_is_native_is_found_and_cannot_be_loaded(tmp_path: Path) -> None:
    root = tmp_path / "installed" / "pkg"
    root.mkdir(parents=True)
    for name in ("__init__.py", "libops.so", "_C.cpython-311-x86_64-linux-gnu.so", "_D.so"):
        (root / name).write_text("native")
    copy = without_libraries(tmp_path / "installed", tmp_path / "copy") / "pkg"
    assert {path.name: path.read_text() for path in copy.iterdir()} == {"__init__.py": "native", "libops.so": ""}
