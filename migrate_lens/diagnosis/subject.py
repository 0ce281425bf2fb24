"""What a diagnosis of one probe is about: where it runs, on which rung, and how it runs under torch."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_lens.model.report import Library, Probe, Stage, StageResult
from migrate_lens.runs.bench import Bench, Run, Setting


@dataclass(frozen=True, slots=True)
class Subject:
    """One probe on one rung of the ladder.

    Attributes:
        bench: where it is run.
        setting: what all its runs share.
        stage: the rung.
        probe: the program.
    """

    bench: Bench
    setting: Setting
    stage: Stage
    probe: Probe

    @property
    def library(self) -> Library:
        """The library under diagnosis."""
        return self.setting.library


@dataclass(frozen=True, slots=True)
class Baseline:
    """How a probe does under torch.

    Attributes:
        run: the run that counts.
        result: the rung.
        observed: whether what it did could be recorded; where not, its outcome alone is compared.
    """

    run: Run
    result: StageResult
    observed: bool
