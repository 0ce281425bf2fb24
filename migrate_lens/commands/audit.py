"""``migrate-lens audit``: paths and flags in; the text of a report and an exit code out. Nothing here prints.

``register(app, show, say)`` adds the command to the command line: ``show`` takes the report, ``say`` takes progress.
Importing this module costs nothing: readers, rules and formats are imported when the command runs.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_lens import state
from migrate_lens.model.errors import StateError, UsageError
from migrate_lens.model.progress import Progress

if TYPE_CHECKING:
    from migrate_lens.audit.surface import Surface
    from migrate_lens.model.audit import AuditReport, LibraryAudit

FORMATS = ("text", "json", "md", "markdown", "sarif")
FAIL_ON = ("any", "import", "asked", "none")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What an audit was asked to do.

    Attributes:
        paths: folders, files, wheels, sdists, or names of installed distributions.
        surface: a saved surface; without one the installed frameworks are asked.
        fail_on: which gaps make the exit code 1: any, import (reached by importing the package), asked (both
            frameworks were asked and the site is not optional), none.
        cache: whether scans and surfaces are kept between runs.
    """

    paths: tuple[str, ...]
    format: str = "text"
    output: Path | None = None
    torch_python: str | None = None
    paddle_python: str | None = None
    surface: Path | None = None
    save_surface: Path | None = None
    fail_on: str = "any"
    baseline: Path | None = None
    write_baseline: Path | None = None
    changed_since: str | None = None
    explain: str | None = None
    cache: bool = True


def run(options: AuditOptions, say: Progress) -> tuple[str, int]:
    """Audit every path; the text to show (empty if it went to a file) and the exit code."""
    for name, value, known in (("--format", options.format, FORMATS), ("--fail-on", options.fail_on, FAIL_ON)):
        if value not in known:
            raise UsageError(f"{name}: no such value {value!r}", f"one of {', '.join(known)}")
    if options.explain:
        return explained(options.explain), 0
    if not options.paths:
        raise UsageError("nothing to audit", "migrate-lens audit PATH...")
    say(f"auditing {', '.join(options.paths)}: reading only, nothing is run")
    surface = surface_of(options, say)
    report = report_of(options, surface)
    if options.write_baseline:
        from migrate_lens.audit import baseline

        write(options.write_baseline, baseline.text(report.libraries))
    shown = rendered(report, options.format)
    if options.output:
        write(options.output, shown)
        shown = ""
    return shown, exit_code(report, options.fail_on)


def surface_of(options: AuditOptions, say: Progress) -> Surface:
    """A saved surface, or what the interpreters have."""
    from migrate_lens.audit import surface

    if options.surface:
        return surface.load(options.surface)
    torch, paddle = (interpreter(python) for python in (options.torch_python, options.paddle_python))
    found = surface.installed(torch, paddle, state.cache_folder(), say)
    if options.save_surface:
        surface.write(options.save_surface, found.document)
    return found


def interpreter(named: str | None) -> Path:
    """The interpreter that the user named, on PATH or by its place; without one, the current one."""
    if not named:
        return Path(sys.executable)
    found = shutil.which(named)
    if not found:
        raise UsageError(f"no interpreter {named!r}", "give its path, or a name on PATH")
    return Path(found)


def report_of(options: AuditOptions, surface: Surface) -> AuditReport:
    """Every path, one after the other."""
    from migrate_lens.audit import baseline, report

    known = baseline.load(options.baseline) if options.baseline else None
    libraries = [audit_one(path, options, surface, known) for path in dict.fromkeys(options.paths)]
    return report.assemble(surface, tuple(libraries))


def audit_one(path: str, options: AuditOptions, surface: Surface, known: object) -> LibraryAudit:
    """One path, wherever its sources come from."""
    from migrate_lens.audit import baseline, report, tree

    with tree.opened(path) as found:
        only = baseline.changed_since(found.root, options.changed_since) if options.changed_since else None
        kept = state.cache_folder() if options.cache else None
        return report.audit_tree(found, surface, kept, known if isinstance(known, baseline.Known) else None, only)


