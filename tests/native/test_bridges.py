"""The bridges of rules/bridges, in; each compiles under Paddle's flags and changes only its construct, out."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from migrate_lens.native.pairing import paddle_flags
from migrate_lens.native.standins import write_files

BRIDGES = sorted((Path(__file__).resolve().parents[2] / "rules" / "bridges").glob("*.toml"))
KEYS = {"title", "kind", "until", "header", "check", "when", "shim", "edit"}


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


@pytest.mark.parametrize("path", BRIDGES, ids=lambda path: path.stem)
def test_a_bridge_says_what_it_is_for_and_when_it_goes(path: Path) -> None:
    bridge = read(path)
    assert set(bridge) <= KEYS
    assert bridge["kind"] in ("add_name", "shim_header", "call_site")
    assert bridge["until"].startswith("Paddle ")
    given = {"add_name": "header", "shim_header": "shim", "call_site": "edit"}[bridge["kind"]]
    assert bridge[given]
    for line in re.findall(r"^#define (\w+)", bridge.get("header", ""), re.MULTILINE):
        assert f"#ifndef {line}" in bridge["header"], "a name that Paddle has by now must win"


@pytest.mark.real
@pytest.mark.native
def test_all_bridges_compile_together_under_paddles_flags(tmp_path: Path) -> None:
    flags = paddle_flags(Path(sys.executable), tmp_path)
    assert flags
    parts = ["#include <ATen/ATen.h>\n#include <torch/library.h>\n"]
    for bridge in map(read, BRIDGES):
        write_files(tmp_path / "shims", {shim["path"]: shim["text"] for shim in bridge.get("shim", ())})
        parts += [bridge.get("header", ""), bridge["check"]]
    unit = tmp_path / "all.cc"
    unit.write_text("\n".join(parts))
    argv = ["g++", *flags, "-fsyntax-only", "-Wno-error", f"-I{tmp_path / 'shims'}", str(unit)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("bridge", "before", "after"),
    [
        ("scalar_conversions", "s.toDouble() + t.toInt()", "s.to<double>() + t.to<int>()"),
        (
            "const_data_ptr",
            "x.const_data_ptr<float>()",
            "static_cast<const at::TensorBase&>(x).const_data_ptr<float>()",
        ),
        ("def_without_tags", 'm.def("f() -> ()", {at::Tag::core});', 'm.def("f() -> ()");'),
        ("def_without_tags", 'm.def("f() -> ()", &f);', 'm.def("f() -> ()", &f);'),
        ("scalar_conversions", "parse.toDoubleQuoted()", "parse.toDoubleQuoted()"),
    ],
)
def test_edits_change_their_construct_and_nothing_else(bridge: str, before: str, after: str) -> None:
    edits = read(next(path for path in BRIDGES if path.stem == bridge))["edit"]

    def edited(text: str) -> str:
        for edit in edits:
            text = re.sub(edit["pattern"], edit["replacement"], text)
        return text

    assert edited(before) == after
    assert edited(after) == after
