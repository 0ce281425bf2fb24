"""An audit, in; the tables and sentences that its formats for people share, out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from migrate_lens.model.audit import ASKED, AuditGap, AuditReport, LibraryAudit
from migrate_lens.reports.wording import clean, count, sites

SHOWN = 25
FILES_SHOWN = 8
REACHES = {
    "import": "runs when the package is imported",
    "api": "in a module that the import loads",
    "build": "in what is compiled or in the build entry",
    "module": "in a module of its own",
    "example": "in examples, benchmarks or vendored code",
    "test": "in tests",
}


def headline(report: AuditReport) -> str:
    """What was asked, in one line."""
    return f"torch {report.torch[0]} against Paddle {report.paddle[0]} ({report.paddle[1][:12] or 'no commit'})"


def size(library: LibraryAudit) -> str:
    """The size of the library and of the work, in one line."""
    touched = {path for one in library.gaps for path in one.files}
    return (
        f"{count(library.files, 'file')} read, {library.torch_files} use torch in {count(library.uses, 'place')}; "
        f"{count(len(library.gaps), 'gap')} in {count(len(touched), 'file')}; grade {library.grade}"
    )


def tallies(library: LibraryAudit) -> list[tuple[str, str]]:
    """How many gaps by layer, category and decision."""
    gaps = [one.gap for one in library.gaps]
    rows = (("layer", (gap.layer for gap in gaps)), ("category", (gap.category for gap in gaps)))
    return [(name, tally(values)) for name, values in (*rows, ("decision", (gap.decision for gap in gaps)))]


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
        ("no change", f"{count(len(made.unchanged), 'file')}: {some(made.unchanged)}"),
    ]
    rows += [(f"change, {layer}", f"{count(len(files), 'file')}: {some(files)}") for layer, files in made.changed]
    rows += [("only on a GPU", some(made.gpu_only))] if made.gpu_only else []
    return [(name, clean(text)) for name, text in rows]


def some(names: tuple[str, ...]) -> str:
    """The first few names and how many more."""
    left = len(names) - FILES_SHOWN
    return ", ".join(names[:FILES_SHOWN]) + (f", +{left} more" if left > 0 else "")


def gap_head(one: AuditGap) -> str:
    """A gap's identity in one line."""
    gap = one.gap
    optional = ", optional everywhere" if one.guarded else ""
    return f"{clean(gap.id)}  [{gap.layer}, {gap.category}, {gap.decision}] {REACHES[one.reach]}{optional}"


def gap_body(one: AuditGap) -> list[str]:
    """Where, what is expected, what is there, and why it is said."""
    gap = one.gap
    basis = "both frameworks were asked" if one.basis == ASKED else f"rule {gap.rule}"
    where = f"{count(len(gap.sites), 'site')} in {count(len(one.files), 'file')}: {sites(gap.sites)}"
    return [where, f"{clean(gap.expected)}; {clean(gap.actual)} ({basis})", *map(clean, gap.evidence[:3])]


def summary(report: AuditReport) -> list[tuple[str, ...]]:
    """One row a library."""
    return [
        (
            one.name,
            one.plan.kind,
            one.grade,
            str(one.torch_files),
            str(one.uses),
            str(len(one.gaps)),
            str(len(one.skipped)),
        )
        for one in report.libraries
    ]


SUMMARY = ("library", "kind", "grade", "torch files", "uses", "gaps", "skipped")
