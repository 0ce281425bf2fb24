"""Files of a user's, and a disk that fails at every step, in; all of them as before, or all as they become, out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate_lens.commands.fix import _check_clean
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.remedies.fix.writing import write_all

OLD = {
    "a.py": b"a = 1\r\n",
    "sub/b.py": "# -*- coding: latin-1 -*-\nb = '\xe9'\n".encode("latin-1"),
    "c.cpp": b"int c;\n",
}
NEW = {name: data + b"# more\n" for name, data in OLD.items()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name, data in OLD.items():
        (tmp_path / name).write_bytes(data)
        os.utime(tmp_path / name, (1_000_000, 1_000_000))
    (tmp_path / "a.py").chmod(0o755)
    (tmp_path / "sub/b.py").chmod(0o444)
    return tmp_path


def _files(tree: Path) -> dict[str, bytes]:
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_all_are_written_with_their_modes(tree: Path) -> None:
    write_all(tree, OLD, NEW)
    assert _files(tree) == NEW
    modes = [(tree / name).stat().st_mode & 0o777 for name in OLD]
    assert modes[:2] == [0o755, 0o444]


def test_times_stay_where_no_build_goes_by_them(tree: Path) -> None:
    write_all(tree, OLD, NEW)
    times = {name: (tree / name).stat().st_mtime for name in OLD}
    assert times["a.py"] == times["sub/b.py"] == 1_000_000
    assert times["c.cpp"] > 1_000_000


def test_a_file_that_is_made_has_an_ordinary_mode(tree: Path) -> None:
    (tree / "plain").write_text("")
    write_all(tree, {"shim.py": b""}, {"shim.py": b"x = 1\n"})
    assert (tree / "shim.py").read_bytes() == b"x = 1\n"
    assert (tree / "shim.py").stat().st_mode == (tree / "plain").stat().st_mode


def test_a_link_stays_a_link(tree: Path) -> None:
    (tree / "real.py").write_bytes(b"x = 1\n")
    (tree / "link.py").symlink_to("real.py")
    write_all(tree, {"link.py": b"x = 1\n"}, {"link.py": b"x = 2\n"})
    assert (tree / "link.py").is_symlink()
    assert (tree / "real.py").read_bytes() == b"x = 2\n"


def _failing(real: Callable[..., object], at: int, error: BaseException) -> Callable[..., object]:
    calls = iter(range(1000))

    def call(*args: object, **kwargs: object) -> object:
        if next(calls) == at:
            raise error
        return real(*args, **kwargs)

    return call


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
@pytest.mark.parametrize(
    ("step", "at"), [(s, n) for s in ("fsync", "replace", "link", "chmod") for n in range(3)] + [("fsync", 3)]
)
def test_whatever_fails_nothing_is_changed_and_nothing_left(
    tree: Path, monkeypatch: pytest.MonkeyPatch, step: str, at: int, error: BaseException
) -> None:
    monkeypatch.setattr(os, step, _failing(getattr(os, step), at, error))
    interrupted = isinstance(error, KeyboardInterrupt)
    if step == "link" and not interrupted:
        write_all(tree, OLD, NEW)  # a file system without links: a copy is kept instead
        assert _files(tree) == NEW
        return
    with pytest.raises(KeyboardInterrupt if interrupted else StateError) as caught:
        write_all(tree, OLD, NEW)
    monkeypatch.undo()
    assert _files(tree) == OLD
    if isinstance(caught.value, StateError):
        assert "nothing was written" in caught.value.message


def test_a_disk_that_is_full(tree: Path) -> None:
    """For real: no file of the process may be larger than the old ones."""
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from migrate_lens.remedies.fix.writing import write_all; from migrate_lens.model.errors import StateError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"old = {OLD!r}; new = {{name: data * 4096 for name, data in old.items()}}\n"
        "try: write_all(Path(sys.argv[1]), old, new)\n"
        "except StateError as error: print(error.message)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, tree], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("cannot write a.py: File too large")
    assert _files(tree) == OLD


def test_a_file_that_was_changed_in_between_is_left(tree: Path) -> None:
    (tree / "a.py").write_bytes(b"a = 2\n")
    with pytest.raises(UsageError, match="changed in the meantime"):
        write_all(tree, OLD, NEW)
    assert _files(tree) == {**OLD, "a.py": b"a = 2\n"}


def _git(tree: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@e")
    subprocess.run(["git", "-C", str(tree), *who, *arguments], check=True, capture_output=True)


def test_where_git_does_not_answer_nothing_is_written_without_force(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_clean(tree, ["a.py"])  # no git tree at all
    _git(tree, "init")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-m", "x")
    _check_clean(tree, ["a.py"])
    empty = tmp_path_factory.mktemp("empty")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(empty))
        with pytest.raises(UsageError, match="cannot be seen: git") as caught:
            _check_clean(tree, ["a.py"])
        assert "--force" in caught.value.remedy
    (empty / "git").write_text("#!/bin/sh\necho 'fatal: detected dubious ownership in repository' >&2\nexit 128\n")
    (empty / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(empty), prepend=os.pathsep)
    with pytest.raises(UsageError, match="dubious ownership"):
        _check_clean(tree, ["a.py"])
