"""The command as a user types it: text, formats, exit codes, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import typer
from audit_samples import DOCUMENT
from typer.testing import CliRunner

from migrate_lens.audit import surface
from migrate_lens.commands.audit import AuditOptions, register, run
from migrate_lens.model.errors import UsageError

# The part of SARIF 2.1.0 that code hosts insist on.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "results": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "message", "locations", "partialFingerprints"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"type": "object", "required": ["text"]},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "properties": {
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {"startLine": {"type": "integer", "minimum": 1}},
                                                    }
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            },
        },
    },
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved surface: no framework is asked."""
    file = tmp_path / "surface.json"
    surface.write(file, DOCUMENT)
    return file


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with one gap that runs at import and one that only an API call meets."""
    root = tmp_path / "lib-1.0"
    (root / "lib").mkdir(parents=True)
    (root / "lib/__init__.py").write_text("import torch\ndef f(x: torch.Tensor):\n    return x.cauchy_()\n")
    return root


def audit(library: Path, saved: Path, **options: object) -> tuple[str, int]:
    """Run the command without a command line."""
    base = AuditOptions((str(library),), surface=saved, cache=False)
    return run(AuditOptions(**{**{name: getattr(base, name) for name in base.__slots__}, **options}), lambda line: None)


def test_the_text_report_names_the_gap_the_plan_and_the_basis(library: Path, saved: Path) -> None:
    text, code = audit(library, saved)
    assert code == 1
    for part in (
        "torch.Tensor.cauchy_:missing_api",
        "lib/__init__.py:3",
        "both frameworks were asked",
        "plan",
        "grade",
    ):
        assert part in text


def test_the_json_report_has_the_keys_of_a_diagnosis(library: Path, saved: Path) -> None:
    text, _ = audit(library, saved, format="json")
    document = json.loads(text)
    gap = next(one for one in document["gaps"] if one["id"] == "torch.Tensor.cauchy_:missing_api")
    schema = json.loads((Path(__file__).parents[2] / "docs/report.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert document["schema"] == 1
    assert {
        "api",
        "symptom",
        "layer",
        "category",
        "decision",
        "rule",
        "stage",
        "sites",
        "expected",
        "actual",
    } <= gap.keys()
    assert [(site["path"], site["line"]) for site in gap["sites"]] == [("lib/__init__.py", 3)]
    assert document["skipped"] == []
    assert any(row["api"] == "torch.Tensor" and row["verdict"] == "present" for row in document["libraries"][0]["apis"])


def test_the_sarif_report_is_valid_and_says_the_line(library: Path, saved: Path) -> None:
    document = json.loads(audit(library, saved, format="sarif")[0])
    jsonschema.validate(document, SARIF)
    places = [result["locations"][0]["physicalLocation"] for result in document["runs"][0]["results"]]
    assert ("lib/__init__.py", 3) in [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in places]


def test_the_markdown_report_has_a_row_for_the_gap(library: Path, saved: Path) -> None:
    assert "| `torch.Tensor.cauchy_:missing_api` | python_interface | A |" in audit(library, saved, format="md")[0]


def test_several_paths_get_a_table_and_the_list_of_what_holds_back(library: Path, saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("import torch\ndef f(x: torch.Tensor):\n    x.cauchy_()\n")
    for name in ("text", "md"):
        text = run(AuditOptions((str(library), str(other)), name, surface=saved, cache=False), lambda line: None)[0]
        assert "issing in several libraries" in text
        assert "torch.Tensor.cauchy_" in text.split("everal libraries")[1]


@pytest.mark.parametrize(("what", "code"), [("any", 1), ("import", 0), ("asked", 1), ("none", 0)])
def test_the_exit_code_is_what_the_user_asked_to_fail_on(library: Path, saved: Path, what: str, code: int) -> None:
    (library / "lib/__init__.py").write_text("def f():\n    import torch\n    torch.frombuffer(b'')\n")
    assert audit(library, saved, fail_on=what)[1] == code


def test_a_baseline_that_was_written_silences_the_next_run(library: Path, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    assert audit(library, saved, write_baseline=file)[1] == 1
    assert audit(library, saved, baseline=file)[1] == 0


@pytest.mark.parametrize("options", [{"format": "xml"}, {"fail_on": "all"}, {"explain": "no_rule"}, {"paths": ()}])
def test_a_wrong_option_is_an_error_with_a_remedy(library: Path, saved: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        audit(library, saved, **options)
    assert caught.value.remedy


def test_a_rule_is_explained_with_its_cases() -> None:
    text, code = run(AuditOptions((), explain="raw_stream"), lambda line: None)
    assert code == 0
    assert "cuda_stream" in text
    assert "but not" in text


def test_it_registers_on_a_command_line(library: Path, saved: Path) -> None:
    app = typer.Typer()
    shown: list[str] = []
    said: list[str] = []
    app.callback()(lambda: None)
    register(app, shown.append, said.append)
    done = CliRunner().invoke(app, ["audit", str(library), "--surface", str(saved), "--no-cache"])
    assert done.exception is None
    assert "cauchy_" in shown[0]
    assert said[0].startswith("auditing ")


def test_importing_the_command_imports_no_reader_and_no_framework() -> None:
    heavy = ("migrate_lens.audit.", "migrate_lens.reports", "libcst", "rich", "torch", "paddle", "numpy")
    code = f"import sys, migrate_lens.commands.audit; print([m for m in sys.modules if m.startswith({heavy!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
