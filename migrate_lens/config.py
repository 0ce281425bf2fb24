"""What the user asked for: flags over ``[tool.migrate-lens]`` or ``migrate-lens.toml``, in; frozen ``Options``, out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """What a diagnosis was asked to do.

    Attributes:
        path: the library or the script.
        probes: ``--probe`` values; empty means configured or found.
        torch_python: interpreter of the torch side.
        paddle_python: interpreter of the Paddle side.
        scope: compat scope; empty means found.
        keep_torch: leave real torch visible in the Paddle runtimes.
        timeout: seconds that any one stage may take.
        tests: run the ``test`` stage too.
        stop_at_first: do not go on past the first gap.
        state: folder for the results of the last diagnosis.
    """

    path: Path
    probes: tuple[str, ...]
    torch_python: Path
    paddle_python: Path
    scope: tuple[str, ...]
    keep_torch: bool
    timeout: float
    tests: bool
    stop_at_first: bool
    state: Path
