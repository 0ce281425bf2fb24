"""Records of compilers that a program called while it ran, in; the constructs behind a loader's failure, out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from native_samples import library

from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Runtime, Site
from migrate_lens.native import JustInTime, Shelf
from migrate_lens.native.jit import GENERATED, SIDES

PROGRAM = '''\
from torch.utils.cpp_extension import load_inline

OTHER = """
  auto y = at::cumsum(x, 0);
"""
SOURCE = """
at::Tensor scan(const at::Tensor& x) {
  auto y = at::cumsum(x, 0);
  return y;
}
"""
ext = load_inline(name="ext", cpp_sources=[SOURCE], functions=["scan"])
'''
MADE = "#include <torch/extension.h>\n" + PROGRAM.split('SOURCE = """')[1].split('"""')[0]
LINE = 1 + MADE.splitlines().index("  auto y = at::cumsum(x, 0);")


@pytest.fixture
def jit(tmp_path: Path) -> JustInTime:
    root = tmp_path / "lib"
    (root / "csrc").mkdir(parents=True)
    (root / "program.py").write_text(PROGRAM)
    (root / "csrc/ext.cc").write_text("#include <torch/extension.h>\n  x.narrow(0, 0, 1);\n")
    python = Path(sys.executable)
    work = tmp_path / "work"
    return JustInTime(library(root, "jit"), dict.fromkeys(SIDES, python), work, 60.0, Shelf(tmp_path / "shelf"))


def compiler(folder: Path) -> str:
    """One that has nothing to say when a unit is looked at again."""
    path = folder / "mute-g++"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return str(path)


def record(jit: JustInTime, side: Runtime, source: Path, stderr: str = "", code: int = 0) -> None:
    """As the shim leaves it."""
    folder = jit.work / f"jit-{side}" / "calls"
    folder.mkdir(parents=True, exist_ok=True)
    cwd = jit.made(side) / "ext"
    cwd.mkdir(parents=True, exist_ok=True)
    args = ["-c", str(source), "-o", "main.o", f"-I{jit.library.root}/csrc"]
    data = {"name": "g++", "command": [compiler(jit.work)], "args": args, "cwd": str(cwd), "seconds": 1.0, "rc": code}
    (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(data | {"stderr": stderr}))


def test_a_failed_load_becomes_the_constructs_of_its_sources(jit: JustInTime) -> None:
    source = jit.library.root / "csrc/ext.cc"
    record(jit, Runtime.TORCH, source)
    record(jit, Runtime.TARGET, source, f"{source}:2:5: error: 'class at::Tensor' has no member named 'narrow'\n", 1)
    (finding,) = jit.report().findings
    assert (finding.key.api, finding.sites) == ("at::Tensor::narrow", (Site("csrc/ext.cc", 2),))


def test_text_that_was_compiled_is_found_again_in_the_python_file(jit: JustInTime) -> None:
    for side in SIDES:
        made = jit.made(side) / "ext" / "main.cpp"
        made.parent.mkdir(parents=True)
        made.write_text(MADE)
        said = f"main.cpp:{LINE}:16: error: 'cumsum' is not a member of 'at'\n" if side is Runtime.TARGET else ""
        record(jit, side, made, said, int(bool(said)))
    (finding,) = jit.report().findings
    expected = 1 + PROGRAM.splitlines().index("at::Tensor scan(const at::Tensor& x) {") + 1
    assert (finding.key.api, finding.sites) == ("at::cumsum", (Site("program.py", expected),))
    assert finding.evidence[0].startswith(f"program.py:{expected}:")
    assert GENERATED not in "".join(finding.evidence)


def test_what_a_loader_puts_around_the_text_is_no_gap_of_the_library(jit: JustInTime) -> None:
    around = 'm.def("scan", torch::wrap_pybind_function(scan), "scan");\n'
    for side in SIDES:
        made = jit.made(side) / "ext" / "main.cpp"
        made.parent.mkdir(parents=True)
        made.write_text(MADE + around)
        line = len(MADE.splitlines()) + 1
        said = f"main.cpp:{line}:16: error: 'wrap_pybind_function' is not a member of 'torch'\n"
        record(jit, side, made, said if side is Runtime.TARGET else "", int(side is Runtime.TARGET))
    assert jit.report().findings == ()


def test_nothing_is_said_where_torch_compiled_nothing(jit: JustInTime) -> None:
    source = jit.library.root / "csrc/ext.cc"
    record(jit, Runtime.TARGET, source, f"{source}:1:1: error: 'cumsum' is not a member of 'at'\n", 1)
    assert jit.report().findings == ()


def test_the_library_is_not_written_to(jit: JustInTime) -> None:
    before = {str(path): path.stat().st_mtime_ns for path in jit.library.root.rglob("*")}
    test_a_failed_load_becomes_the_constructs_of_its_sources(jit)
    assert {str(path): path.stat().st_mtime_ns for path in jit.library.root.rglob("*")} == before


@pytest.mark.native
def test_a_run_gets_recorded_compilers_and_private_folders(jit: JustInTime) -> None:
    assert set(jit.environ) == set(Runtime)
    for side in SIDES:
        env = jit.environ[side]
        assert env["TORCH_EXTENSIONS_DIR"] == env["PADDLE_EXTENSION_DIR"] == str(jit.made(side))
        (jit.made(side) / "a.cc").write_text("int x;\n")
        line = ["g++", "-c", "a.cc", "-o", "a.o"]
        subprocess.run(line, env=dict(os.environ) | env, cwd=jit.made(side), check=True)
        assert len(list((jit.work / f"jit-{side}" / "calls").glob("*.json"))) == 1


@pytest.mark.native
def test_what_was_compiled_before_is_not_compiled_in_the_next_diagnosis(
    jit: JustInTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, counting = shutil.which("g++"), tmp_path / "bin" / "g++"
    counting.parent.mkdir()
    counting.write_text(f'#!/bin/sh\nprintf x >> {tmp_path}/compiles\nexec {real} "$@"\n')
    counting.chmod(0o755)
    monkeypatch.setenv("PATH", f"{counting.parent}:{os.environ['PATH']}")
    for number in range(3):
        again = replace(jit, work=tmp_path / f"work{number}")
        made = again.made(Runtime.TORCH)
        env = dict(os.environ) | again.environ[Runtime.TORCH]
        (made / "a.cc").write_text("int x;\n" if number < 2 else "int y;\n")
        subprocess.run(["g++", "-c", str(made / "a.cc"), "-o", "a.o"], env=env, cwd=made, check=True)
        assert (made / "a.o").stat().st_size > 0
    assert (tmp_path / "compiles").read_text() == "xx"


def test_a_lone_scripts_folder_is_not_searched(jit: JustInTime, tmp_path: Path) -> None:
    script = jit.library.root / "program.py"
    (tmp_path / "lib/huge").mkdir()
    (tmp_path / "lib/huge/other.cc").write_text("")
    alone = replace(jit, library=discover(script))
    source = script.parent / "csrc/ext.cc"
    for side in SIDES:
        record(alone, side, source)
    alone.report()
    copied = {str(path.relative_to(jit.work / "jit-src")) for path in (jit.work / "jit-src").rglob("*.cc")}
    assert copied == {"csrc/ext.cc"}
