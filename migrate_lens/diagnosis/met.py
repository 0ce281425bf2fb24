"""What a diagnosis meets, one thing after the other, in; all of it, each finding once, out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_lens.diagnosis.investigate import Investigation
from migrate_lens.diagnosis.suite import Table
from migrate_lens.model.report import (
    Finding,
    FirstDivergence,
    Library,
    Probe,
    Shortfall,
    Skipped,
    Stage,
    StageResult,
    Symptom,
    TraceSummary,
)
from migrate_lens.native import LOADERS, NativeReport, link_findings

_OF_LOADING = (Symptom.EXCEPTION, Symptom.MISSING_API, Symptom.IMPORT_ERROR)


@dataclass
class Met:
    """All that was met on the way up the ladder.

    Attributes:
        library: what is diagnosed.
        stages: a result for each rung that was tried, by runtime.
        findings: what differs, in the order in which it was met.
        traces: how far each pair of runs went.
        skipped: what could not be read, run or observed.
        shortfalls: what could have been exercised and was not, or not in whole.
        exercised: whether a torch call was made on both sides, or an extension was built.
        notes: what a person should know about how this was found.
        bases: each probe that runs under torch, with the trace of torch's run.
        first: the first divergence.
        table: what became of each test, where tests were run.
    """

    library: Library
    stages: list[StageResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    traces: list[TraceSummary] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    shortfalls: list[Shortfall] = field(default_factory=list)
    exercised: bool = False
    notes: list[str] = field(default_factory=list)
    bases: list[tuple[Probe, Path]] = field(default_factory=list)
    first: FirstDivergence | None = None
    table: Table | None = None

    def put_aside(self, name: str, reason: str, flag: str = "") -> None:
        """Something that was found and says nothing about the target; both lists of the report have it."""
        self.skipped.append(Skipped(name, reason))
        self.shortfalls.append(Shortfall(name, reason, flag))

    def investigated(self, probe: Probe, investigation: Investigation) -> None:
        """What one probe showed, all but its findings."""
        self.bases.append((probe, investigation.base.file))
        self.stages.extend(investigation.stages)
        self.notes.extend(investigation.notes)
        self.first = self.first or investigation.first
        if investigation.summary is not None:
            self.traces.append(investigation.summary)

    def add(self, finding: Finding) -> None:
        """A finding; one that is known already gets the sites of the new one too."""
        for index, known in enumerate(self.findings):
            if known.key == finding.key:
                sites = tuple(dict.fromkeys((*known.sites, *finding.sites)))
                self.findings[index] = replace(known, sites=sites, parts=known.parts | finding.parts)
                return
        self.findings.append(finding)

    def add_observed(self, finding: Finding, unbuilt: tuple[str, ...], target: Path | None) -> None:
        """A finding of a run; one about loading an extension is named by what that misses.

        Args:
            finding: as the run showed it.
            unbuilt: extensions that the target's build did not give; what only says so again is left out.
            target: where the target's extensions are.
        """
        if unbuilt and _of_unbuilt(finding, unbuilt):
            return
        causes = link_findings(finding.actual, self.library, target) if finding.key.symptom in _OF_LOADING else ()
        for cause in causes or (finding,):
            self.add(cause)

    def add_compiled(self, report: NativeReport) -> None:
        """What compilers met while the program ran; it says more than the exception that a loader ended in."""
        self.notes.extend(report.notes)
        loads = [finding for finding in self.findings if finding.key.api in LOADERS]
        if report.findings:
            self.findings = [finding for finding in self.findings if not _is_loader_exception(finding)]
        stage = loads[0].stage if loads else Stage.RUN
        loaded_at = tuple(site for load in loads for site in load.sites)
        for finding in report.findings:
            self.add(replace(finding, sites=finding.sites or loaded_at, stage=stage))


def _is_loader_exception(finding: Finding) -> bool:
    return finding.key.api in LOADERS and finding.key.symptom is Symptom.EXCEPTION


def _of_unbuilt(finding: Finding, unbuilt: tuple[str, ...]) -> bool:
    """Whether a finding only says again that an extension was not built."""
    api = finding.key.api
    if api.startswith("torch.ops.") or any(api == name or api.startswith(f"{name}.") for name in unbuilt):
        return True
    loading = "ImportError" in finding.actual or "OSError" in finding.actual
    return loading and any(name.rpartition(".")[2] in finding.actual for name in unbuilt)
