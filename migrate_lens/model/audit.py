"""The nouns of an audit: frozen types that scanners, rules and report formats share; no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_lens.model.report import Gap, Site, Skipped

ASKED, RULE = "asked", "rule"
REACHES = ("import", "api", "build", "module", "example", "test")


@dataclass(frozen=True, slots=True)
class Spot:
    """One site of a gap.

    Attributes:
        site: where.
        sure: certain, likely or guess.
        guard: what makes it optional, or empty.
        reach: import (runs when the package is imported), api (in a module that the import loads), build, module
            (importable on its own), example, test.
    """

    site: Site
    sure: str
    guard: str
    reach: str


@dataclass(frozen=True, slots=True)
class AuditGap:
    """A gap with how likely it is to bite.

    Attributes:
        gap: what every report shows.
        score: the order of the report: higher bites sooner.
        basis: ``asked`` if both frameworks were asked for the name, ``rule`` if a pattern matched.
        spots: all sites, with how each one is reached.
    """

    gap: Gap
    score: float
    basis: str
    spots: tuple[Spot, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the gap stands in."""
        return tuple(dict.fromkeys(spot.site.path for spot in self.spots))

    @property
    def reach(self) -> str:
        """The nearest reach of its sites."""
        return min((spot.reach for spot in self.spots), key=REACHES.index)

    @property
    def guarded(self) -> bool:
        """Whether every site is optional."""
        return all(spot.guard for spot in self.spots)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a migration would do, in the guide's order."""

    kind: str
    control_plane: str
    first_patch: str
    unchanged: tuple[str, ...]
    changed: tuple[tuple[str, tuple[str, ...]], ...]
    validation: tuple[str, ...]
    gpu_only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LibraryAudit:
    """What one PATH holds.

    Attributes:
        root: absolute; of an archive, the folder that it was read in.
        packages: top-level import names; ``modules`` all dotted names outside tests.
        apis: (torch name, verdict, uses) of everything that was looked up, most used first.
        suppressed: gaps that a comment or the baseline accounts for.
    """

    name: str
    root: str
    grade: str
    files: int
    torch_files: int
    uses: int
    apis: tuple[tuple[str, str, int], ...]
    gaps: tuple[AuditGap, ...]
    skipped: tuple[Skipped, ...]
    plan: Plan
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    native_sources: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    suppressed: int = 0


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that an audit found; every format is a function of this.

    Attributes:
        holding: (torch name, libraries) of missing names that hold back more than one library, most first.
    """

    torch: tuple[str, str]
    target: tuple[str, str]
    libraries: tuple[LibraryAudit, ...]
    holding: tuple[tuple[str, tuple[str, ...]], ...]
