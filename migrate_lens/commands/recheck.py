"""The command behind ``recheck``: kept reproductions in; how each does under the Paddle of today, out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from migrate_lens import state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.remedies import kept
from migrate_lens.remedies.port.checking import Waiting, workarounds
from migrate_lens.remedies.publish.verify import UNDER_PADDLE, CleanRun, run_files_under_paddle, same_failure
from migrate_lens.remedies.reproduce.native_reproduce import names

_MAKE_AGAIN = "remove its folder, then: migrate-lens issue --emit"


class RecheckOutcome(StrEnum):
    """How a kept reproduction does now."""

    STILL_FAILS = "still fails"
    FAILS_OTHERWISE = "fails otherwise"
    PASSES = "passes"


@dataclass(frozen=True, slots=True)
class Rechecked:
    """One kept reproduction against the Paddle that is installed now.

    Attributes:
        gap: its id.
        outcome: how it does.
        said: what happened.
        delete: workarounds that wait for it, as ``path:line``, where it passes.
    """

    gap: str
    outcome: RecheckOutcome
    said: str
    delete: tuple[str, ...] = ()


def recheck(path: Path, issues: Path, paddle: Path) -> tuple[Rechecked, ...]:
    """Run the kept reproductions again.

    Args:
        path: the port, in which workarounds may wait for them.
        issues: where they are.
        paddle: the interpreter that has Paddle.

    Raises:
        UsageError: there are none.
        StateError: a record is no record.
    """
    records = sorted(issues.glob(f"*/{kept.RECORD}"))
    if not records:
        raise UsageError(
            f"no reproductions in {issues}", "migrate-lens issue --emit makes them; --issues DIR names another folder"
        )
    waiting = list(workarounds(path)) if path.exists() else []
    return tuple(_again(record, waiting, paddle) for record in records)


def _again(record: Path, waiting: Sequence[Waiting], paddle: Path) -> Rechecked:
    reproduction = kept.reread(record)
    parts = reproduction.files or (reproduction.file,)
    files = {name: _part(record, name) for name in parts}
    run = run_files_under_paddle(files, reproduction.file, paddle, reproduction.switch or UNDER_PADDLE)
    if run.passed:
        delete = tuple(f"{one.path}:{one.line}" for one in waiting if one.api == reproduction.api)
        return Rechecked(reproduction.id, RecheckOutcome.PASSES, "Paddle does as torch does now", delete)
    same = _fails_as_before(reproduction, run)
    outcome = RecheckOutcome.STILL_FAILS if same else RecheckOutcome.FAILS_OTHERWISE
    return Rechecked(reproduction.id, outcome, run.failure)


def _part(record: Path, name: str) -> str:
    """A file of a reproduction.

    Raises:
        StateError: it cannot be read, or is no file of it.
    """
    path = record.parent / name
    try:
        if not path.resolve().is_relative_to(record.parent.resolve()):
            raise StateError(f"{record} names a file outside of its folder: {name}", _MAKE_AGAIN)
        return state.text_of(path)
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}", _MAKE_AGAIN) from error
    except (ValueError, RuntimeError) as error:  # no text, or a link to itself
        raise StateError(f"cannot read {path}: {error}", _MAKE_AGAIN) from error


def _fails_as_before(reproduction: kept.Emitted, run: CleanRun) -> bool:
    return same_failure(run.failure, reproduction.failure) and names(reproduction.needle, run.output)


# -- documents ---------------------------------------------------------------------------------------------------------


def lines(reproductions: Sequence[Rechecked]) -> Iterator[str]:
    """What became of each reproduction, for a person."""
    for one in reproductions:
        yield f"{one.gap}: {one.outcome} ({one.said})\n"
        for place in one.delete:
            yield f"  delete the workaround at {place}\n"
    still_open = sum(one.outcome is not RecheckOutcome.PASSES for one in reproductions)
    yield f"{still_open} of {len(reproductions)} still open\n"


def as_json(reproductions: Sequence[Rechecked]) -> str:
    """What became of each reproduction, for scripts."""
    document = {"schema": 1, "reproductions": [asdict(one) for one in reproductions]}
    return json.dumps(document, indent=2) + "\n"
