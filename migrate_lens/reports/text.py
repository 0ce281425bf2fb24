"""A report, in; plain text for a terminal of a given width, out. A healthy library takes one screen of 24 lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from migrate_lens.model.report import Gap, Report
from migrate_lens.reports import wording

WIDTH = 80
MIN_COLUMN = 7
LABEL = 10


def render(report: Report, width: int = WIDTH) -> str:
    """The report in lines of at most ``width`` columns; only a single long word goes past it."""
    blocks = [
        _head(report, width),
        _stages(report, width),
        _first(report, width),
        *_gaps(report, width),
        _rest(report, width),
        _end(report, width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _labelled(label: str, value: str, width: int, indent: str = "") -> list[str]:
    """``label     value``, wrapped under the value."""
    first, rest = f"{indent}{label:<{LABEL}}", indent + " " * LABEL
    return _wrap(value, width, first, rest)


def _wrap(value: str, width: int, first: str = "", rest: str = "") -> list[str]:
    wrapper = textwrap.TextWrapper(
        width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(value) or [first.rstrip()]


def _head(report: Report, width: int) -> list[str]:
    library = report.library
    lines = _labelled("library", f"{wording.clean(library.name)} in {library.script or library.root}", width)
    if library.build:
        sources = wording.count(len(library.native_sources), "native source")
        lines += _labelled("build", f"{library.build.kind}, {library.build.file.name}, {sources}", width)
    lines += _labelled("probes", wording.probes(report), width)
    lines += _labelled("torch", wording.environment(report.torch), width)
    return lines + _labelled("paddle", wording.environment(report.paddle), width)


def _stages(report: Report, width: int) -> list[str]:
    rows = wording.stage_rows(report.stages)
    if not rows:
        return []
    lines = table([wording.STAGE_HEADER, *(row for row, _ in rows)], width, right=(4,))
    details = [f"{row[0]} {row[1]} {row[2]}: {detail}" for row, detail in rows if detail]
    return lines + [line for detail in details for line in _wrap(detail, width, "  ", "    ")]


def _first(report: Report, width: int) -> list[str]:
    first = report.first
    if first is None:
        return []
    cells = (first.torch_path, first.paddle_path, first.observed, first.conclusion)
    rows = [wording.FIRST_HEADER, tuple(wording.clean(cell) for cell in cells)]
    return ["First divergence", *table(rows, width, separator=" | ")]


def _gaps(report: Report, width: int) -> Iterator[list[str]]:
    for title, gaps in wording.by_layer(report.gaps):
        yield [*_wrap(title, width), *(line for gap in gaps for line in _gap(gap, width))]


def _gap(gap: Gap, width: int) -> list[str]:
    why = wording.evidence(gap)
    lines = _wrap(f"{gap.id}", width, "  ", "    ")
    lines += _labelled("symptom", f"{gap.symptom}, category {gap.category}, stage {gap.stage}", width, "    ")
    lines += _labelled("at", wording.sites(gap.sites), width, "    ")
    lines += _labelled("expected", wording.clean(gap.expected), width, "    ")
    lines += _labelled("actual", wording.clean(gap.actual), width, "    ")
    lines += _labelled("decision", f"{gap.decision}" + (f" (rule {gap.rule})" if gap.rule else ""), width, "    ")
    for line in why:
        lines += _wrap(line, width, " " * (LABEL + 4) + "- ", " " * (LABEL + 6))
    for label, line in wording.remedies(gap):
        lines += _labelled(label, line, width, "    ")
    return lines


def _rest(report: Report, width: int) -> list[str]:
    lines = [line for trace in wording.traces(report) for line in _labelled("trace", trace, width)]
    for skipped in wording.skipped(report):
        lines += _labelled("skipped", skipped, width)
    for note in report.notes:
        lines += _labelled("note", wording.clean(note), width)
    if scope := wording.scope_line(report):
        lines += _labelled("scope", scope, width)
    return lines


def _end(report: Report, width: int) -> list[str]:
    lines = _wrap(wording.verdict(report), width)
    steps = wording.next_steps(report)
    if steps:
        lines += ["", "What to do next"]
    for reason, command in steps:
        lines += [*_wrap(f"{reason}:", width, "  ", "  "), f"    {command}"]
    return lines


# --- tables -----------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Sequence[str]], width: int, separator: str = "  ", right: tuple[int, ...] = ()) -> list[str]:
    """The rows as aligned columns, a line under the first one; cells are wrapped until the table fits."""
    widths = _fitted([max(len(cell) for cell in column) for column in zip(*rows, strict=True)], width, len(separator))
    lines = [line for row in rows for line in _table_row(row, widths, separator, right)]
    head = len(list(_table_row(rows[0], widths, separator, right)))
    rule = separator.replace(" ", "-").replace("|", "+").join("-" * size for size in widths)
    return [*lines[:head], rule if "|" in separator else "  ".join("-" * size for size in widths), *lines[head:]]


def _fitted(natural: list[int], width: int, gap: int) -> list[int]:
    """Take columns from the widest one until the table fits, or no column can give more."""
    widths = list(natural)
    while sum(widths) + gap * (len(widths) - 1) > width and max(widths) > MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    return widths


def _table_row(row: Sequence[str], widths: list[int], separator: str, right: tuple[int, ...]) -> Iterable[str]:
    cells = [textwrap.wrap(cell, size, break_on_hyphens=False) or [""] for cell, size in zip(row, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (f"{part:>{widths[i]}}" if i in right else f"{part:<{widths[i]}}" for i, part in enumerate(parts))
        yield separator.join(padded).rstrip()
