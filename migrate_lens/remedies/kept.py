"""A state folder in; the last diagnosis, its probes, and the reproductions that were emitted since, out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_lens import state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.report import Site
from migrate_lens.remedies.reproduce.reproduce import Case

REPORT = "report.json"
TRACES, INDEX = "traces", "index.json"
ISSUES, RECORD = "issues", "mre.json"
ISSUE_DECISIONS = ("issue", "workaround+issue", "narrow_scope")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The last diagnosis.

    Attributes:
        folder: the state folder.
        report: the report as JSON has it.
        index: what its traces are of.
    """

    folder: Path
    report: Mapping[str, Any]
    index: Mapping[str, Any]

    @property
    def gaps(self) -> Sequence[Mapping[str, Any]]:
        """Its gaps."""
        return self.report["gaps"]  # type: ignore[no-any-return]

    @property
    def traces(self) -> Iterator[Path]:
        """Torch's trace of each probe."""
        for probe in self.index["probes"]:
            yield self.folder / TRACES / probe["trace"]

    @property
    def private(self) -> tuple[str, ...]:
        """Names that are the library's own."""
        library = self.report["library"]
        return () if library["script"] else tuple({library["name"], *library["packages"]})

    @property
    def native(self) -> bool:
        """Whether the library has C++ of its own."""
        build = self.report["library"]["build"]
        return bool(build and build["native"])

    def python(self, family: str) -> Path:
        """The interpreter of a side."""
        return Path(self.index[f"{family}_python"])


def load(folder: Path) -> Diagnosis:
    """Read the last diagnosis.

    Raises:
        StateError: there is none, or it cannot be read.
    """
    report, index = state.read(folder / REPORT), state.read(folder / TRACES / INDEX)
    if report is None or index is None:
        raise StateError(
            f"no diagnosis in {folder}", "run migrate-lens diagnose PATH first, or name its folder: --state DIR"
        )
    return Diagnosis(folder, report, index)


def chosen(diagnosis: Diagnosis, names: Sequence[str], everything: bool) -> list[Mapping[str, Any]]:
    """The gaps that were named; without a name those that need an issue, or all of them.

    Raises:
        UsageError: there is no such gap.
    """
    known = {gap["id"]: gap for gap in diagnosis.gaps}
    for name in names:
        if name not in known:
            near = [k for k in known if name in k] or list(known)
            raise UsageError(
                f"no gap {name!r} in the last diagnosis", f"one of {', '.join(near[:6]) or 'none: no gaps'}"
            )
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [g for g in known.values() if everything or g["decision"] in ISSUE_DECISIONS]


def case_of(gap: Mapping[str, Any]) -> Case:
    """A gap as reproductions know it."""
    sites = tuple(Site(s["path"], s["line"]) for s in gap["sites"])
    return Case(gap["id"], gap["api"], gap["symptom"], sites, gap["actual"])


def slug(gap_id: str) -> str:
    """A gap's id as a folder name."""
    return re.sub(r"[^\w.+-]+", "-", gap_id).strip("-.") or "gap"


def programs(diagnosis: Diagnosis) -> list[str]:
    """Text of each diagnosed program that is one file, with the call that a probe makes."""
    found = []
    for probe in diagnosis.index["probes"]:
        if probe["kind"] == "script" and probe["path"]:
            found.append(_read(Path(probe["path"])))
        elif probe["kind"] == "callable":
            module, _, function = probe["spec"].partition(":")
            file = Path(diagnosis.report["library"]["import_root"] or ".")
            file = Path(diagnosis.report["library"]["root"]) / file / (module.replace(".", "/") + ".py")
            text = _read(file)
            found.append(text and f"{text.rstrip()}\n{_called(function)}\n")
    return [text for text in found if text]


def _called(function: str) -> str:
    """What a probe does with its callable: a pair of a layer and its inputs is called."""
    return (
        f"made = {function}()\n"
        "if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):\n"
        "    inputs = made[1] if isinstance(made[1], (tuple, list)) else (made[1],)\n"
        "    made = made[0](*inputs)\n"
        "result = made"
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


# -- what was emitted --------------------------------------------------------------------------------------------------


def emitted(root: Path) -> dict[tuple[str, str], Path]:
    """Reproductions that were emitted before: their folder by (api, symptom)."""
    found = {}
    for record in sorted(root.glob(f"*/{RECORD}")):
        try:
            kept = json.loads(record.read_text(encoding="utf-8"))
            found[kept["api"], kept["symptom"]] = record.parent
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def note_reproduction(diagnosis: Diagnosis, gap_id: str, path: str) -> None:
    """Say in the report where a gap's verified reproduction is."""
    document = json.loads(json.dumps(diagnosis.report))
    for gap in document["gaps"]:
        if gap["id"] == gap_id:
            gap["mre"] = {"path": path, "verified": True}
    state.write(diagnosis.folder / REPORT, json.dumps(document, indent=2) + "\n")
    diagnosis.report["gaps"][:] = document["gaps"]
