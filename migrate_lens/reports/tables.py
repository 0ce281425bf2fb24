"""Rows and sentences, in; lines that fit a terminal of a given width, out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

MIN_COLUMN = 7
LABEL = 10


def wrap(value: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """The value in lines of at most ``width`` columns; only a single long word goes past it."""
    wrapper = textwrap.TextWrapper(
        width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(value) or [first.rstrip()]


def labelled(label: str, value: str, width: int, indent: str = "") -> list[str]:
    """``label     value``, wrapped under the value."""
    return wrap(value, width, f"{indent}{label:<{LABEL}}", indent + " " * LABEL)


def table(rows: Sequence[Sequence[str]], width: int, separator: str = "  ", right: tuple[int, ...] = ()) -> list[str]:
    """The rows as aligned columns, a line under the first one; cells are wrapped until the table fits.

    Args:
        width: columns of the terminal.
        separator: between the cells of a row.
        right: numbers of the columns that are aligned to the right.
    """
    natural = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    widths = _fitted(natural, width, len(separator))
    head, *body = (list(_row(row, widths, separator, right)) for row in rows)
    lines = [*head, _rule(widths, separator)]
    for row_lines in body:
        lines += row_lines
    return lines


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as aligned columns that are as wide as they need."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def _rule(widths: Sequence[int], separator: str) -> str:
    """The line under the first row; blanks between columns stay blank, a bar is crossed."""
    between = separator.replace(" ", "-").replace("|", "+") if "|" in separator else "  "
    return between.join("-" * size for size in widths)


def _fitted(natural: Sequence[int], width: int, gap: int) -> list[int]:
    """Take columns from the widest one until the table fits, or no column can give more."""
    widths = list(natural)
    while sum(widths) + gap * (len(widths) - 1) > width and max(widths) > MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(row: Sequence[str], widths: Sequence[int], separator: str, right: tuple[int, ...]) -> Iterator[str]:
    """One row, in as many lines as its longest cell takes."""
    wrapped = [
        textwrap.wrap(cell, size, break_on_hyphens=False) or [""] for cell, size in zip(row, widths, strict=True)
    ]
    for parts in zip_longest(*wrapped, fillvalue=""):
        cells = []
        for column, part in enumerate(parts):
            align = ">" if column in right else "<"
            cells.append(f"{part:{align}{widths[column]}}")
        yield separator.join(cells).rstrip()
