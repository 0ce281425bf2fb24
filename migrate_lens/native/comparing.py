"""The torch build and the Paddle build of a library go in; every native gap between them comes out as a finding."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.report import Fact, Finding, Key, Outcome, Site, Stage, Symptom
from migrate_lens.native.build import BuildRun
from migrate_lens.native.constructs import SCHEMA_TYPE, Construct, ConstructKind
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
    torch_build: BuildRun, paddle_build: BuildRun, python: Path, work: Path, timeout: float
) -> tuple[Finding, ...]:
    """The findings of ``compare_builds``."""
    return compare_builds(torch_build, paddle_build, python, work, timeout).findings


def compare_builds(
    torch_build: BuildRun,
    paddle_build: BuildRun,
    python: Path,
    work: Path,
    timeout: float,
    shelf: Shelf | None = None,
) -> NativeReport:
    """Setup, compile and link gaps of the Paddle side; nothing if the library does not build under torch itself.

    Args:
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

    def check() -> tuple[UnitCheck, ...]:
        """Every unit of the torch build, read to its end on the Paddle side."""
        roots = torch_roots(torch_build)
        known: Known = TorchHeaders(roots) if roots else NothingKnown()
        units = paired_units(torch_build, paddle_build, python, work)
        return check_units(units, Ground(root, work / "standins", work / "bridged", known, time.monotonic() + timeout))

    if shelf is None or not (torch_build.key and paddle_build.key):
        checks = check()
    else:
        checks = _kept_or_checked(shelf, digest([torch_build.key, paddle_build.key]), root, check)
    findings = [*paddle_build.findings, *unit_findings(checks, root), *link_findings(paddle_build, torch_build)]
    return NativeReport(tuple(findings), checks, _notes(checks, torch_build, paddle_build))


def _kept_or_checked(
    shelf: Shelf, key: str, root: Path, check: Callable[[], tuple[UnitCheck, ...]]
) -> tuple[UnitCheck, ...]:
    """What checking the same units gave before; else they are checked, and the result is kept if it is whole."""
    checks = restore_checks(shelf, key, root)
    if checks is None:
        checks = check()
        if all(unit.reached for unit in checks):
            keep_checks(shelf, key, checks, root)
    return checks


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
    constructs = [construct for _, construct in group]
    first = next((construct for construct in constructs if not construct.directive), constructs[0])
    symptom = _symptom(first)
    header = symptom is Symptom.MISSING_HEADER
    sites = sorted({site for construct in constructs if (site := _site(construct, root))})
    behind = "" if header else next((check.headers[0] for check, _ in group if check.headers), "")
    facts: dict[str, Fact] = {
        "construct_kind": first.kind,
        "build_step": "preprocess" if header or first.directive else "compile",
        "private": first.private,
        "known_to_torch": True,
        "header": api if header else behind,
    }
    evidence = [_said(construct, root) for construct in constructs[:EVIDENCE]]
    if of_torch(first):
        facts["presence"], said = offered.presence(first)
        evidence.append(f"{api}: {said}")
    evidence += _circumstances(constructs, behind)
    return Finding(
        key=Key(symptom, api),
        stage=Stage.BUILD,
        sites=tuple(sites[:SITES]),
        expected="compiles against torch's headers",
        actual=_actual(first),
        facts=facts,
        evidence=tuple(dict.fromkeys(evidence)),
    )


def _circumstances(constructs: Sequence[Construct], behind: str) -> Iterator[str]:
    """What stood in for a header that is missing, and what else follows."""
    if behind:
        yield f"seen with a stand-in for {behind}, which is missing itself"
    if folded := sum(construct.folded for construct in constructs):
        yield f"{folded} more errors follow from this or a neighbouring construct"


def _symptom(construct: Construct) -> Symptom:
    if construct.kind is ConstructKind.HEADER or (
        _is_header(construct.api) and construct.kind is not ConstructKind.LANGUAGE
    ):
        return Symptom.MISSING_HEADER
    return Symptom.MISSING_API if construct.directive else Symptom.COMPILE_ERROR


def of_torch(construct: Construct) -> bool:
    """Whether a construct is a name of torch's, not one of the library's own or of the language's."""
    others = (ConstructKind.LANGUAGE, ConstructKind.STANDARD, ConstructKind.CONFLICT)
    return construct.kind not in others and not construct.api.startswith(SCHEMA_TYPE)


def _is_header(api: str) -> bool:
    return re.search(r"\.(?:h|hpp|cuh|hh)$", api) is not None


def _actual(construct: Construct) -> str:
    if construct.directive:
        return f"{construct.message}: the #if takes its other branch"
    if construct.kind is ConstructKind.HEADER:
        return f"{construct.api}: not in the compat include folders"
    return construct.message


def _site(construct: Construct, root: Path) -> Site | None:
    place = construct.site
    return Site(str(place.path.relative_to(root)), place.line) if place is not None else None


def _said(construct: Construct, root: Path) -> str:
    place = construct.site
    where = ""
    if place is not None:
        column = f":{place.column}" if place.column else ""
        where = f"{place.path.relative_to(root)}:{place.line}{column}: "
    if construct.directive:
        return f"{where}{construct.message}"
    stands_in = construct.message.startswith("#warning")
    message = f"{construct.api}: No such file or directory" if stands_in else construct.message
    return f"{where}error: {message}"


def link_findings(paddle: BuildRun, torch: BuildRun) -> tuple[Finding, ...]:
    """Libraries that the linker finds beside torch and not beside Paddle."""
    missing = _missing_libraries(paddle)
    if not missing or paddle.source is None:
        return ()
    shipped = _torch_libraries(torch)
    torchs_own = [name for name in missing if name in shipped]
    api = "torch.utils.cpp_extension.CppExtension(libraries=)" if torchs_own else f"-l{next(iter(missing))}"
    facts: dict[str, Fact] = {
        "construct_kind": "library",
        "build_step": "link",
        "private": False,
        "known_to_torch": True,
        "libraries": ",".join(missing),
    }
    return (
        Finding(
            key=Key(Symptom.LINK_ERROR, api, ",".join(torchs_own or missing)),
            stage=Stage.BUILD,
            sites=tuple(sorted({site for name in missing for site in mentions(paddle.source, name)})),
            expected=f"ld finds {', '.join(f'-l{name}' for name in missing)}",
            actual=next(iter(missing.values())),
            facts=facts,
            evidence=tuple(f"ld: {message}" for message in missing.values()),
        ),
    )


def _missing_libraries(build: BuildRun) -> dict[str, str]:
    """Each library that the linker did not find, with what it said."""
    missing: dict[str, str] = {}
    for call in build.compiles:
        if not call.links or call.returncode == 0:
            continue
        for diagnostic in parse(call.stderr, call.cwd, lambda path: False):
            if diagnostic.kind is Kind.LINK_LIBRARY:
                missing.setdefault(diagnostic.name, diagnostic.message)
    return missing


def _torch_libraries(torch: BuildRun) -> frozenset[str]:
    """What lies in the library folders that the torch build links against and that are torch's own."""
    folders = {Path(arg[2:]) for call in torch.compiles for arg in call.args if arg.startswith("-L")}
    names: set[str] = set()
    for folder in folders:
        if folder.name == "lib" and folder.parent.name == "torch":
            names |= {path.name.removeprefix("lib").split(".")[0] for path in folder.glob("lib*.so*")}
    return frozenset(names)
