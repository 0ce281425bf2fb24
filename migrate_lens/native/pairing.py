"""Two builds go in; the units that torch compiled, each as the Paddle side compiles it, come out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from migrate_lens.model.report import Runtime
from migrate_lens.native.build import BuildRun
from migrate_lens.native.compiler import CompilerCall, ShimOptions, read_calls
from migrate_lens.native.diagnostics import Kind, parse
from migrate_lens.native.process import run_bounded
from migrate_lens.native.units import Unit, flags, include_folders
from migrate_lens.native.workplace import Workplace, describe, environment

# A build of nothing, in dry mode: it shows the flags that Paddle's builder gives to any extension.
TEMPLATE = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="template",
    packages=[],
    ext_modules=[CppExtension(name="template", sources=["template.cc"])],
    cmdclass={"build_ext": BuildExtension},
)
"""


def torch_roots(build: BuildRun) -> tuple[Path, ...]:
    """The include folders of torch itself that its build used."""
    roots: dict[Path, None] = {}
    for call in build.compiles:
        for folder in include_folders(call.args, call.cwd):
            if (folder / "ATen").is_dir() or (folder / "torch" / "torch.h").is_file():
                roots[folder] = None
    return tuple(roots)


def paired_units(torch: BuildRun, paddle: BuildRun, python: Path, work: Path) -> tuple[Unit, ...]:
    """The units of the torch build, by Paddle's own call where its build got that far, by derived flags where not."""
    if torch.source is None or paddle.source is None:
        return ()
    paddle_calls = {path: call for call in paddle.compiles if call.compiles and (path := relative(call, paddle.source))}
    template: tuple[str, ...] | None = None
    units: dict[str, Unit] = {}
    for path, call in _compiled_for_host(torch.compiles, torch.source).items():
        if path in paddle_calls:
            unit = _recorded(path, paddle_calls[path])
        else:
            if template is None:
                template = paddle_flags(python, work)
            unit = _derived(path, call, torch, paddle, template)
        units[path] = replace(unit, torch_macros=_undefined(call), torch_standard=_standard(call))
    return tuple(units.values())


def _compiled_for_host(calls: Iterable[CompilerCall], root: Path) -> dict[str, CompilerCall]:
    """The first call that compiled each source of the library; a GPU compiler's do not count."""
    first: dict[str, CompilerCall] = {}
    for call in calls:
        if not call.compiles or call.device or call.returncode != 0:
            continue
        if path := relative(call, root):
            first.setdefault(path, call)
    return first


def _standard(call: CompilerCall) -> str:
    return next((arg[5:] for arg in reversed(call.args) if arg.startswith("-std=")), "")


def _undefined(call: CompilerCall) -> frozenset[str]:
    """Macros that an ``#if`` of the unit asks for and that torch does not define either."""
    diagnostics = parse(call.stderr, call.cwd, lambda path: True)
    return frozenset(diagnostic.name for diagnostic in diagnostics if diagnostic.kind is Kind.UNDEFINED_MACRO)


def relative(call: CompilerCall, root: Path) -> str | None:
    """The path of a call's source in the library; None if it lies elsewhere."""
    if call.source is None or not call.source.is_relative_to(root):
        return None
    return str(call.source.relative_to(root))


def _recorded(path: str, call: CompilerCall) -> Unit:
    assert call.source is not None
    return Unit(path, (*call.command, *flags(call)), call.source, call.cwd, call.stderr, call.returncode)


def _derived(path: str, call: CompilerCall, torch: BuildRun, paddle: BuildRun, template: tuple[str, ...]) -> Unit:
    """The library's own flags out of torch's call, behind those that Paddle's builder gives."""
    assert torch.source is not None
    assert paddle.source is not None
    old, new = str(torch.source), str(paddle.source)
    roots = {str(root) for root in torch_roots(torch)}
    moved = [flag.replace(old, new) for flag in flags(call)]
    own = [flag for flag in moved if not _of_torch(flag, roots)]
    if not _asks_standard(torch.source):
        own = [flag for flag in own if not flag.startswith("-std=")]
    base = [flag for flag in template if not flag.startswith("-DPADDLE_EXTENSION_NAME")]
    name = next((flag.partition("=")[2] for flag in own if flag.startswith("-DTORCH_EXTENSION_NAME=")), "_C")
    command = (*call.command, *base, f"-DPADDLE_EXTENSION_NAME={name}", *own)
    source = paddle.source / path
    if not source.is_file():
        source = call.source or source
    cwd = Path(str(call.cwd).replace(old, new))
    if not cwd.is_dir():
        cwd = paddle.source
    return Unit(path, command, source, cwd)


def _of_torch(flag: str, roots: set[str]) -> bool:
    return re.sub(r"^-(?:I|isystem|iquote)", "", flag) in roots or flag.startswith("-D_GLIBCXX_USE_CXX11_ABI")


def _asks_standard(root: Path) -> bool:
    """Whether the library itself chooses a language standard; torch's own choice does not hold for Paddle."""
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "CMakeLists.txt"):
        path = root / name
        if path.is_file() and re.search(r"-std=|CXX_STANDARD|cxx_std", path.read_text("utf-8", errors="replace")):
            return True
    return False


def paddle_flags(python: Path, work: Path) -> tuple[str, ...]:
    """The flags of Paddle's builder, from a dry build of an empty extension; empty if even that does not run."""
    place = Workplace(work / "template")
    shutil.rmtree(place.root, ignore_errors=True)
    place.make()
    place.source.mkdir()
    (place.source / "setup.py").write_text(TEMPLATE, encoding="utf-8")
    (place.source / "template.cc").write_text("", encoding="utf-8")
    about = describe(python, place.root)
    env = environment(place, Runtime.TARGET, python, about, ShimOptions(dry=True))
    run_bounded([python, "setup.py", "build_ext", "--inplace"], cwd=place.source, env=env, timeout=120)
    return next((flags(call) for call in read_calls(place.calls) if call.compiles), ())
