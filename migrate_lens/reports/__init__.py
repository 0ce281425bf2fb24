"""A document and the name of a format, in; text, out. One registry serves every document and every format.

A format of a document is one module: ``reports/DOCUMENT/FORMAT.py``, with ``render(document, view) -> str``. It is
found by its place and imported when somebody asks for it, so that listing formats, as ``--help`` does, costs nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Generic, TypeVar

from migrate_lens.model.errors import UsageError

if TYPE_CHECKING:
    from migrate_lens.compare.comparison import Comparison
    from migrate_lens.doctor.examine import Health
    from migrate_lens.model.audit import AuditReport
    from migrate_lens.model.report import Report
    from migrate_lens.runs.replay import Judged
    from migrate_lens.runs.request import Recorded

WIDTH = 80
FIRST = ("text", "json", "markdown")  # as they are listed; the others follow by name
SHORT = {"md": "markdown"}

Content = TypeVar("Content", contravariant=True)


@dataclass(frozen=True, slots=True)
class View:
    """How a document is shown.

    Attributes:
        width: columns of the terminal, for text.
        kept: where the whole document is kept, for formats that say so; empty if nowhere.
        state: the folder of results that was named; empty where none was.
    """

    width: int = WIDTH
    kept: str = ""
    state: str = ""


PLAIN = View()


def named(name: str, known: Sequence[str]) -> str:
    """The format that a user named, of those that there are.

    Raises:
        UsageError: there is none of that name.
    """
    name = SHORT.get(name, name)
    if name in known:
        return name
    near = difflib.get_close_matches(name, known, n=1)
    raise UsageError(f"--format: no format {name!r}", f"one of {', '.join(near or known)}")


@dataclass(frozen=True, slots=True)
class Document(Generic[Content]):
    """A kind of document; ``name`` is the folder of its formats."""

    name: str

    def formats(self) -> tuple[str, ...]:
        """The names of its formats; none of them is imported."""
        folders = [str(Path(place) / self.name) for place in __path__]
        names = {module.name for module in iter_modules(folders) if not module.name.startswith("_")}
        return (*(name for name in FIRST if name in names), *sorted(names.difference(FIRST)))

    def format(self, name: str) -> str:
        """The format that a user named.

        Raises:
            UsageError: the document has no such format.
        """
        return named(name, self.formats())

    def render(self, document: Content, format: str, view: View = PLAIN) -> str:
        """The document in one format.

        Raises:
            UsageError: the document has no such format.
        """
        module = import_module(f"{__name__}.{self.name}.{self.format(format)}")
        render: Callable[[Content, View], str] = module.render
        return render(document, view)


DIAGNOSIS: Document[Report] = Document("diagnosis")
AUDIT: Document[AuditReport] = Document("audit")
TRACE: Document[Recorded] = Document("trace")
DIFF: Document[Comparison] = Document("diff")
REPLAY: Document[Sequence[Judged]] = Document("replay")
DOCTOR: Document[Health] = Document("doctor")
