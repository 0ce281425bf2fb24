"""The torch build and the Paddle build of a library go in; every native gap between them comes out as a finding."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.report import Fact, Finding, Key, Library, Outcome, Site, Stage, Symptom
from migrate_lens.native.build import BuildRun
from migrate_lens.native.constructs import Construct
from migrate_lens.native.diagnostics import Kind, parse
from migrate_lens.native.identity import digest
from migrate_lens.native.offered import Offered
from migrate_lens.native.pairing import paired_units, torch_roots
from migrate_lens.native.reuse import keep_checks, restore_checks
from migrate_lens.native.setup_errors import mentions
from migrate_lens.native.shelf import Shelf
from migrate_lens.native.torch_headers import Known, NothingKnown, TorchHeaders
from migrate_lens.native.units import Ground, UnitCheck, check_units

SITES = 200
EVIDENCE = 6


@dataclass(frozen=True, slots=True)
class NativeReport:
    """All that comparing two builds gave.

    Attributes:
        findings: one for each construct, with all its sites.
        units: each translation unit, how far it was read and why not further.
        notes: lines for a person.
    """

    findings: tuple[Finding, ...]
    units: tuple[UnitCheck, ...] = ()
    notes: tuple[str, ...] = ()


def diagnose_build(
    library: Library, torch_build: BuildRun, paddle_build: BuildRun, python: Path, work: Path, timeout: float
) -> tuple[Finding, ...]:
    """The findings of ``compare_builds``."""
    return compare_builds(library, torch_build, paddle_build, python, work, timeout).findings


def compare_builds(
    library: Library, torch_build: BuildRun, paddle_build: BuildRun, python: Path, work: Path, timeout: float,
    shelf: Shelf | None = None,
) -> NativeReport:  # fmt: skip
    """Setup, compile and link gaps of the Paddle side; nothing if the library does not build under torch itself.

    Args:
        library: the library that both builds are of.
        torch_build: the baseline; what fails there too is no gap.
        paddle_build: the other side, built or not.
        python: the interpreter of the Paddle side, asked for its flags where its build ended before compiling.
        work: a private folder for stand-in headers.
        timeout: seconds that checking units may take.
        shelf: where results are kept; those of two unchanged builds are taken from there.
    """
    if not torch_build.passed or paddle_build.result.outcome is Outcome.SKIPPED or paddle_build.source is None:
        return NativeReport(())
    root = paddle_build.source
    key = digest([torch_build.key, paddle_build.key]) if torch_build.key and paddle_build.key else ""
    checks = restore_checks(shelf, key, root) if shelf is not None and key else None
    if checks is None:
        checks = _checked(torch_build, paddle_build, root, python, work, timeout)
        if shelf is not None and key and all(check.reached for check in checks):
            keep_checks(shelf, key, checks, root)
    found = [*paddle_build.findings, *unit_findings(checks, root), *link_findings(paddle_build, torch_build)]
    return NativeReport(tuple(found), checks, _notes(checks, torch_build, paddle_build))


def _checked(torch_build: BuildRun, paddle_build: BuildRun, root: Path, python: Path, work: Path,
             timeout: float) -> tuple[UnitCheck, ...]:  # fmt: skip
    """Every unit of the torch build, read to its end on the Paddle side."""
    roots = torch_roots(torch_build)
    known: Known = TorchHeaders(roots) if roots else NothingKnown()
    units = paired_units(torch_build, paddle_build, python, work)
    return check_units(units, Ground(root, work / "standins", work / "bridged", known, time.monotonic() + timeout))


def _notes(checks: Sequence[UnitCheck], torch: BuildRun, paddle: BuildRun) -> tuple[str, ...]:
    notes = [f"unit {check.path} was not read to its end: {check.reason}" for check in checks if not check.reached]
    if checks:
        notes.insert(0, f"read {sum(check.reached for check in checks)} of {len(checks)} units to the end")
    device = sum(call.compiles and call.device for call in torch.compiles)
    if device:
        notes.append(f"{device} GPU units were not checked: there is no GPU compiler on the Paddle side to ask")
    if paddle.passed and any(c.compiles for c in torch.compiles) and not any(c.compiles for c in paddle.compiles):
        notes.append("under torch the library compiles an extension, under Paddle its setup leaves it out")
    return tuple(notes)


def unit_findings(checks: Iterable[UnitCheck], root: Path) -> tuple[Finding, ...]:
    """Constructs of all units, one finding for each name."""
    groups: dict[str, list[tuple[UnitCheck, Construct]]] = {}
    for check in checks:
        for construct in check.constructs:
            groups.setdefault(construct.api, []).append((check, construct))
    offered = Offered.of((check for group in groups.values() for check, _ in group), root)
    return tuple(_finding(api, group, root, offered) for api, group in groups.items())


def _finding(api: str, group: Sequence[tuple[UnitCheck, Construct]], root: Path, offered: Offered) -> Finding:
    first = next((construct for _, construct in group if not construct.directive), group[0][1])
    header = first.kind == "header" or _is_header(api)
    header &= first.kind != "language"
    symptom = Symptom.MISSING_HEADER if header else Symptom.MISSING_API if first.directive else Symptom.COMPILE_ERROR
    sites = sorted({site for _, construct in group if (site := _site(construct, root))})
    behind = next((check.headers[0] for check, _ in group if check.headers and not header), "")
    folded = sum(construct.folded for _, construct in group)
    facts: dict[str, Fact] = {
        "construct_kind": first.kind,
        "build_step": "preprocess" if header or first.directive else "compile",
        "private": first.private,
        "known_to_torch": True,
        "header": api if header else behind,
    }
    evidence = [_said(construct, root) for _, construct in group][:EVIDENCE]
    if of_torch(first):
        facts["presence"], said = offered.presence(first)
        evidence.append(f"{api}: {said}")
    if behind:
        evidence.append(f"seen with a stand-in for {behind}, which is missing itself")
    if folded:
        evidence.append(f"{folded} more errors follow from this or a neighbouring construct")
    return Finding(
        key=Key(symptom, api),
        stage=Stage.BUILD,
        sites=tuple(sites[:SITES]),
        expected="compiles against torch's headers",
        actual=_actual(first),
        facts=facts,
        evidence=tuple(dict.fromkeys(evidence)),
    )


def of_torch(construct: Construct) -> bool:
    """Whether a construct is a name of torch's, not one of the library's own or of the language's."""
    return construct.kind not in ("language", "standard", "conflict") and not construct.api.startswith("schema type ")


