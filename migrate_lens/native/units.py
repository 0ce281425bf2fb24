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
from typing import NamedTuple

from migrate_lens.native import standins
from migrate_lens.native.bridging import PRELUDE, Bridge
from migrate_lens.native.compiler import MOST_ERRORS, PAIRED, CompilerCall
from migrate_lens.native.constructs import Construct, ConstructKind, collect, name
from migrate_lens.native.diagnostics import Diagnostic, Kind, parse, relocated
from migrate_lens.native.process import Ran, kill_running, memory_limit, run_bounded
from migrate_lens.native.torch_headers import Known

WORKERS = 2
ROUNDS = 12
UNIT_SECONDS = 240.0
BEHIND = 3
STANDARDS = {
    f"{family}++{digits}": year
    for family in ("c", "gnu")
    for year, names in ((14, "14 1y"), (17, "17 1z"), (20, "20 2a"), (23, "23 2b"), (26, "26 2c"))
    for digits in names.split()
}
# The kinds that a stand-in of slightly the wrong type cannot bring about.
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
    cwd = Path(str(unit.cwd).replace(old, new))
    diagnostics = parse(ran.output, cwd, lambda path: path.is_relative_to(bridge.copy))
    firm = [relocated(diagnostic, bridge.original) for diagnostic in diagnostics if diagnostic.kind in FIRM]
    seen = {_place(construct) for construct in check.constructs}
    fresh = [
        replace(construct, folded=0)
        for construct in collect(firm, ground.known, alone=False)
        if _new(construct, bridge) and _place(construct) not in seen
    ]
    return replace(check, constructs=(*check.constructs, *fresh))


def _place(construct: Construct) -> tuple[str, int]:
    """A construct and its line; a stand-in's macro moves the columns."""
    return construct.api, construct.site.line if construct.site else 0


def _new(construct: Construct, bridge: Bridge) -> bool:
    """Whether a construct is torch's own and no consequence of a stand-in."""
    owner = construct.api.rpartition("::")[0]
    if construct.kind is ConstructKind.STANDARD or construct.api.startswith("std::"):
        return False  # said by the first look, or part of a newer language
    return owner not in bridge.types and "migrate_lens" not in construct.message.lower()


def _needs_standins(unit: Unit, ground: Ground) -> bool:
    if unit.text is None:
        return True
    return any(d.kind is Kind.HEADER for d in parse(unit.text, unit.cwd, ground.own))


def check_unit(unit: Unit, ground: Ground) -> UnitCheck:
    """Reads one unit to its end: as the build left it if that is the end, else again with stand-ins."""
    said: Said | None = None
    if unit.text is not None:
        said = Said(unit.text, failed=unit.returncode != 0)
    for _ in range(ROUNDS):
        if said is not None and (check := _judged(unit, said, ground)) is not None:
            return check
        left = ground.left()
        if left <= 0:
            return _unread(unit, "no time was left for it")
        ran = _compile(_argv(unit, ground), unit, left)
        if ran.timed_out:
            return _unread(unit, f"the compiler was stopped after {ran.seconds:.0f} s")
        if ran.returncode is None:
            return _unread(unit, ran.output)
        said = Said(ran.output, failed=ran.returncode != 0)
    return _unread(unit, f"more than {ROUNDS} rounds of missing headers")


class Said(NamedTuple):
    """What the compiler said of a unit, and whether it failed."""

    text: str
    failed: bool


def _judged(unit: Unit, said: Said, ground: Ground) -> UnitCheck | None:
    """What a unit lacks; None where the compiler has to look again, now that its missing headers have stand-ins."""
    diagnostics = [d for d in parse(said.text, unit.cwd, ground.own) if d.name not in unit.torch_macros]
    if MOST_ERRORS in said.text[-200:]:
        return _stuck(unit, diagnostics, f"it has more errors than {MOST_ERRORS} lets the compiler say", ground)
    missing = [d.name for d in diagnostics if d.kind is Kind.HEADER and not _stands(d)]
    if not missing:
        return _checked(unit, diagnostics, said.failed, ground)
    foreign = next((header for header in missing if not ground.known.header(header)), None)
    if foreign is not None:
        return _stuck(unit, diagnostics, f"{foreign} is not found and is none of torch's headers", ground)
    standins.write(ground.standins, missing)
    return None


def _stands(diagnostic: Diagnostic) -> bool:
    """Whether a header diagnostic is a stand-in's own announcement and not a failure to find it."""
    return diagnostic.message.startswith("#warning")


def _checked(unit: Unit, diagnostics: Sequence[Diagnostic], failed: bool, ground: Ground) -> UnitCheck:
    broken = next((d for d in diagnostics if d.kind is Kind.COMPILER), None)
    if broken is not None:
        return _unread(unit, broken.message)
    if failed and not diagnostics:
        return _unread(unit, "the compiler failed and named no error")
    headers = tuple(dict.fromkeys(d.name for d in diagnostics if d.kind is Kind.HEADER))
    newer = _of_newer_language(unit, diagnostics, ground)
    rest = [diagnostic for diagnostic in diagnostics if diagnostic not in newer]
    constructs = collect(rest, ground.known) if len(newer) < len(diagnostics) else ()
    if newer:
        api = f"torch.utils.cpp_extension.BuildExtension(-std={unit.torch_standard})"
        language = Construct(api, ConstructKind.LANGUAGE, newer[0].site, newer[0].message, len(newer) - 1)
        constructs = (language, *constructs)
    return UnitCheck(unit.path, constructs, True, "", headers, unit.command)


def _of_newer_language(unit: Unit, diagnostics: Sequence[Diagnostic], ground: Ground) -> list[Diagnostic]:
    """The errors that go away under torch's language standard, where torch's builder asks for a newer one.

    Only errors that name nothing of torch's make it worth a second look, and the second look costs one more check.
    """
    plain = [d for d in diagnostics if _is_plain_error(d, ground.known)]
    left = ground.left()
    if not plain or not _asks_newer(unit) or left <= 0:
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


def _asks_newer(unit: Unit) -> bool:
    """Whether torch's builder asks for a newer language standard than the unit is compiled with."""
    current = max((STANDARDS.get(flag[5:], 0) for flag in unit.command if flag.startswith("-std=")), default=0)
    return STANDARDS.get(unit.torch_standard, 0) > current


def _is_plain_error(diagnostic: Diagnostic, known: Known) -> bool:
    """Whether an error names nothing of torch's."""
    if diagnostic.kind in (Kind.HEADER, Kind.UNDEFINED_MACRO):
        return False
    about = name(diagnostic, known)
    return about is None or about.api.startswith("std::")


def _unread(unit: Unit, reason: str) -> UnitCheck:
    return UnitCheck(unit.path, (), False, reason, command=unit.command)


def _stuck(unit: Unit, diagnostics: Sequence[Diagnostic], reason: str, ground: Ground) -> UnitCheck:
    return UnitCheck(unit.path, collect(diagnostics, ground.known), False, reason, command=unit.command)


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
        dropped = arg in ("-o", "-MF", "-MT", "-MQ") or (width == 1 and _is_action(arg))
        if not dropped:
            kept += args[index : index + width]
        index += width
    return tuple(kept)


def _is_action(arg: str) -> bool:
    """Whether an argument is a source, or says what to do with one."""
    return not arg.startswith("-") or arg in ("-c", "-w", "-fsyntax-only") or arg.startswith("-M")
