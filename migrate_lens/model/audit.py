"""The nouns of an audit: frozen types that scanners, rules and report formats share; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from migrate_lens.model.report import Gap, Site, Skipped
from migrate_lens.model.uses import Certainty, Guard


class Basis(StrEnum):
    """What a gap rests on."""

    ASKED = "asked"  # both frameworks were asked for the name
    RULE = "rule"  # a pattern matched


class Reach(StrEnum):
    """How near a site is to a user of the library, the nearest first."""

    IMPORT = "import"  # runs when the package is imported
    API = "api"  # in a module that the import loads
    BUILD = "build"  # in what is compiled, or in the build entry
    MODULE = "module"  # in a module of its own
    EXAMPLE = "example"
    TEST = "test"


class Verdict(StrEnum):
    """What both frameworks say about one name."""

    PRESENT = "present"
    MISSING = "missing"
    FAKE = "fake"  # a stand-in that does nothing
    OTHER_KIND = "other_kind"  # a class there, a function here
    UNKNOWN = "unknown"  # torch itself has no such name


class Grade(StrEnum):
    """How much a user of the library would meet, from nothing to a great deal."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"
    E = "E"


_NEARNESS = {reach: number for number, reach in enumerate(Reach)}


# How many gaps that a user would meet a grade allows; beyond the last one it is E.
GRADES = ((0, Grade.A), (5, Grade.B), (20, Grade.C), (60, Grade.D))


class Grading(NamedTuple):
    """How a grade comes about.

    Attributes:
        met: gaps that a user would meet: not optional, outside tests and examples, and likely enough.
        names: how many of torch's names the library uses.
        fine: how many of those are there under the other framework, as the same kind of thing.
    """

    met: int
    names: int
    fine: int

    @property
    def grade(self) -> Grade:
        """By the gaps alone."""
        return next((grade for most, grade in GRADES if self.met <= most), Grade.E)


class FrameworkVersion(NamedTuple):
    """A framework as it says of itself."""

    version: str
    commit: str


class AskedName(NamedTuple):
    """A torch name that was looked up, how often the library uses it, and for a missing one the nearest by name."""

    api: str
    verdict: Verdict
    uses: int
    nearest: str = ""


class LayerFiles(NamedTuple):
    """The files that gaps of one layer stand in."""

    layer: str
    files: tuple[str, ...]


class Holding(NamedTuple):
    """A missing name, and the libraries that it holds back."""

    api: str
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """One site of a gap.

    Attributes:
        site: where.
        sure: how sure the reader is of the name.
        guard: what makes it optional.
        reach: how near it is to a user of the library.
    """

    site: Site
    sure: Certainty
    guard: Guard
    reach: Reach


@dataclass(frozen=True, slots=True)
class AuditGap:
    """A gap with how likely it is to bite.

    Attributes:
        gap: what every report shows.
        score: the order of the report: higher bites sooner.
        basis: what it rests on.
        spots: all sites, with how each one is reached.
    """

    gap: Gap
    score: float
    basis: Basis
    spots: tuple[Spot, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the gap stands in."""
        return tuple(dict.fromkeys(spot.site.path for spot in self.spots))

    @property
    def reach(self) -> Reach:
        """The nearest reach of its sites."""
        return min((spot.reach for spot in self.spots), key=_NEARNESS.__getitem__)

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
    changed: tuple[LayerFiles, ...]
    validation: tuple[str, ...]
    gpu_only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LibraryAudit:
    """What one PATH holds.

    Attributes:
        root: absolute; of an archive, the folder that it was read in.
        packages: top-level import names; ``modules`` all dotted names outside tests.
        apis: everything that was looked up, most used first.
        suppressed: gaps that a comment or the baseline accounts for.
    """

    name: str
    root: str
    grading: Grading
    files: int
    torch_files: int
    uses: int
    apis: tuple[AskedName, ...]
    gaps: tuple[AuditGap, ...]
    skipped: tuple[Skipped, ...]
    plan: Plan
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    native_sources: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    suppressed: int = 0

    @property
    def grade(self) -> Grade:
        """How much a user of it would meet."""
        return self.grading.grade


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that an audit found; every format is a function of this.

    Attributes:
        holding: missing names that hold back more than one library, most first.
    """

    torch: FrameworkVersion
    target: FrameworkVersion
    libraries: tuple[LibraryAudit, ...]
    holding: tuple[Holding, ...]
