"""The translation units of a build go in; each is checked to its end, and the constructs that it lacks come out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from migrate_lens.native import standins
from migrate_lens.native.bridging import PRELUDE, Bridge
from migrate_lens.native.compiler import MOST_ERRORS, PAIRED, CompilerCall
from migrate_lens.native.constructs import Construct, collect, name
from migrate_lens.native.diagnostics import Diagnostic, Kind, parse, relocated
from migrate_lens.native.process import Ran, kill_running, memory_limit, run_bounded
from migrate_lens.native.torch_headers import Known

WORKERS = 2
ROUNDS = 12
UNIT_SECONDS = 240.0
BEHIND = 3
# The kinds that a stand-in of slightly the wrong type cannot bring about.
STANDARDS = {
    f"{family}++{digits}": year
    for family in ("c", "gnu")
    for year, names in ((14, "14 1y"), (17, "17 1z"), (20, "20 2a"), (23, "23 2b"), (26, "26 2c"))
    for digits in names.split()
}
FIRM = (Kind.UNDECLARED, Kind.MEMBER, Kind.OPERATOR)
# -Wno-error so that a warning of ours cannot become an error of theirs; caret lines would only fill the buffer.
CHECK = (
    "-fsyntax-only",
    "-fdiagnostics-color=never",
    "-fno-diagnostics-show-caret",
    "-Wundef",
    "-Wcpp",
    "-Wno-error",
    MOST_ERRORS,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One source file as the Paddle side compiles it.

    Attributes:
        path: relative to the library.
        command: compiler and flags, without source, output and action.
        source: the file in the copy.
        cwd: where the compiler runs.
        text: what the compiler said when the build itself compiled it, None if the build did not get that far.
        returncode: its exit status then.
        torch_macros: macros that are not defined on the torch side either.
        torch_standard: the language standard of the torch side, such as ``c++20``; empty if it names none.
    """

    path: str
    command: tuple[str, ...]
    source: Path
    cwd: Path
    text: str | None = None
    returncode: int = 0
    torch_macros: frozenset[str] = frozenset()
    torch_standard: str = ""


@dataclass(frozen=True, slots=True)
class UnitCheck:
    """How far one unit was read, and what it lacks; ``reason`` says why it was not read to its end."""

    path: str
    constructs: tuple[Construct, ...]
    reached: bool
    reason: str = ""
    headers: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What all units share.

    Attributes:
        root: the copy of the library that the Paddle side builds.
        standins: folder for stand-in headers.
        bridged: folder for the copy of the sources that has stand-ins for missing constructs.
        known: what torch's headers offer.
        deadline: when checking ends, on the monotonic clock.
        stop: set when the user wants no more of it.
    """

    root: Path
    standins: Path
    bridged: Path
    known: Known
    deadline: float
    stop: Event = field(default_factory=Event)

    def left(self) -> float:
        """Seconds that remain for checking."""
        return 0.0 if self.stop.is_set() else self.deadline - time.monotonic()

    def own(self, path: Path) -> bool:
        """Whether a path lies in the library."""
        return path.is_relative_to(self.root)


def check_units(units: Sequence[Unit], ground: Ground) -> tuple[UnitCheck, ...]:
    """Checks all units, two at a time; a unit that the build compiled without an error costs nothing."""
    if not units:
        return ()
    ground.standins.mkdir(parents=True, exist_ok=True)
    if any(_needs_standins(unit, ground) for unit in units):
        names = standins.included(standins.native_files(ground.root))
        folders = [folder for unit in units for folder in include_folders(unit.command, unit.cwd)]
        standins.write(ground.standins, standins.missing(names, ground.known, dict.fromkeys(folders)))
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            return _checked_in(pool, units, ground)
        except BaseException:  # Ctrl-C above all: the pool waits for its compilers, so they have to end first
            ground.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            kill_running()
            raise


def _checked_in(pool: Executor, units: Sequence[Unit], ground: Ground) -> tuple[UnitCheck, ...]:
    """All units once, then behind what they lack until nothing new comes to light."""
    checks = list(pool.map(lambda unit: check_unit(unit, ground), units))
    bridge = Bridge(ground.root, ground.bridged)
    bridge.start()
    for _ in range(BEHIND):
        seen = [construct for check in checks for construct in check.constructs]
        if not bridge.add(seen, ground.known):
            break
        deeper = list(pool.map(lambda unit, check: look_behind(unit, check, bridge, ground), units, checks))
        if deeper == checks:
            break
        checks = deeper
    return tuple(checks)


def look_behind(unit: Unit, check: UnitCheck, bridge: Bridge, ground: Ground) -> UnitCheck:
    """Checks the bridged copy of a unit, and adds what only now comes to light."""
    left = ground.left()
    if not check.reached or not check.constructs or left <= 0:
        return check
    old, new = str(bridge.root), str(bridge.copy)
    argv = [part.replace(old, new) for part in _argv(unit, ground)]
    argv[-1:-1] = ["-include", str(bridge.copy / PRELUDE)]
    ran = _compile(argv, unit, left)
    if ran.timed_out:
        return check
    found = parse(ran.output, Path(str(unit.cwd).replace(old, new)), lambda path: path.is_relative_to(bridge.copy))
    firm = [relocated(d, bridge.original) for d in found if d.kind in FIRM]
    known = {_place(construct) for construct in check.constructs}
    fresh = [c for c in collect(firm, ground.known, alone=False) if _new(c, bridge) and _place(c) not in known]
    return replace(check, constructs=(*check.constructs, *(replace(c, folded=0) for c in fresh)))


def _place(construct: Construct) -> tuple[str, int]:
    """A construct and its line; a stand-in's macro moves the columns."""
    return construct.api, construct.site.line if construct.site else 0


