"""Programs that die or hang while no call is running, in; how that is named, and by which call, out."""

from __future__ import annotations

import pytest
from real_lab import Lab, opened_lab

pytestmark = pytest.mark.real

__all__ = ["opened_lab"]

CAPSULES = """
import numpy as np
import torch
from torch.utils import dlpack
def total():
    view = torch.from_dlpack(np.arange(6, dtype=np.float32))
    again = dlpack.from_dlpack(dlpack.to_dlpack(view))
    return float(again.sum())
{rest}
"""


@pytest.mark.parametrize(
    "rest",
    [
        "result = total()",
        "view = torch.from_dlpack(np.ones(3))\nagain = dlpack.from_dlpack(dlpack.to_dlpack(view))\nresult = 1",
    ],
)
def test_what_cannot_be_released_is_a_timeout_of_the_call_that_made_it(lab: Lab, rest: str) -> None:
    found = lab.diagnose(CAPSULES.format(rest=rest), timeout=6.0)
    assert found.keys == ["torch.utils.dlpack.from_dlpack:timeout"]
    assert (
        "dlpack.from_dlpack(dlpack.to_dlpack(view))"
        in CAPSULES.format(rest=rest).split("\n")[found.gaps[0].sites[0].line - 1]
    )


ONLY_HERE = """
import atexit, os, signal
import torch
x = torch.ones(3) * 2.0
if not hasattr(torch, "_C") or hasattr(torch, "_original_module"):
    atexit.register({deed})
result = x
"""


def test_a_process_that_is_killed_at_its_end_is_a_crash(lab: Lab) -> None:
    found = lab.diagnose(ONLY_HERE.format(deed="os.kill, os.getpid(), signal.SIGSEGV"))
    assert [gap.symptom for gap in found.gaps] == ["crash"]
    assert "SIGSEGV" in found.gaps[0].actual


@pytest.mark.parametrize("deed", ["os.kill(os.getpid(), signal.SIGSEGV)", "time.sleep(60)", "os._exit(3)"])
def test_what_happens_at_the_end_under_torch_too_is_no_gap(lab: Lab, deed: str) -> None:
    source = f"import atexit, os, signal, time\nimport torch\natexit.register(lambda: {deed})\nresult = torch.ones(2)\n"
    assert lab.diagnose(source, timeout=4.0).keys == []
