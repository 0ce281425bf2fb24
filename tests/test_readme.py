"""README.md and the other pages, held against the program that they describe."""

from __future__ import annotations

import dataclasses
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from migrate_lens import config
from migrate_lens.cli.app import EXIT_CODES, main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_help_is_the_real_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = re.search(r"<!-- help: diagnose -->\n```\n(.*?)```\n<!-- /help -->", README, re.DOTALL)
    assert found
    assert main(["diagnose", "--help"]) == 0
    assert found[1] == capsys.readouterr().out


def test_the_configuration_is_accepted(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    table = tomllib.loads(text)["tool"]["migrate-lens"]
    for python in (tmp_path / table["torch-python"], tmp_path / table["paddle-python"] / "bin" / "python"):
        python.parent.mkdir(parents=True)
        python.write_text("")
        python.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text(text)
    options = config.load(tmp_path)
    assert options.configured == tuple(table["probes"])
    assert len(table) < len(dataclasses.fields(options))


def test_every_exit_code_is_said() -> None:
    said = {int(code) for code in re.findall(r"^\| (\d) \|", README, re.MULTILINE)}
    assert said == {*EXIT_CODES.values(), 2}


def test_the_usage_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command line gets past the parser: what is missing here is the path, not an option."""
    (usage,) = re.findall(r"## Usage\n\n```\n(.*?)```", README, re.DOTALL)
    lines = [shlex.split(line)[1:] for line in usage.splitlines() if " diagnose " in line]
    assert lines
    for argv in lines:
        assert main(argv) == 2
        assert "no such path" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["demo", "test", "quick"])
def test_the_commands_exist(target: str) -> None:
    assert re.search(rf"`?make {target}[` ]", README)
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


RENDERED = ROOT / "docs" / "rules"  # pages of examples, which name no file of ours (see tests/rulebook)
WRITTEN = (page for page in (ROOT / "docs").rglob("*.md") if not page.is_relative_to(RENDERED))
PAGES = [ROOT / "README.md", *sorted(WRITTEN)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_are_named_are_there(page: Path) -> None:
    """A path in backticks, such as `compare/align.py`, below the package or the root."""
    for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", page.read_text()):
        assert (ROOT / name).exists() or (ROOT / "migrate_lens" / name).exists(), name
