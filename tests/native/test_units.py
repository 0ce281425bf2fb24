"""Units and a made-up compiler, in; how far each was read, and what it lacks, out."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest
from native_samples import FakeTorch
from processes import PATIENCE, wait_for

from migrate_lens.native import units as units_module
from migrate_lens.native.process import kill_running
from migrate_lens.native.units import Ground, Unit, check_units, include_folders

# Says what a compiler would: a missing header until its stand-in is on the command line, then an error behind it.
COMPILER = """
import pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("-idirafter") + 1])
if (folder / "torch/script.h").exists():
    print("In file included from a.cc:1:")
    print(f"{folder}/torch/script.h:1:2: warning: #warning migrate-lens stand-in for torch/script.h [-Wcpp]")
    print("a.cc:3:5: error: 'cumsum' is not a member of 'at'")
else:
    print("a.cc:1:10: fatal error: torch/script.h: No such file or directory")
sys.exit(1)
"""


def ground(root: Path, seconds: float = PATIENCE) -> Ground:
    (root / "lib").mkdir(exist_ok=True)
    return Ground(root / "lib", root / "standins", root / "bridged", FakeTorch(), time.monotonic() + seconds)


def unit(root: Path, program: str, text: str | None = None, code: int = 0) -> Unit:
    (root / "lib").mkdir(exist_ok=True)
    (root / "compiler.py").write_text(program)
    source = root / "lib" / "a.cc"
    source.write_text("#include <torch/script.h>\n\n  at::cumsum(x, 0);\n")
    command = (sys.executable, str(root / "compiler.py"))
    return Unit("a.cc", command, source, root / "lib", text, code)


def test_a_missing_header_does_not_hide_what_is_behind_it(tmp_path: Path) -> None:
    (check,) = check_units([unit(tmp_path, COMPILER)], ground(tmp_path))
    assert check.reached
    assert [(c.api, c.site.line if c.site else 0) for c in check.constructs] == [
        ("torch/script.h", 1),
        ("at::cumsum", 3),
    ]
    assert check.headers == ("torch/script.h",)


def test_what_the_build_compiled_is_not_compiled_again(tmp_path: Path) -> None:
    (check,) = check_units([unit(tmp_path, "raise SystemExit('must not run')", text="")], ground(tmp_path))
    assert (check.reached, check.constructs) == (True, ())


def test_a_header_that_torch_has_not_either_ends_the_unit(tmp_path: Path) -> None:
    text = "a.cc:1:10: fatal error: cuda_runtime.h: No such file or directory\n"
    (check,) = check_units([unit(tmp_path, "", text=text, code=1)], ground(tmp_path))
    assert not check.reached
    assert "cuda_runtime.h" in check.reason


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            "print('a.cc:1:1: internal compiler error: Segmentation fault'); raise SystemExit(4)",
            "internal compiler error",
        ),
        ("raise SystemExit(1)", "named no error"),
    ],
)
def test_a_compiler_that_goes_under_is_said(tmp_path: Path, program: str, reason: str) -> None:
    (check,) = check_units([unit(tmp_path, program)], ground(tmp_path))
    assert not check.reached
    assert reason in check.reason


def test_a_compiler_that_does_not_end_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "UNIT_SECONDS", 1.0)
    (check,) = check_units([unit(tmp_path, "import time; time.sleep(600)")], ground(tmp_path))
    assert not check.reached
    assert "was stopped" in check.reason


def test_no_time_left_is_said(tmp_path: Path) -> None:
    (check,) = check_units([unit(tmp_path, COMPILER)], ground(tmp_path, seconds=0))
    assert (check.reached, check.reason) == (False, "no time was left for it")


def test_thousands_of_errors_are_one_construct_each(tmp_path: Path) -> None:
    program = "for i in range(5000): print(f\"a.cc:3:5: error: 'cumsum' is not a member of 'at'\")\nraise SystemExit(1)"
    (check,) = check_units([unit(tmp_path, program)], ground(tmp_path))
    assert [c.api for c in check.constructs] == ["at::cumsum"]


def test_compilers_that_threads_wait_for_can_be_ended(tmp_path: Path) -> None:
    started = tmp_path / "started"
    slow = unit(tmp_path, f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(600)")
    place = ground(tmp_path)
    worker = threading.Thread(target=check_units, args=([slow], place))
    worker.start()
    assert wait_for(started.exists)
    place.stop.set()
    kill_running()
    worker.join(PATIENCE)
    assert not worker.is_alive()


def test_include_folders_in_all_their_spellings(tmp_path: Path) -> None:
    args = ["-Ia", "-I", "b", "-isystem", "/c", "-isystem/d", "-iquote", "e", "-DX", "f"]
    assert include_folders(args, tmp_path) == [tmp_path / "a", tmp_path / "b", Path("/c"), Path("/d"), tmp_path / "e"]
