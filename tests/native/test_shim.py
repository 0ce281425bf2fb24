"""Builds that call a made-up compiler, in; the records that the shim in front of it leaves, out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate_lens.native.compiler import ShimOptions, install_shims, read_calls

FAKE = """#!/bin/sh
case "$*" in
  *--version*) echo "fake 1.0"; exit 0 ;;
esac
echo "saw: $*" >&2
echo "locale: $LC_ALL path: $PATH" >&2
echo "a.cc:1:1: error: made up" >&2
exit 3
"""


class Bench:
    """A folder with made-up compilers, and shims in front of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real, self.shims, self.records = root / "real", root / "shims", root / "records"
        self.real.mkdir()

    def compiler(self, name: str, text: str = FAKE) -> Path:
        path = self.real / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def install(self, dry: bool = False, **variables: str) -> dict[str, str]:
        env = {"PATH": f"{self.real}:/usr/bin:/bin", **variables}
        return env | install_shims(self.shims, self.records, env, ["gcc -pthread", "g++ -shared"], ShimOptions(dry=dry))

    def call(self, env: dict[str, str], line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", line], env=env, cwd=self.root, capture_output=True, text=True, check=False
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_compile_is_recorded_and_behaves_as_before(bench: Bench) -> None:
    bench.compiler("g++")
    done = bench.call(bench.install(), "g++ -Iinc -c src/a.cc -o out/a.o")
    assert done.returncode == 3
    assert "made up" in done.stderr
    (call,) = read_calls(bench.records)
    assert (call.name, call.returncode, call.compiles, call.links) == ("g++", 3, True, False)
    assert call.args == ("-Iinc", "-c", "src/a.cc", "-o", "out/a.o")
    assert (call.source, call.output) == (bench.root / "src/a.cc", bench.root / "out/a.o")
    assert "saw: -Iinc -c src/a.cc -o out/a.o -fdiagnostics-color=never" in call.stderr
    assert "locale: C" in call.stderr
    assert str(bench.shims) not in call.stderr


def test_a_link_is_recorded_and_a_question_is_not(bench: Bench) -> None:
    bench.compiler("g++")
    env = bench.install()
    assert bench.call(env, "g++ --version").stdout == "fake 1.0\n"
    bench.call(env, "g++ -shared a.o -lc10 -o ext.so")
    (call,) = read_calls(bench.records)
    assert call.links
    assert call.output == bench.root / "ext.so"


def test_a_compiler_from_the_environment_keeps_its_cache_and_flags(bench: Bench) -> None:
    bench.compiler("ccache", '#!/bin/sh\necho "cached: $*" >&2\nexec "$@"\n')
    bench.compiler("my-g++")
    env = bench.install(CXX="ccache my-g++ -m64")
    assert env["CXX"] == f"{bench.shims / 'my-g++'} -m64"
    bench.call(env, "$CXX -c a.cc -o a.o")
    (call,) = read_calls(bench.records)
    assert call.command == ("ccache", str(bench.real / "my-g++"))
    assert "cached: " in call.stderr


def test_a_compiler_that_is_not_installed_has_no_shim(bench: Bench) -> None:
    bench.compiler("g++")
    bench.install()
    assert not (bench.shims / "nvcc").exists()


def test_a_call_below_another_one_is_not_recorded_twice(bench: Bench) -> None:
    bench.compiler("g++")
    bench.compiler("nvcc", '#!/bin/sh\nPATH="$OLDPATH"\nexport PATH\ng++ -c host.cc -o host.o\n')
    env = bench.install()
    env["OLDPATH"] = env["PATH"]
    bench.call(env, "nvcc -c a.cu -o a.o")
    assert [call.name for call in read_calls(bench.records)] == ["nvcc"]


def test_a_dry_run_compiles_nothing_and_leaves_outputs(bench: Bench) -> None:
    bench.compiler("g++")
    assert bench.call(bench.install(dry=True), "g++ -c a.cc -o a.o").returncode == 0
    assert (bench.root / "a.o").read_bytes() == b""
    assert len(read_calls(bench.records)) == 1


def test_a_megabyte_of_errors_is_passed_on_and_kept_in_part(bench: Bench) -> None:
    bench.compiler("g++", f"#!/bin/sh\n{sys.executable} -c \"import sys; sys.stderr.write('x' * 3000000)\"\n")
    done = bench.call(bench.install(), "g++ -c a.cc -o a.o")
    (call,) = read_calls(bench.records)
    assert (len(done.stderr), len(call.stderr)) == (3_000_000, 1 << 20)


def test_half_a_record_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"name": "g++", "arg')
    (tmp_path / "2.json.part").write_text("{}")
    assert read_calls(tmp_path) == ()


def test_the_shim_needs_nothing_but_the_standard_library(bench: Bench) -> None:
    bench.compiler("g++")
    bench.install()
    script = (bench.shims / "g++").read_text()
    assert " -I -S " in script
    told = json.loads((bench.shims / "shims.json").read_text())
    assert set(told) == {"records", "commands", "extra", "dry", "objects", "limits"}
    assert os.access(bench.shims / "g++", os.X_OK)