def _is_header(api: str) -> bool:
    return re.search(r"\.(?:h|hpp|cuh|hh)$", api) is not None


def _actual(construct: Construct) -> str:
    if construct.directive:
        return f"{construct.message}: the #if takes its other branch"
    if construct.kind == "header":
        return f"{construct.api}: not in the compat include folders"
    return construct.message


def _site(construct: Construct, root: Path) -> Site | None:
    place = construct.site
    return Site(str(place.path.relative_to(root)), place.line) if place is not None else None


def _said(construct: Construct, root: Path) -> str:
    place = construct.site
    column = f":{place.column}" if place is not None and place.column else ""
    where = f"{place.path.relative_to(root)}:{place.line}{column}: " if place is not None else ""
    message = (
        f"{construct.api}: No such file or directory" if construct.message.startswith("#warning") else construct.message
    )
    return f"{where}error: {message}" if not construct.directive else f"{where}{message}"


def link_findings(paddle: BuildRun, torch: BuildRun) -> tuple[Finding, ...]:
    """Libraries that the linker finds beside torch and not beside Paddle."""
    missing: dict[str, str] = {}
    for call in paddle.compiles:
        if call.links and call.returncode != 0:
            for found in parse(call.stderr, call.cwd, lambda path: False):
                if found.kind is Kind.LINK_LIBRARY:
                    missing.setdefault(found.name, found.message)
    if not missing or paddle.source is None:
        return ()
    theirs = _torch_libraries(torch)
    ours = [name for name in missing if name in theirs]
    api = "torch.utils.cpp_extension.CppExtension(libraries=)" if ours else f"-l{next(iter(missing))}"
    facts: dict[str, Fact] = {
        "construct_kind": "library",
        "build_step": "link",
        "private": False,
        "known_to_torch": True,
        "libraries": ",".join(missing),
    }
    return (
        Finding(
            key=Key(Symptom.LINK_ERROR, api, ",".join(ours or missing)),
            stage=Stage.BUILD,
            sites=tuple(sorted({site for name in missing for site in mentions(paddle.source, name)})),
            expected=f"ld finds {', '.join(f'-l{name}' for name in missing)}",
            actual=next(iter(missing.values())),
            facts=facts,
            evidence=tuple(f"ld: {message}" for message in missing.values()),
        ),
    )


def _torch_libraries(torch: BuildRun) -> frozenset[str]:
    """What lies in the library folders that the torch build links against and that are torch's own."""
    names: set[str] = set()
    for call in torch.compiles:
        for arg in call.args:
            if arg.startswith("-L") and Path(arg[2:]).name == "lib" and Path(arg[2:]).parent.name == "torch":
                names |= {path.name[3:].split(".")[0] for path in Path(arg[2:]).glob("lib*.so*")}
    return frozenset(names)
