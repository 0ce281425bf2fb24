"""What a command came to, in; the exit code that says so, out."""

from __future__ import annotations

from migrate_lens.model.report import Verdict

NO_GAPS, GAPS, ERROR, BASELINE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES = {
    Verdict.NO_GAPS: NO_GAPS,
    Verdict.GAPS: GAPS,
    Verdict.BASELINE_FAILED: BASELINE_FAILED,
    Verdict.NOT_EXERCISED: BASELINE_FAILED,
}


def of(well: bool) -> int:
    """0 where all is well, 1 where something was seen that is not."""
    return NO_GAPS if well else GAPS
