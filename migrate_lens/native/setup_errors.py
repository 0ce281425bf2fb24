"""Exceptions that ended a build's interpreter go in; findings about setup.py and what it asks of torch come out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_lens.model.report import Fact, Finding, Key, Site, Stage, Symptom
from migrate_lens.native.compiler import CompilerCall

BUILD_FILES = ("setup.py", "setup.cfg", "pyproject.toml", "CMakeLists.txt")
# Exceptions that a builder raises because a compiler, or the user, ended it.
BEHIND_A_COMPILER = frozenset(
    ["CompileError", "LinkError", "DistutilsExecError", "CalledProcessError", "SystemExit", "KeyboardInterrupt"]
)
_CMAKE_PACKAGE = re.compile(r'package configuration file provided by "(?P<name>[^"]+)"|Could NOT find (?P<module>\w+)')
_CMAKE_TORCH = ("torch", "caffe2", "c10", "torchpython")
_KEYWORD = re.compile(r"got an unexpected keyword argument '(?P<name>\w+)'")
_IMPORT_FROM = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback."""

    file: str
    line: int
    function: str
    module: str


@dataclass(frozen=True, slots=True)
class SetupError:
    """The exception that ended an interpreter of a build.

    Attributes:
        kind: its class.
        message: its text.
        name: the missing name, where the exception says so itself.
        owner: the module or class that lacks it, where it says so.
        callee: the framework's function that refused the arguments, where a call never got into it.
        frames: outermost first.
        cause: the exception it came from.
    """

    kind: str
    message: str
    name: str
    owner: str
    frames: tuple[Frame, ...]
    callee: str = ""
    cause: SetupError | None = None

    @property
    def root(self) -> SetupError:
        """The first exception of the chain that is not a bare wrapper."""
        return self.cause.root if self.cause is not None and self.kind in ("RuntimeError", "SystemExit") else self


def read_errors(folder: Path) -> tuple[SetupError, ...]:
    """All exceptions that left a whole record, oldest first."""
    errors = []
    for path in sorted(folder.glob("*.json")):
        try:
            errors.append(_error(json.loads(path.read_text(encoding="utf-8"))))
        except ValueError:  # the interpreter was killed while it wrote
            continue
    return tuple(errors)


def _error(data: Mapping[str, object]) -> SetupError:
    frames, cause = data["frames"], data["cause"]
    assert isinstance(frames, list)
    return SetupError(
        kind=str(data["class"]),
        message=str(data["message"]),
        name=str(data["name"]),
        owner=str(data["owner"]),
        frames=tuple(Frame(str(f["file"]), int(f["line"] or 0), str(f["function"]), str(f["module"])) for f in frames),
        callee=str(data["callee"]),
        cause=_error(cause) if isinstance(cause, dict) else None,
    )


def setup_findings(errors: Sequence[SetupError], calls: Sequence[CompilerCall], source: Path) -> tuple[Finding, ...]:
    """What setup itself failed on: one finding for each different exception, and CMake's missing packages."""
    findings: dict[Key, Finding] = {}
    compiled = not any(call.returncode for call in calls if call.compiles or call.links)
    for error in errors:
        finding = _finding(error.root, source)
        # After a compiler failed, a setup that names nothing of torch's only misses what was not built.
        if finding is not None and (compiled or finding.key.api.startswith("torch")):
            findings.setdefault(finding.key, finding)
    for finding in _cmake_findings(calls, source):
        findings.setdefault(finding.key, finding)
    return tuple(findings.values())


def _finding(error: SetupError, source: Path) -> Finding | None:
    """None for what a builder raises only because a compiler had failed."""
    if error.kind in BEHIND_A_COMPILER:
        return None
    key = identify(error, source)
    site = _site(error, source)
    sites = (site,) if site else mentions(source, key.api.rpartition(".")[2])
    facts: dict[str, Fact] = {
        "build_step": "setup_py",
        "construct_kind": "setup",
        "exception": error.kind,
        "private": any(part.startswith("_") and not part.startswith("__") for part in key.api.split(".")),
    }
    where = f"{site.path}:{site.line}: " if site else ""
    return Finding(
        key=key,
        stage=Stage.BUILD,
        sites=sites,
        expected="setup runs under torch",
        actual=f"{error.kind}: {_one_line(error.message)}",
        facts=facts,
        evidence=(f"{where}{error.kind}: {_one_line(error.message)}",),
    )


def identify(error: SetupError, source: Path) -> Key:
    """What an exception in setup is about, from its class, its names and its frames."""
    if error.kind in ("ModuleNotFoundError", "ImportError", "AttributeError") and (missing := _missing(error)):
        return Key(Symptom.MISSING_API, missing)
    callee = _callee(error, source)
    if error.kind == "TypeError" and callee and (match := _KEYWORD.search(error.message)):
        return Key(Symptom.MISSING_ARGUMENT, callee, match["name"])
    if error.kind == "PackageNotFoundError" and error.name == "torch":
        return Key(Symptom.MISSING_API, "importlib.metadata.version(torch)")
    return Key(Symptom.EXCEPTION, callee or _on_the_line(error, source) or "setup.py", error.kind)