def _new(construct: Construct, bridge: Bridge) -> bool:
    """Whether a construct is torch's own and no consequence of a stand-in."""
    owner = construct.api.rpartition("::")[0]
    if construct.kind == "standard" or construct.api.startswith("std::"):
        return False  # said by the first look, or part of a newer language
    return owner not in bridge.types and "migrate_lens" not in construct.message.lower()


def _needs_standins(unit: Unit, ground: Ground) -> bool:
    if unit.text is None:
        return True
    return any(d.kind is Kind.HEADER for d in parse(unit.text, unit.cwd, ground.own))


def check_unit(unit: Unit, ground: Ground) -> UnitCheck:
    """Reads one unit to its end: as the build left it if that is the end, else again with stand-ins."""
    text, failed = unit.text, unit.returncode != 0
    for _ in range(ROUNDS):
        if text is not None:
            found = [d for d in parse(text, unit.cwd, ground.own) if d.name not in unit.torch_macros]
            if MOST_ERRORS in text[-200:]:
                return _stuck(unit, found, f"it has more errors than {MOST_ERRORS} lets the compiler say", ground)
            fresh = [d for d in found if d.kind is Kind.HEADER and not _stands(d)]
            if not fresh:
                return _checked(unit, found, failed, ground)
            if stuck := [d.name for d in fresh if not ground.known.header(d.name)]:
                return _stuck(unit, found, f"{stuck[0]} is not found and is none of torch's headers", ground)
            standins.write(ground.standins, [d.name for d in fresh])
        left = ground.left()
        if left <= 0:
            return UnitCheck(unit.path, (), False, "no time was left for it", command=unit.command)
        ran = _compile(_argv(unit, ground), unit, left)
        if ran.timed_out or ran.returncode is None:
            reason = f"the compiler was stopped after {ran.seconds:.0f} s" if ran.timed_out else ran.output
            return UnitCheck(unit.path, (), False, reason, command=unit.command)
        text, failed = ran.output, ran.returncode != 0
    return UnitCheck(unit.path, (), False, f"more than {ROUNDS} rounds of missing headers", command=unit.command)


def _stands(diagnostic: Diagnostic) -> bool:
    """Whether a header diagnostic is a stand-in's own announcement and not a failure to find it."""
    return diagnostic.message.startswith("#warning")


