"""A format is one file: where it lies is all that the registry and the command line know of it."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

import migrate_lens
from migrate_lens import reports
from migrate_lens.model.errors import UsageError
from migrate_lens.reports import AUDIT, DIAGNOSIS, DIFF, DOCTOR, REPLAY, TRACE

DOCUMENTS = (DIAGNOSIS, AUDIT, TRACE, DIFF, REPLAY, DOCTOR)
ROOT = Path(migrate_lens.__file__).parents[1]
CSV = '''"""A diagnosis, in; a line a gap, out."""

def render(report, view):
    return "".join(f"{gap.id},{gap.layer}\\n" for gap in report.gaps)
'''
DIAGNOSE = """
import sys, types
sys.path.append({helpers!r})
import migrate_lens.commands, sample_reports
fake = types.ModuleType("migrate_lens.commands.diagnose")
fake.diagnose = lambda options, progress: sample_reports.GAPS
sys.modules[fake.__name__] = migrate_lens.commands.diagnose = fake
from migrate_lens.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("document", "formats"),
    [
        (DIAGNOSIS, ("text", "json", "markdown", "sarif")),
        (AUDIT, ("text", "json", "markdown", "sarif")),
        (TRACE, ("text", "json")),
        (DIFF, ("text", "json")),
        (REPLAY, ("text", "json")),
        (DOCTOR, ("text", "json")),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_format_is_listed_and_can_be_asked_for(
    document: reports.Document[object], formats: tuple[str, ...]
) -> None:
    assert document.formats() == formats
    for name in formats:
        module = import_module(f"{reports.__name__}.{document.name}.{name}")
        assert list(inspect.signature(module.render).parameters.values())[1].name == "view"
        assert document.format(name) == name


def test_a_folder_of_formats_is_a_document() -> None:
    folders = {path.parent.name for path in Path(reports.__file__).parent.glob("*/__init__.py")}
    assert folders == {document.name for document in DOCUMENTS}


def test_a_format_has_a_short_name() -> None:
    assert AUDIT.format("md") == "markdown"


@pytest.mark.parametrize(("name", "near"), [("jsn", "json"), ("xml", "text, json, markdown, sarif")])
def test_a_format_that_is_not_there_is_a_mistake_of_the_user(name: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        DIAGNOSIS.format(name)
    assert caught.value.remedy == f"one of {near}"


def test_listing_formats_imports_none() -> None:
    program = (
        "import sys; from migrate_lens.cli import main; main(['diagnose', '--help'])\n"
        "print(*(m for m in sys.modules if m.startswith('migrate_lens.reports.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "text|json|markdown|sarif" in done.stdout
    assert done.stderr.split() == []


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package, which a test may add to."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("migrate_lens", "rules"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name, ignore=ignored)
    (tmp_path / "script.py").write_text("import torch\n")
    return tmp_path / "copy"


def _run(copied: Path, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    program = DIAGNOSE.format(helpers=str(Path(__file__).parents[1] / "helpers"))
    environ = {**os.environ, "PYTHONPATH": str(copied)}
    command = [sys.executable, "-c", program, *argv]
    return subprocess.run(command, cwd=copied.parent, env=environ, capture_output=True, text=True, check=False)


def test_a_new_format_costs_one_file(copied: Path) -> None:
    assert _run(copied, ["diagnose", "script.py", "--format", "csv"]).returncode == 2
    (copied / "migrate_lens" / "reports" / "diagnosis" / "csv.py").write_text(CSV)
    assert "text|json|markdown|csv|sarif" in _run(copied, ["diagnose", "--help"]).stdout
    done = _run(copied, ["diagnose", "script.py", "--format", "csv"])
    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        ["torch.segment_reduce:missing_api,python_interface", "torch.max:value,unclassified"],
    )
