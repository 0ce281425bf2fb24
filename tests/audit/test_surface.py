"""The frameworks that are installed, asked; and saved or damaged answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from audit_samples import DOCUMENT

from migrate_lens.audit import surface
from migrate_lens.audit.surface import Declaration, Surface
from migrate_lens.model.errors import RuntimeUnavailable, StateError
from migrate_lens.worker.backends.paddle import surface as paddle_side
from migrate_lens.worker.backends.torch import surface as torch_side

# Each was tried by hand in both frameworks. Names are torch's; a later Paddle may close a gap: then this list says so.
PRESENT = ["torch.add", "torch.nn.Linear", "torch.Tensor.view", "torch.nn.functional.gelu", "torch.Tensor.size"]
MISSING = [
    "torch.optim",
    "torch.frombuffer",
    "torch.nn.MaxPool2d",
    "torch._C._log_api_usage_once",
    "torch.dtype.itemsize",
]


@pytest.mark.real
@pytest.mark.parametrize("name", PRESENT)
def test_what_both_have_is_present(real: Surface, name: str) -> None:
    assert real.ask(name).verdict == "present"


@pytest.mark.real
@pytest.mark.parametrize("name", MISSING)
def test_what_only_torch_has_is_missing(real: Surface, name: str) -> None:
    assert real.ask(name).verdict == "missing"


@pytest.mark.real
def test_a_missing_module_decides_for_all_that_is_in_it(real: Surface) -> None:
    assert real.ask("torch.optim.SGD.step").name == "torch.optim"


@pytest.mark.real
@pytest.mark.parametrize("name", ["torch.no_such_thing", "torch.Tensor.no_such_thing", "torch.ops.mine.op"])
def test_what_torch_has_not_is_not_missing(real: Surface, name: str) -> None:
    assert real.ask(name).verdict == "unknown"


@pytest.mark.real
def test_another_kind_is_told(real: Surface) -> None:
    answer = real.ask("torch.device")
    assert (answer.verdict, answer.kind, answer.paddle) == ("other_kind", "class", "module")


@pytest.mark.real
def test_refused_keywords_are_told_and_taken_ones_are_not(real: Surface) -> None:
    assert "size" in real.ask("torch.randint").refused
    assert "dim" not in real.ask("torch.sum").refused


@pytest.mark.real
def test_native_names_headers_macros_and_methods(real: Surface) -> None:
    assert real.declared(Declaration.HEADERS, "torch/script.h").verdict == "missing"
    assert real.declared(Declaration.HEADERS, "torch/extension.h").verdict == "present"
    assert real.declared(Declaration.NAMES, "at::cumsum").verdict == "missing"
    assert real.declared(Declaration.MACROS, "TORCH_CHECK").verdict == "present"
    assert real.native_method("Tensor", "narrow").verdict == "missing"
    assert real.native_method("Tensor", "defined").verdict == "present"
    assert real.declared(Declaration.NAMES, "mine::thing").verdict == "unknown"


@pytest.mark.real
def test_a_second_look_asks_nobody(real: Surface, cache: Path) -> None:
    said: list[str] = []
    python = Path(sys.executable)
    again = surface.installed(python, python, cache, said.append)
    assert said == []
    assert again.paddle == real.paddle


@pytest.mark.real
def test_a_surface_is_saved_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "surface.json"
    surface.write(file, DOCUMENT)
    assert surface.load(file).ask("torch.frombuffer").verdict == "missing"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 0}', '{"schema": 1}'])
def test_a_damaged_surface_is_an_error_with_a_remedy(text: str, tmp_path: Path) -> None:
    file = tmp_path / "surface.json"
    file.write_text(text)
    with pytest.raises(StateError) as caught:
        surface.load(file)
    assert "--save-surface" in caught.value.remedy


def test_an_interpreter_without_torch_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    with pytest.raises(RuntimeUnavailable, match="has no torch"):
        surface.installed(python, Path(sys.executable), tmp_path, lambda line: None)


def test_a_link_to_this_interpreter_in_another_environment_is_another_one(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    assert surface.identity_of(Path(sys.executable), surface.TORCH_VERSION).startswith("torch-")
    assert surface.identity_of(tmp_path / "bare/bin/python", surface.TORCH_VERSION) == ""


def test_an_interpreter_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeUnavailable, match="cannot be run"):
        surface.identity_of(tmp_path / "nothing", surface.TORCH_VERSION)


def test_a_stand_in_that_warns_is_fake() -> None:
    space: dict[str, object] = {}
    exec("def stand_in():\n    warning_about_fake_interface('x')\n", space)
    assert paddle_side.is_fake(space["stand_in"])
    assert not paddle_side.is_fake(lambda: None)


def test_a_keyword_is_asked_without_running_the_body() -> None:
    ran = []

    def strict(dim: int = 0) -> None:
        ran.append(dim)

    assert paddle_side.ask_keyword(strict, "dim") is None
    assert paddle_side.ask_keyword(strict, "axis") is True
    assert ran == []


def test_signatures_are_read_from_documentation() -> None:
    def add() -> None:
        """add(input, other, *, alpha=1, out=None) -> Tensor"""

    assert torch_side.documented(add) == (["input", "other", "*", "alpha", "out"], "Tensor")


def test_what_is_merged_keeps_absent_names_absent() -> None:
    torch: surface.FrameworkAnswer = {
        "framework": "torch",
        "identity": ["1", ""],
        "include": [],
        "names": {"torch.a": ["function", ["x"], ""]},
    }
    paddle: surface.FrameworkAnswer = {"framework": "paddle", "identity": ["2", ""], "include": [], "names": {}}
    merged = json.loads(json.dumps(surface.merge(torch, paddle)))
    assert Surface(merged).ask("torch").verdict == "unknown"
    assert merged["names"]["torch.a"] == ["function", None, [], False]
