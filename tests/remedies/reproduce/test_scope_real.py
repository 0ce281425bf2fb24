"""A library whose scope is too small, with real torch and real Paddle: reproduced as a package, and given its line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_lens.cli import app as cli
from migrate_lens.remedies.publish.verify import IN_SCOPE, run_in, without

pytestmark = [pytest.mark.real, pytest.mark.native]

_FILES = {
    "pyproject.toml": '[project]\nname = "mylib"\nversion = "1"\n',
    "mylib/__init__.py": "import torch\n\nfrom other import twice\n\n\ndef f():\n"
    "    return twice(torch.ones(2)).tolist()\n",
    "other/__init__.py": "import torch\n\n\ndef twice(x):\n    return torch.add(x, x)\n",
    "smoke.py": '"""Uses it."""\n\nimport mylib\n\nresult = mylib.f()\nprint(result)\n',
}
_PLAIN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A library that was diagnosed in a scope without one of its two packages."""
    folder = tmp_path_factory.mktemp("scope")
    for name, text in _FILES.items():
        (folder / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "lib" / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["diagnose", "lib", "--scope", "mylib"]) == cli.GAPS
        yield folder / "lib"


def _run(folder: Path, *arguments: str) -> int:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=False).returncode


def test_the_boundary_is_reproduced_by_a_package(lib: Path, tmp_path: Path) -> None:
    (gap,) = json.loads(Path(".migrate-lens/report.json").read_text())["gaps"]
    assert gap["decision"] == "narrow_scope"
    assert cli.main(["issue", "--emit"]) == 0
    (folder,) = Path("issues").iterdir()
    for file in folder.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert {"mre.py", "pkg.py"} <= {p.name for p in tmp_path.iterdir()}
    assert _run(tmp_path, "mre.py") == 0
    assert _run(tmp_path, "-c", IN_SCOPE, "mre.py") == 1


def test_the_smallest_scope_that_serves_is_put_at_the_entry(lib: Path) -> None:
    assert cli.main(["fix", "--apply", "--owner", "jane"]) == 0
    text = (lib / "smoke.py").read_text()
    assert text.startswith('"""Uses it."""\n\n# TODO(jane): remove this workaround after Paddle compat supports')
    assert '    paddle.enable_compat(scope={"mylib", "other"})\n' in text
    assert text.endswith("import mylib\n\nresult = mylib.f()\nprint(result)\n")
    code = f"{without('torch')}\n{_PLAIN}"
    run = run_in(lib, [sys.executable, "-c", code, "smoke.py"], 60)
    assert run.passed
    assert "[2.0, 2.0]" in run.output
    assert _run(lib, "smoke.py") == 0
    assert cli.main(["check", "lib"]) == 0
    cli.main(["fix", "--apply", "--force", "--owner", "jane"])
    assert (lib / "smoke.py").read_text() == text


def test_the_line_is_taken_out_again_by_its_patch(lib: Path) -> None:
    (patch,) = Path(".migrate-lens/patches").glob("*.patch")
    subprocess.run(["git", "init", "-q"], cwd=lib, check=True)
    subprocess.run(["git", "apply", "-R", str(patch.resolve())], cwd=lib, check=True)
    assert (lib / "smoke.py").read_text() == _FILES["smoke.py"]
