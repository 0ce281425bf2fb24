"""The command as a user types it: text, formats, exit codes, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from audit_samples import DOCUMENT

from migrate_lens.audit import surface
from migrate_lens.cli import main
from migrate_lens.cli.audit import AuditFlags
from migrate_lens.cli.audit import audit as command
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


Audit = Callable[..., tuple[str, int]]


@pytest.fixture
def audit(library: Path, saved: Path, capsys: pytest.CaptureFixture[str]) -> Audit:
    """Run the command: what it shows, and its exit code."""

    def run(**flags: object) -> tuple[str, int]:
        given: dict[str, Any] = {"paths": [str(library)], "surface": saved, "cache": False, **flags}
        code = command(AuditFlags(**given))
        return capsys.readouterr().out, code

    return run


def test_the_text_report_names_the_gap_the_plan_and_the_basis(audit: Audit) -> None:
    text, code = audit()
    assert code == 1
    for part in (
        "torch.Tensor.cauchy_:missing_api",
        "lib/__init__.py:3",
        "both frameworks were asked",
        "plan",
        "grade",
    ):
        assert part in text


def test_the_json_report_has_the_keys_of_a_diagnosis(audit: Audit) -> None:
    text, _ = audit(format="json")
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


def test_the_sarif_report_is_valid_and_says_the_line(audit: Audit) -> None:
    document = json.loads(audit(format="sarif")[0])
    jsonschema.validate(document, SARIF)
    places = [result["locations"][0]["physicalLocation"] for result in document["runs"][0]["results"]]
    assert ("lib/__init__.py", 3) in [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in places]


def test_the_markdown_report_has_a_row_for_the_gap(audit: Audit) -> None:
    assert "| `torch.Tensor.cauchy_:missing_api` | python_interface | A |" in audit(format="md")[0]


def test_several_paths_get_a_table_and_the_list_of_what_holds_back(audit: Audit, library: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("import torch\ndef f(x: torch.Tensor):\n    x.cauchy_()\n")
    for name in ("text", "md"):
        text, _ = audit(paths=[str(library), str(other)], format=name)
        assert "issing in several libraries" in text
        assert "torch.Tensor.cauchy_" in text.split("everal libraries")[1]


@pytest.mark.parametrize(("what", "code"), [("any", 1), ("import", 0), ("asked", 1), ("none", 0)])
def test_the_exit_code_is_what_the_user_asked_to_fail_on(audit: Audit, library: Path, what: str, code: int) -> None:
    (library / "lib/__init__.py").write_text("def f():\n    import torch\n    torch.frombuffer(b'')\n")
    assert audit(fail_on=what)[1] == code


def test_a_baseline_that_was_written_silences_the_next_run(audit: Audit, library: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    assert audit(write_baseline=file)[1] == 1
    assert audit(baseline=file)[1] == 0


@pytest.mark.parametrize("options", [{"format": "xml"}, {"fail_on": "all"}, {"explain": "no_rule"}, {"paths": ()}])
def test_a_wrong_option_is_an_error_with_a_remedy(audit: Audit, options: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        audit(**options)
    assert caught.value.remedy


def test_a_rule_is_explained_with_its_cases(audit: Audit) -> None:
    text, code = audit(paths=(), explain="raw_stream")
    assert code == 0
    assert "cuda_stream" in text
    assert "but not" in text


def test_it_registers_on_a_command_line(library: Path, saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(library), "--surface", str(saved), "--no-cache"]) == 1
    shown = capsys.readouterr()
    assert "cauchy_" in shown.out
    assert shown.err.startswith("auditing ")


def test_importing_the_command_imports_no_reader_and_no_framework() -> None:
    heavy = ("migrate_lens.audit.", "migrate_lens.reports.", "libcst", "rich", "torch", "paddle", "numpy")
    code = f"import sys, migrate_lens.cli.audit; print([m for m in sys.modules if m.startswith({heavy!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
