"""Flags and configuration files, held against the options that they make or the error that they give."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from files import Write
from hypothesis import given
from hypothesis import strategies as st

from migrate_lens import config
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.state import check_output, opened
from migrate_lens.state import write as write_whole


def test_defaults(write: Write) -> None:
    root = write({"kit.py": ""})
    assert config.load(root) == config.Options(
        path=root,
        probes=(),
        torch_python=Path(sys.executable),
        paddle_python=Path(sys.executable),
        scope=(),
        keep_torch=False,
        timeout=600.0,
        tests=False,
        stop_at_first=False,
        state=Path.cwd() / ".migrate-lens",
    )


BODY = """
probes = ["smoke.py"]
torch-python = "env/bin/python"
paddle-python = "env"
scope = ["kit", "kit_ops.sub"]
keep-torch = true
timeout = 90
tests = true
"""


@pytest.mark.parametrize("name", ["migrate-lens.toml", "pyproject.toml"])
@pytest.mark.parametrize("script", [False, True], ids=["folder", "script"])
def test_a_file_sets_everything(write: Write, name: str, script: bool) -> None:
    head = "[tool.migrate-lens]" if name == "pyproject.toml" else ""
    root = write({name: head + BODY, "env/bin/python": "", "prog.py": ""})
    python = root / "env" / "bin" / "python"
    python.chmod(0o755)
    options = config.load(root / "prog.py" if script else root)
    assert (options.torch_python, options.paddle_python) == (python, python)
    assert (options.configured, options.probes) == (("smoke.py",), ())
    assert options.scope == ("kit", "kit_ops.sub")
    assert (options.keep_torch, options.tests, options.timeout) == (True, True, 90.0)


def test_flags_win_over_the_file(write: Write) -> None:
    root = write({"migrate-lens.toml": BODY, "env/bin/python": ""})
    given = config.Given(
        probes=["a.py"],
        torch_python=sys.executable,
        paddle_python=sys.executable,
        scope=["other"],
        keep_torch=False,
        timeout=1.5,
        tests=False,
        state=root / "s",
    )
    options = config.load(root, given)
    assert options.probes == ("a.py",)
    assert options.torch_python == Path(sys.executable)
    assert options.scope == ("other",)
    assert (options.keep_torch, options.tests, options.timeout) == (False, False, 1.5)
    assert options.state == root / "s"


def test_migrate_lens_toml_wins_over_pyproject(write: Write) -> None:
    root = write({"migrate-lens.toml": "timeout = 5", "pyproject.toml": "[tool.migrate-lens]\ntimeout = 6"})
    assert config.load(root).timeout == 5


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "tool = 3\n"])
def test_a_pyproject_without_our_table(write: Write, text: str) -> None:
    assert config.load(write({"pyproject.toml": text})).timeout == 600


@pytest.mark.parametrize(
    ("body", "message", "remedy"),
    [
        ("probe = []", "unknown key 'probe'", "did you mean 'probes'?"),
        ("torch_python = 'x'", "unknown key 'torch_python'", "did you mean 'torch-python'?"),
        ("xyzzy = 1", "unknown key 'xyzzy'", "the keys are keep-torch"),
        ("probes = 'smoke.py'", "probes must be a list of strings, not a string", "a list of strings"),
        ("scope = [1]", "scope must be a list of strings", "a list of strings"),
        ("timeout = true", "timeout must be a number of seconds, not a boolean", "number"),
        ("timeout = '5'", "timeout must be a number of seconds, not a string", "number"),
        ("timeout = 0", "timeout must be a positive number of seconds, not 0", "--timeout 600"),
        ("timeout = nan", "timeout must be a positive number", "--timeout 600"),
        ("keep-torch = 1", "keep-torch must be true or false, not an integer", "true or false"),
        ("tests = 'yes'", "tests must be true or false", "true or false"),
        ("torch-python = 3", "torch-python must be a string", "a string"),
        ("torch-python = 'nowhere/python'", "torch-python: no interpreter at 'nowhere/python'", "executable"),
        ("scope = ['not a name']", "'not a name' is not a module name", "--scope"),
        ("timeout =", "not valid TOML", "line"),
    ],
)
def test_a_file_with_a_mistake(write: Write, body: str, message: str, remedy: str) -> None:
    root = write({"migrate-lens.toml": body})
    with pytest.raises(UsageError) as caught:
        config.load(root)
    assert message in caught.value.message
    assert "migrate-lens.toml" in caught.value.message
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"migrate-lens.toml": b"\xff\xfe"}, "not UTF-8"),
        ({"pyproject.toml": b"[project\n"}, "not valid TOML"),
        ({"pyproject.toml": b"[tool]\nmigrate-lens = 1\n"}, "must be a table"),
    ],
)
def test_a_file_that_cannot_be_read(write: Write, files: dict[str, str | bytes], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        config.load(write(files))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"timeout": 0.0}, "--timeout must be a positive number"),
        ({"timeout": -1.0}, "--timeout must be a positive number"),
        ({"timeout": float("inf")}, "--timeout must be a positive number"),
        ({"scope": ["a b"]}, "--scope: 'a b'"),
        ({"scope": [""]}, "--scope: ''"),
        ({"torch_python": "no-such-python"}, "--torch-python: no interpreter at 'no-such-python'"),
        ({"paddle_python": "./no-such-folder/python"}, "--paddle-python: no interpreter"),
        ({"paddle_python": os.devnull}, "--paddle-python: no interpreter"),
    ],
)
def test_flags_with_a_mistake(write: Write, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        config.load(write({}), config.Given(**flags))
    assert message in caught.value.message
    assert caught.value.remedy


def test_a_missing_path_comes_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such path"):
        config.load(tmp_path / "nope", config.Given(timeout=-1))


def test_an_interpreter_on_the_path(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write({"bin/python9": ""})
    (root / "bin" / "python9").chmod(0o755)
    monkeypatch.setenv("PATH", str(root / "bin"))
    assert config.load(root, config.Given(torch_python="python9")).torch_python == root / "bin" / "python9"


def test_a_linked_interpreter_stays_a_link(write: Write) -> None:
    """A virtual environment's interpreter is a link; the file that it names knows nothing of the environment."""
    root = write({"real": ""})
    (root / "real").chmod(0o755)
    (root / "linked").symlink_to(root / "real")
    assert config.load(root, config.Given(torch_python=str(root / "linked"))).torch_python == root / "linked"