def _checked(unit: Unit, found: Sequence[Diagnostic], failed: bool, ground: Ground) -> UnitCheck:
    broken = next((d for d in found if d.kind is Kind.COMPILER), None)
    if broken is not None:
        return UnitCheck(unit.path, (), False, broken.message, command=unit.command)
    if failed and not found:
        return UnitCheck(unit.path, (), False, "the compiler failed and named no error", command=unit.command)
    headers = tuple(dict.fromkeys(d.name for d in found if d.kind is Kind.HEADER))
    newer = _of_newer_language(unit, found, ground)
    constructs = collect([d for d in found if d not in newer], ground.known) if len(newer) < len(found) else ()
    if newer:
        api = f"torch.utils.cpp_extension.BuildExtension(-std={unit.torch_standard})"
        constructs = (Construct(api, "language", newer[0].site, newer[0].message, len(newer) - 1), *constructs)
    return UnitCheck(unit.path, constructs, True, "", headers, unit.command)


def _of_newer_language(unit: Unit, found: Sequence[Diagnostic], ground: Ground) -> list[Diagnostic]:
    """The errors that go away under torch's language standard, where torch's builder asks for a newer one.

    Only errors that name nothing of torch's make it worth a second look, and the second look costs one more check.
    """
    old = max((STANDARDS.get(flag[5:], 0) for flag in unit.command if flag.startswith("-std=")), default=0)
    asked = STANDARDS.get(unit.torch_standard, 0)
    left = ground.left()
    plain = [d for d in found if d.kind not in (Kind.HEADER, Kind.UNDEFINED_MACRO) and not torch_name(d, ground.known)]
    if not plain or asked <= old or left <= 0:
        return []
    command = (*unit.command, f"-std={unit.torch_standard}")
    argv = _argv(replace(unit, command=command), ground)
    ran = _compile(argv, unit, left)
    again = parse(ran.output, unit.cwd, ground.own)
    if ran.timed_out or any(d.kind is Kind.HEADER and not _stands(d) for d in again):
        return []
    # Not the whole message: what g++ suggests instead ("did you mean") differs with the standard.
    still = {(d.site, d.kind, d.name) for d in again}
    return [d for d in plain if (d.site, d.kind, d.name) not in still]


def torch_name(diagnostic: Diagnostic, known: Known) -> bool:
    """Whether an error names something of torch's itself."""
    found = name(diagnostic, known)
    return found is not None and not found[0].startswith("std::")


def _stuck(unit: Unit, found: Sequence[Diagnostic], reason: str, ground: Ground) -> UnitCheck:
    return UnitCheck(unit.path, collect(found, ground.known), False, reason, command=unit.command)


def _argv(unit: Unit, ground: Ground) -> list[str]:
    return [*unit.command, *CHECK, "-idirafter", str(ground.standins), str(unit.source)]


def _compile(argv: Sequence[str], unit: Unit, left: float) -> Ran:
    """One call of the compiler, which may hang and may want all memory there is."""
    return run_bounded(argv, cwd=unit.cwd, env=_env(), timeout=min(left, UNIT_SECONDS), memory=memory_limit())


def _env() -> dict[str, str]:
    return dict(os.environ) | {"LC_ALL": "C", "GCC_COLORS": ""}


def include_folders(args: Iterable[str], cwd: Path) -> list[Path]:
    """The folders that a command line searches for headers."""
    folders: list[Path] = []
    waiting = False
    for arg in args:
        if waiting:
            folders.append(cwd / arg)
        waiting = arg in ("-I", "-isystem", "-iquote", "-idirafter")
        if not waiting and (match := re.match(r"(?:-I|-isystem|-iquote)(.+)", arg)):
            folders.append(cwd / match[1])
    return folders


def flags(call: CompilerCall) -> tuple[str, ...]:
    """A call's arguments without its sources, its output, its action and its dependency files."""
    kept: list[str] = []
    args = list(call.args)
    index = 0
    while index < len(args):
        arg = args[index]
        width = 2 if arg in PAIRED and index + 1 < len(args) else 1
        if width == 1 and (not arg.startswith("-") or arg in ("-c", "-w", "-fsyntax-only") or arg.startswith("-M")):
            pass
        elif arg not in ("-o", "-MF", "-MT", "-MQ"):
            kept += args[index : index + width]
        index += width
    return tuple(kept)
