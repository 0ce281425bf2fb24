"""Paths to audit in; what a migration of them would meet, read and never run, out."""

from __future__ import annotations

import contextlib
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from migrate_lens import state
from migrate_lens.audit import baseline, report, surface, tree
from migrate_lens.audit.baseline import Known
from migrate_lens.audit.surface import Surface
from migrate_lens.model.audit import AuditGap, AuditReport, Basis, LibraryAudit
from migrate_lens.model.errors import LensError, StateError, UsageError
from migrate_lens.model.progress import Progress
from migrate_lens.rulebook.audit import load_rules


class FailOn(StrEnum):
    """Which gaps a user wants an audit to fail on.

    ``import``: what is reached by importing the package. ``asked``: where both frameworks were asked for a name. Sites
    that are optional count for neither.
    """

    ANY = "any"
    IMPORT = "import"
    ASKED = "asked"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What an audit was asked to do.

    Attributes:
        paths: folders, files, wheels, sdists, or names of installed distributions.
        torch_python, paddle_python: interpreters, by path or by name on PATH; None is the current one.
        surface: a saved surface; without one the installed frameworks are asked.
        save_surface: where to keep what they answered.
        baseline: a file of gaps that are known, which are left out.
        write_baseline: where to write the gaps as known ones.
        changed_since: a git revision; only files that differ from it are read.
        cache: whether scans and surfaces are kept between runs.
    """

    paths: tuple[str, ...]
    torch_python: str | None = None
    paddle_python: str | None = None
    surface: Path | None = None
    save_surface: Path | None = None
    baseline: Path | None = None
    write_baseline: Path | None = None
    changed_since: str | None = None
    cache: bool = True


def audit(options: AuditOptions, progress: Progress) -> AuditReport:
    """Audit every path, one after the other.

    Raises:
        UsageError: there is no path, or one that does not exist; an interpreter cannot be used.
        StateError: the baseline cannot be written.
    """
    if not options.paths:
        raise UsageError("nothing to audit", "migrate-lens audit PATH...")
    _check_outputs(options)
    progress(f"auditing {', '.join(options.paths)}: reading only, nothing is run")
    both = _surface(options, progress)
    known = baseline.load(options.baseline) if options.baseline else None
    libraries = tuple(_library(path, options, both, known) for path in dict.fromkeys(options.paths))
    audited = report.assemble(both, libraries)
    if options.write_baseline:
        _write(options.write_baseline, baseline.text(audited.libraries))
    return audited


def _check_outputs(options: AuditOptions) -> None:
    """See that nothing of what is audited is overwritten: only a baseline by a baseline, a surface by a surface."""
    kinds = (
        ("--write-baseline", options.write_baseline, baseline.load),
        ("--save-surface", options.save_surface, surface.load),
    )
    for option, path, load in kinds:
        if path is None:
            continue
        libraries = list(map(Path, options.paths))
        with contextlib.suppress(LensError):
            load(path)
            libraries = []  # it is one of ours
        if option == "--write-baseline" or path.exists():
            state.check_output(path, libraries, option)


def _surface(options: AuditOptions, progress: Progress) -> Surface:
    """A saved surface, or what the interpreters have."""
    if options.surface:
        return surface.load(options.surface)
    torch, target = _interpreter(options.torch_python), _interpreter(options.paddle_python)
    installed = surface.installed(torch, target, state.cache_folder(), progress)
    if options.save_surface:
        surface.write(options.save_surface, installed.document)
    return installed


def _interpreter(named: str | None) -> Path:
    """The interpreter that the user named, on PATH or by its place; without one, the current one."""
    if not named:
        return Path(sys.executable)
    path = shutil.which(named)
    if not path:
        raise UsageError(f"no interpreter {named!r}", "give its path, or a name on PATH")
    return Path(path)


def _library(path: str, options: AuditOptions, both: Surface, known: Known | None) -> LibraryAudit:
    """One path, wherever its sources come from."""
    with tree.opened(path) as sources:
        only = baseline.changed_since(sources.root, options.changed_since) if options.changed_since else None
        cache = state.cache_folder() if options.cache else None
        return report.audit_tree(sources, both, cache, known, only)


def _write(path: Path, text: str) -> None:
    try:
        state.write(path, text)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}", "name another file") from error


# -- whether it failed -------------------------------------------------------------------------------------------------


def fail_on(name: str) -> FailOn:
    """What the user wants to fail on.

    Raises:
        UsageError: there is no such choice.
    """
    try:
        return FailOn(name)
    except ValueError as error:
        raise UsageError(f"--fail-on: no such value {name!r}", f"one of {', '.join(FailOn)}") from error


def fails(audited: AuditReport, on: FailOn) -> bool:
    """Whether there is a gap of the kind that the user wants to hear of."""
    gaps = [gap for library in audited.libraries for gap in library.gaps]
    return any(_counts(gap, on) for gap in gaps)


def _counts(gap: AuditGap, on: FailOn) -> bool:
    match on:
        case FailOn.ANY:
            return True
        case FailOn.IMPORT:
            return gap.reach == "import" and not gap.guarded
        case FailOn.ASKED:
            return gap.basis is Basis.ASKED and not gap.guarded
        case FailOn.NONE:
            return False
        case _:
            assert_never(on)


# -- what a rule says --------------------------------------------------------------------------------------------------


def explained(name: str) -> str:
    """What an audit rule says, and the cases that prove it.

    Raises:
        UsageError: there is no such rule.
    """
    rules = {rule.id: rule for rule in load_rules().rules}
    rule = rules.get(name)
    if rule is None:
        raise UsageError(f"--explain: no audit rule {name!r}", f"one of {', '.join(rules)}")
    head = f"{rule.id}: {rule.title}\n\n{rule.why}\ninstead: {rule.instead}\n"
    kind = f"{rule.symptom}, {rule.layer}, category {rule.category}, {rule.decision}\n"
    return f"{head}{kind}\nfor example\n{_cases(rule.examples)}\nbut not\n{_cases(rule.counterexamples)}"


def _cases(cases: tuple[tuple[str, str], ...]) -> str:
    """Cases of a rule as they stand in a file."""
    return "".join(f"  {path}\n{_indented(source)}" for path, source in cases)


def _indented(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.splitlines())