def rendered(report: AuditReport, name: str) -> str:
    """The report in one format."""
    if name == "json":
        from migrate_lens.reports import audit_json

        return audit_json.render(report)
    if name == "sarif":
        from migrate_lens.reports import sarif

        return sarif.render_audit(report)
    if name == "text":
        from migrate_lens.reports import audit_text

        return audit_text.render(report)
    from migrate_lens.reports import audit_markdown

    return audit_markdown.render(report)


def exit_code(report: AuditReport, fail_on: str) -> int:
    """1 if there is a gap of the kind that the user wants to hear of."""
    gaps = [one for library in report.libraries for one in library.gaps]
    wanted = {
        "any": bool(gaps),
        "import": any(one.reach == "import" and not one.guarded for one in gaps),
        "asked": any(one.basis == "asked" and not one.guarded for one in gaps),
        "none": False,
    }
    return int(wanted[fail_on])


def explained(name: str) -> str:
    """What a rule says, and the cases that prove it."""
    from migrate_lens.rulebook.audit import load_rules

    rules = {rule.id: rule for rule in load_rules().rules}
    rule = rules.get(name)
    if rule is None:
        raise UsageError(f"--explain: no audit rule {name!r}", f"one of {', '.join(rules)}")
    head = f"{rule.id}: {rule.title}\n\n{rule.why}\ninstead: {rule.instead}\n"
    kind = f"{rule.symptom}, {rule.layer}, category {rule.category}, {rule.decision}\n"
    return f"{head}{kind}\nfor example\n{indented(rule.examples)}\nbut not\n{indented(rule.counterexamples)}"


def indented(cases: tuple[tuple[str, str], ...]) -> str:
    """Cases of a rule as they stand in a file."""
    return "".join(f"  {path}\n" + "".join(f"    {line}\n" for line in source.splitlines()) for path, source in cases)


def write(path: Path, text: str) -> None:
    """Write a file that the user named."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}", "name another file") from error


def register(app: typer.Typer, show: Progress, say: Progress) -> None:
    """Add ``audit`` to a command line; its return value is the exit code."""

    @app.command()
    def audit(
        paths: Annotated[
            list[str] | None,
            typer.Argument(metavar="PATH...", help="Folders, files, wheels, sdists, or installed names."),
        ] = None,
        format: Annotated[str, typer.Option(metavar="F", help="text, json, md or sarif.")] = "text",
        output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report there.")] = None,
        torch_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has torch.")] = None,
        paddle_python: Annotated[str | None, typer.Option(metavar="P", help="The interpreter that has Paddle.")] = None,
        surface: Annotated[
            Path | None, typer.Option(metavar="FILE", help="A saved surface, instead of asking what is installed.")
        ] = None,
        save_surface: Annotated[Path | None, typer.Option(metavar="FILE", help="Save what was asked.")] = None,
        fail_on: Annotated[str, typer.Option(metavar="WHAT", help="Exit 1 on: any, import, asked or none.")] = "any",
        baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Gaps that are known.")] = None,
        write_baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a baseline.")] = None,
        changed_since: Annotated[
            str | None, typer.Option(metavar="REV", help="Only files that differ from a git revision.")
        ] = None,
        explain: Annotated[str | None, typer.Option(metavar="RULE", help="What an audit rule means.")] = None,
        cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep what was read between runs.")] = True,
    ) -> int:
        """Read sources and say what a migration would meet; nothing of PATH is run."""
        options = AuditOptions(
            tuple(paths or ()),
            format,
            output,
            torch_python,
            paddle_python,
            surface,
            save_surface,
            fail_on,
            baseline,
            write_baseline,
            changed_since,
            explain,
            cache,
        )
        text, code = run(options, say)
        if text:
            show(text)
        return code
