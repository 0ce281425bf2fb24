"""Programs with a gap in the company of others: the reproduction of each fails at its own name, and at nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrate_lens.cli import app as cli
from migrate_lens.remedies.publish.verify import UNDER_PADDLE

pytestmark = pytest.mark.real

PROGRAMS: dict[str, str] = {
    "float8_e5m2fnuz": (
        "import torch\nmodel = torch.nn.Linear(3, 2)\nstep = torch.optim.Adam(model.parameters())\n"
        "kind = getattr(torch, 'float8_e5m2fnuz')\nresult = model(torch.ones(1, 3))\n"
    ),
    "float8_e8m0fnu": (
        "import torch\nm = torch.nn.Linear(1, 1)\n"
        "plan = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(m.parameters(), lr=1.0), 2)\n"
        "kind = torch.float8_e8m0fnu\nresult = m(torch.ones(1, 1)).shape[0]\n"
    ),
    "bits8": (
        "import torch\ngate = torch.special.bessel_j0(torch.ones(1))\nname = 'bits8'\nkind = getattr(torch, name)\n"
        "result = gate\n"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_reproduction_fails_at_its_own_gap(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prog.py").write_text(PROGRAMS[name])
    assert cli.main(["diagnose", "prog.py"]) == cli.GAPS
    assert cli.main(["issue", "--emit", f"torch.{name}:missing_api"]) == 0
    (file,) = Path("issues").glob("*/mre.py")
    text = file.read_text()
    assert "optim" not in text
    assert "bessel" not in text
    for switch in ([], ["-c", UNDER_PADDLE]):
        command = [sys.executable, *switch, file.name]
        done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
        assert done.returncode == int(bool(switch)), done.stderr
    assert f"has no attribute '{name}'" in done.stderr
