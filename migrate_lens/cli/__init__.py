"""The command line: argv in; a report on stdout, progress on stderr and an exit code out; the only code that prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from migrate_lens import interrupts

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; signals are listened to before anything that takes time is imported."""
    with interrupts.heard():
        try:
            from migrate_lens.cli.app import main as run

            return run(argv)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr, flush=True)
            return interrupts.exit_code()
