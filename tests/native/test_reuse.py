"""Small libraries of plain C++, in; which of their builds are made anew and which are reused, out."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from native_samples import library

from migrate_lens.model.report import Outcome, Runtime
from migrate_lens.native import BuildRun, Shelf, UnitCheck, build_library
from migrate_lens.native.constructs import Construct, ConstructKind
from migrate_lens.native.diagnostics import Location
from migrate_lens.native.reuse import keep_checks, restore_checks

SETUP = """
from pathlib import Path
from setuptools import Extension, setup
with open({log!r}, "a") as log:
    log.write("x")
Path("tiny/where.py").write_text("WHERE = " + repr(str(Path("tiny").resolve())))
setup(name="tiny", version="1", packages=["tiny"], ext_modules=[Extension("tiny._c", ["csrc/a.cc", "csrc/b.cc"])])
"""
UNIT = 'extern "C" int {name}() {{ return {name}_value; }}\n'


@dataclass
class Tiny:
    """A library, a shelf, and how often its setup ran."""

    root: Path
    shelf: Shelf
    log: Path
    work: Path
    runs: int = 0

    def build(self, runtime: Runtime = Runtime.TORCH, shelf: Shelf | None = None) -> BuildRun:
        self.runs += 1
        work = self.work / str(self.runs)
        return build_library(
            library(self.root), runtime, Path(sys.executable), work, timeout=600, shelf=shelf or self.shelf
        )


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    root = tmp_path / "tiny"
    for name, text in {
        "setup.py": SETUP.format(log=str(tmp_path / "log")),
        "tiny/__init__.py": "",
        "csrc/value.h": "#define a_value 1\n#define b_value 2\n",
        "csrc/a.cc": '#include "value.h"\n' + UNIT.format(name="a"),
        "csrc/b.cc": '#include "value.h"\n' + UNIT.format(name="b"),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Tiny(root, Shelf(tmp_path / "shelf"), tmp_path / "log", tmp_path / "work")


def reused(run: BuildRun) -> bool:
    return any("was reused" in note for note in run.notes)


@pytest.mark.native
def test_an_unchanged_library_is_not_built_again(tiny: Tiny) -> None:
    first = tiny.build()
    ran = tiny.log.stat().st_size
    second = tiny.build()
    assert first.result.outcome is Outcome.PASSED, first.result.detail
    assert (reused(first), reused(second)) == (False, True)
    assert tiny.log.stat().st_size == ran
    assert second.target
    assert first.target
    assert [p.name for p in sorted(second.target.rglob("*"))] == [p.name for p in sorted(first.target.rglob("*"))]
    assert [(c.name, c.returncode, c.compiles) for c in second.compiles] == [
        (c.name, c.returncode, c.compiles) for c in first.compiles
    ]


@pytest.mark.native
def test_what_is_reused_speaks_of_the_new_folder(tiny: Tiny) -> None:
    first, second = tiny.build(), tiny.build()
    assert second.source
    assert first.source
    assert str(second.source) in (tiny.work / "2/build-torch/target/tiny/where.py").read_text()
    for call in second.compiles:
        assert call.source is None or call.source.is_relative_to(second.source)
        assert str(first.source) not in "".join(call.args)


@pytest.mark.native
@pytest.mark.parametrize("name", ["csrc/value.h", "tiny/__init__.py", "setup.py", "new.txt"])
def test_any_file_of_the_library_that_changes_makes_a_new_build(tiny: Tiny, name: str) -> None:
    tiny.build()
    with (tiny.root / name).open("a") as file:
        file.write("\n")
    assert not reused(tiny.build())


def compiled(run: BuildRun) -> dict[str, float]:
    """How long each unit's compiler took."""
    return {call.source.name: call.seconds for call in run.compiles if call.compiles and call.source}


def compiles_of(tiny: Tiny) -> int:
    return (tiny.root.parent / "compiles").read_text().count("x")