def _on_the_line(error: SetupError, source: Path) -> str:
    """The first name of torch's on the line that raised, for an exception of the library's own making."""
    site = _site(error, source)
    path = source / site.path if site is not None else None
    if site is None or path is None or not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    names = re.findall(r"\btorch(?:\.\w+)+", lines[site.line - 1]) if 0 < site.line <= len(lines) else []
    # "torch.__version__.split" is about torch.__version__
    return re.sub(r"(\.__\w+__)\..*", r"\1", names[0]) if names else ""


def _missing(error: SetupError) -> str:
    if match := _IMPORT_FROM.search(error.message):
        return _torch_name(f"{match['module']}.{match['name']}")
    if error.kind == "AttributeError":
        return _public(*_split(_torch_name(f"{error.owner}.{error.name}"))) if error.owner and error.name else ""
    return _torch_name(error.name)


def _torch_name(name: str) -> str:
    """Paddle's module path as the torch path it stands for; empty for names that are neither's."""
    root, dot, rest = name.partition(".")
    return f"torch{dot}{rest}" if root in ("paddle", "torch") else ""


def _callee(error: SetupError, source: Path) -> str:
    """The framework function that the library's innermost frame called, by its public torch name."""
    inside = [index for index, frame in enumerate(error.frames) if _own(frame, source)]
    for frame in error.frames[inside[-1] + 1 if inside else 0 :]:
        if frame.module.partition(".")[0] in ("paddle", "torch"):
            return _public(frame.module, frame.function)
    return _public(*_split(error.callee)) if error.callee else ""


def _split(name: str) -> tuple[str, str]:
    """Module and function of a dotted name: Paddle's modules are lower-case, and a class begins the rest."""
    parts = name.split(".")
    first = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return ".".join(parts[:first]), ".".join(parts[first:])


def _public(module: str, function: str) -> str:
    """A package that re-exports its module of the same name is what the documentation speaks of."""
    parts = module.split(".")
    if not function:
        return ""
    if len(parts) > 1 and parts[-1] in (parts[-2], "extension_utils", f"{parts[-2]}_utils"):
        parts.pop()
    return ".".join(["torch", *parts[1:], function.removesuffix(".__init__").replace(".<locals>", "")])


def _own(frame: Frame, source: Path) -> bool:
    return Path(frame.file).is_relative_to(source) or frame.file == "setup.py"


def _site(error: SetupError, source: Path) -> Site | None:
    for frame in reversed(error.frames):
        if _own(frame, source):
            path = Path(frame.file)
            return Site(str(path.relative_to(source) if path.is_absolute() else path), frame.line)
    return None


def _cmake_findings(calls: Sequence[CompilerCall], source: Path) -> list[Finding]:
    findings = []
    for call in calls:
        if call.name != "cmake" or call.returncode == 0:
            continue
        match = _CMAKE_PACKAGE.search(call.stderr)
        package = (match["name"] or match["module"]) if match else ""
        if package.lower() in _CMAKE_TORCH:
            findings.append(_cmake_finding(package, call, source))
    return findings


def _cmake_finding(package: str, call: CompilerCall, source: Path) -> Finding:
    line = re.search(r"CMake Error at (?P<path>[^:]+):(?P<line>\d+)", call.stderr)
    site = Site(line["path"], int(line["line"])) if line else None
    if site is not None and Path(site.path).is_absolute() and Path(site.path).is_relative_to(source):
        site = Site(str(Path(site.path).relative_to(source)), site.line)
    return Finding(
        key=Key(Symptom.MISSING_API, f"find_package({package})"),
        stage=Stage.BUILD,
        sites=(site,) if site else (),
        expected=f"CMake finds {package}Config.cmake below torch.utils.cmake_prefix_path",
        actual=f"Paddle ships no {package}Config.cmake",
        facts={"build_step": "cmake", "construct_kind": "cmake", "private": False},
        evidence=tuple(line.strip() for line in call.stderr.splitlines() if package in line)[:3],
    )


def mentions(source: Path, word: str) -> tuple[Site, ...]:
    """The lines of the build files that name a word, for what was raised where no line is known (``python -c``)."""
    symbol = re.compile(rf"(?<![\w.-]){re.escape(word)}\b|\.{re.escape(word)}\b|-l{re.escape(word)}\b")
    sites = []
    for path in (*(source / name for name in BUILD_FILES), *sorted((source / "cmake").glob("*.cmake"))):
        if path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            name = str(path.relative_to(source))
            sites += [Site(name, number) for number, line in enumerate(lines, 1) if symbol.search(line)]
    return tuple(sites)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]
