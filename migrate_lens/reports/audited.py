"""An audit, in; the tables and sentences that its formats for people share, out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from migrate_lens import media
from migrate_lens.model.audit import GRADES, AuditGap, AuditReport, Basis, Grade, LibraryAudit
from migrate_lens.model.report import Runtime
from migrate_lens.model.target import TARGET
from migrate_lens.reports.wording import count, sites

SHOWN = 25
FILES_SHOWN = 8
HOLDING_SHOWN = 40
COMMIT = 12  # characters that name a commit
REACHES = {
    "import": "runs when the package is imported",
    "api": "in a module that the import loads",
    "build": "in what is compiled or in the build entry",
    "module": "in a module of its own",
    "example": "in examples, benchmarks or vendored code",
    "test": "in tests",
}
SUMMARY = ("library", "kind", "grade", "torch files", "uses", "gaps", "skipped")


def headline(report: AuditReport) -> str:
    """What was asked, in one line."""
    torch_version, _ = report.torch
    target_version, commit = report.target
    target = f"{TARGET.title} {target_version} ({commit[:COMMIT] or 'no commit'})"
    return media.line(f"{Runtime.TORCH} {torch_version} against {target}")


def size(library: LibraryAudit) -> str:
    """The size of the library and of the work, in one line."""
    touched = {path for audited in library.gaps for path in audited.files}
    read = f"{count(library.files, 'file')} read, {library.torch_files} use torch in {count(library.uses, 'place')}"
    work = f"{count(len(library.gaps), 'gap')} in {count(len(touched), 'file')}"
    return f"{read}; {work}; grade {library.grade}"


def grading(library: LibraryAudit) -> list[str]:
    """How the grade comes about, in two lines."""
    met, names, fine = library.grading
    allowed = ", ".join(f"{grade} up to {most}" for most, grade in GRADES)
    share = f" ({100 * fine // names} %)" if names else ""
    return [
        f"grade {library.grade}: {count(met, 'gap')} that a user would meet ({allowed}, beyond that {Grade.E})",
        f"names: {fine} of the {names} of torch's that it uses are there under {TARGET.title}{share}",
    ]


def tallies(library: LibraryAudit) -> list[tuple[str, str]]:
    """How many gaps by layer, category and decision."""
    gaps = [audited.gap for audited in library.gaps]
    return [
        ("layer", tally(gap.layer for gap in gaps)),
        ("category", tally(gap.category for gap in gaps)),
        ("decision", tally(gap.decision for gap in gaps)),
    ]


def tally(values: Iterable[str]) -> str:
    """``a 3, b 1``."""
    return ", ".join(f"{value} {number}" for value, number in Counter(map(str, values)).most_common())


def plan(library: LibraryAudit) -> list[tuple[str, str]]:
    """The plan as (heading, text)."""
    made = library.plan
    rows = [
        ("kind", made.kind),
        ("control plane", made.control_plane),
        ("first patch", made.first_patch),
        (
            "none seen by reading",
            f"{files(made.unchanged)} (values and dtypes show in a run alone)",
        ),
    ]
    rows += [(f"change, {layer}", files(paths)) for layer, paths in made.changed]
    if made.gpu_only:
        rows.append(("only on a GPU", some(made.gpu_only)))
    return [(heading, media.line(text)) for heading, text in rows]


def files(paths: Sequence[str]) -> str:
    """How many files, and the first of them."""
    return f"{count(len(paths), 'file')}: {some(paths)}"


def some(names: Sequence[str]) -> str:
    """The first few names and how many more."""
    shown = ", ".join(names[:FILES_SHOWN])
    left = len(names) - FILES_SHOWN
    return f"{shown}, +{left} more" if left > 0 else shown


def gap_head(audited: AuditGap) -> str:
    """A gap's identity in one line."""
    gap = audited.gap
    optional = ", optional everywhere" if audited.guarded else ""
    return f"{media.line(gap.id)}  [{gap.layer}, {gap.category}, {gap.decision}] {REACHES[audited.reach]}{optional}"


def gap_body(audited: AuditGap) -> list[str]:
    """Where, what is expected, what is there, and why it is said."""
    gap = audited.gap
    basis = "both frameworks were asked" if audited.basis is Basis.ASKED else f"rule {gap.rule}"
    where = f"{count(len(gap.sites), 'site')} in {count(len(audited.files), 'file')}: {sites(gap.sites)}"
    return [
        where,
        f"{media.line(gap.expected)}; {media.line(gap.actual)} ({basis})",
        *map(media.line, gap.evidence[:3]),
    ]


def summary(report: AuditReport) -> list[tuple[str, ...]]:
    """One row a library, in the columns of ``SUMMARY``."""
    return [_summary(library) for library in report.libraries]


def _summary(library: LibraryAudit) -> tuple[str, ...]:
    numbers = (library.torch_files, library.uses, len(library.gaps), len(library.skipped))
    return (media.line(library.name), media.line(library.plan.kind), library.grade, *map(str, numbers))