@pytest.fixture
def counted(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A library whose compiler leaves a mark each time it really compiles."""
    place = tiny.root.parent
    script = place / "bin" / "g++"
    script.parent.mkdir()
    mark = f'case "$*" in *" -c "*) printf x >> {place}/compiles;; esac'
    script.write_text(f'#!/bin/sh\n{mark}\nexec {shutil.which("g++")} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("CC", "g++")
    monkeypatch.setenv("CXX", "g++")
    return tiny


@pytest.mark.native
def test_only_the_unit_that_changed_is_compiled_again(counted: Tiny) -> None:
    first = counted.build()
    assert compiles_of(counted) == 2
    (counted.root / "csrc/a.cc").write_text('#include "value.h"\n' + UNIT.format(name="a") + "int other;\n")
    second = counted.build()
    assert second.passed
    assert compiles_of(counted) == 3
    assert not reused(second)
    assert sorted(compiled(second)) == sorted(compiled(first)) == ["a.cc", "b.cc"]


@pytest.mark.native
def test_a_header_that_changed_makes_its_units_anew_and_a_note_none(counted: Tiny) -> None:
    counted.build()
    (counted.root / "tiny/__init__.py").write_text("X = 1\n")
    assert counted.build().passed
    assert compiles_of(counted) == 2
    (counted.root / "csrc/value.h").write_text("#define a_value 3\n#define b_value 2\n")
    assert counted.build().passed
    assert compiles_of(counted) == 4


@pytest.mark.native
def test_another_environment_makes_a_new_build(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.build()
    monkeypatch.setenv("CXXFLAGS", "-DOTHER")
    assert not reused(tiny.build())
    monkeypatch.setenv("COLUMNS", "77")
    assert reused(tiny.build())


@pytest.mark.native
def test_no_cache_builds_anew_and_keeps_the_new_build(tiny: Tiny) -> None:
    tiny.build()
    assert not reused(tiny.build(shelf=Shelf(tiny.shelf.folder, fresh=True)))
    assert reused(tiny.build())


def cut(data: bytes) -> bytes:
    return data[:-100]


def flipped(data: bytes) -> bytes:
    return data[:500] + bytes([data[500] ^ 1]) + data[501:]


def emptied(data: bytes) -> bytes:
    return b""


@pytest.mark.native
@pytest.mark.parametrize("damage", [cut, flipped, emptied])
def test_a_damaged_entry_is_built_again(tiny: Tiny, damage: Callable[[bytes], bytes]) -> None:
    tiny.build()
    (entry,) = tiny.shelf.folder.glob("build-*")
    entry.write_bytes(damage(entry.read_bytes()))
    again = tiny.build()
    assert (again.passed, reused(again)) == (True, False)
    assert reused(tiny.build())


@pytest.mark.native
def test_a_cache_that_cannot_be_written_is_said_and_nothing_more(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = tiny.build(shelf=Shelf(tmp_path / "file" / "shelf"))
    assert run.passed
    assert any("is not kept for the next diagnosis" in note for note in run.notes)


@pytest.mark.native
def test_two_builds_at_once_end_well_and_leave_one_whole_entry(tiny: Tiny) -> None:
    runs: list[BuildRun] = []
    threads = [threading.Thread(target=lambda: runs.append(tiny.build())) for _ in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    assert [run.passed for run in runs] == [True, True]
    assert {path.suffix for path in tiny.shelf.folder.iterdir()} == {".kept"}
    assert reused(tiny.build())


@pytest.mark.native
def test_a_build_that_fails_in_the_sources_is_kept_but_not_the_baseline(tiny: Tiny) -> None:
    (tiny.root / "csrc/a.cc").write_text("int f( {\n")
    for runtime, expected in ((Runtime.TORCH, False), (Runtime.TARGET, True)):
        first, second = tiny.build(runtime), tiny.build(runtime)
        assert (first.result.outcome, reused(second)) == (Outcome.FAILED, expected)
        assert second.result.detail == first.result.detail


def test_a_compiler_that_was_killed_is_asked_again(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken-g++"
    broken.write_text("#!/bin/sh\necho 'g++: fatal error: Killed signal terminated program cc1plus' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    monkeypatch.setenv("CXX", str(broken))
    assert tiny.build(Runtime.TARGET).result.outcome is Outcome.FAILED
    assert not reused(tiny.build(Runtime.TARGET))


def test_what_is_used_stays_and_what_is_not_goes(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", limit=1200)
    for number, name in enumerate("abc"):
        shelf.put(name, lambda file: file.write(b"x" * 300))
        os.utime(shelf.folder / f"{name}.kept", (number + 1, number + 1))
    with shelf.take("a") as file:  # type: ignore[union-attr]
        assert file.read() == b"x" * 300
    shelf.put("d", lambda file: file.write(b"x" * 300))
    assert sorted(path.stem for path in shelf.folder.iterdir()) == ["a", "c", "d"]


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", limit=1000)
    assert "larger" in shelf.put("a", lambda file: file.write(b"x" * 2000))
    assert list(shelf.folder.iterdir()) == []


def test_what_a_killed_diagnosis_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.put("a", lambda file: None)
    old, new = shelf.folder / "old.part", shelf.folder / "new.part"
    old.write_text("")
    new.write_text("")
    os.utime(old, (1, 1))
    shelf.put("b", lambda file: None)
    assert (old.exists(), new.exists()) == (False, True)


def test_unit_checks_come_back_as_they_were_in_another_folder(tmp_path: Path) -> None:
    def checks(root: Path) -> tuple[UnitCheck, ...]:
        site = Location(root / "csrc/a.cc", 3, 5)
        constructs = (
            Construct("at::cumsum", ConstructKind.FUNCTION, site, f"{root}/a.h: 'cumsum' is not a member of 'at'", 2),
            Construct("torch/script.h", ConstructKind.HEADER, None, "no such file"),
        )
        return (UnitCheck("csrc/a.cc", constructs, True, "", ("torch/script.h",), ("g++", f"-I{root}/csrc")),)

    shelf = Shelf(tmp_path / "shelf")
    keep_checks(shelf, "k", checks(tmp_path / "one"), tmp_path / "one")
    assert restore_checks(shelf, "k", tmp_path / "two") == checks(tmp_path / "two")
    assert restore_checks(shelf, "other", tmp_path / "two") is None