@given(st.dictionaries(st.sampled_from(["probes", "scope", "timeout", "tests", "odd"]), st.integers() | st.booleans()))
def test_any_table_is_options_or_an_error_with_a_remedy(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, int | bool]
) -> None:
    root = tmp_path_factory.getbasetemp()
    lines = (f"{key} = {str(value).lower()}\n" for key, value in table.items())
    (root / "migrate-lens.toml").write_text("".join(lines))
    try:
        options = config.load(root)
    except UsageError as error:
        assert error.remedy  # noqa: PT017 - only some tables give one
        return
    assert options.timeout > 0


# --- where results go -------------------------------------------------------------------------------------------------


def test_a_fresh_state_folder_is_hidden_from_git(tmp_path: Path) -> None:
    with opened(tmp_path / "s") as folder:
        assert (folder / ".gitignore").read_text() == "*\n"


def test_a_folder_with_other_things_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StateError, match="other things"), opened(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_taken_and_given_back_empty(tmp_path: Path) -> None:
    with pytest.raises(UsageError), opened(tmp_path):
        raise UsageError("x")
    assert list(tmp_path.iterdir()) == []
    with opened(tmp_path):
        pass
    with opened(tmp_path) as again:
        assert (again / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("error", [UsageError("x"), KeyboardInterrupt()])
def test_a_command_that_fails_leaves_no_state_folder(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), opened(tmp_path / "s"):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_results_from_before_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "s") as folder:
        (folder / "report.json").write_text("{}")
    with pytest.raises(UsageError), opened(tmp_path / "s"):
        raise UsageError("x")
    assert (tmp_path / "s" / "report.json").exists()


def test_an_unwritable_state_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "s", tmp_path / "file", tmp_path / "no" / "such" / "folder"):
        with pytest.raises(StateError) as caught, opened(folder):
            pass
        assert "--state DIR" in caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_whole(tmp_path / "r.txt", "old")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "r.txt", None)  # type: ignore[arg-type]
    assert (tmp_path / "r.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["r.txt"]


def test_a_written_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_writing_follows_links_and_keeps_devices(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"
    write_whole(Path(os.devnull), "x")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", [".", "missing/r.json", "file/r.json"])
def test_an_output_that_cannot_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        check_output(tmp_path / name)
    assert caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
