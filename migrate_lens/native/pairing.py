"""Two builds go in; the units that torch compiled, each as the Paddle side compiles it, come out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from migrate_lens.model.report import Runtime
from migrate_lens.native.build import BuildRun
from migrate_lens.native.compiler import CompilerCall, read_calls
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
    theirs = {path: call for call in paddle.compiles if call.compiles and (path := relative(call, paddle.source))}
    units: list[Unit] = []
    template: tuple[str, ...] | None = None
    for call in torch.compiles:
        path = relative(call, torch.source) if call.compiles and call.returncode == 0 else None
        if path is None or call.device or any(unit.path == path for unit in units):
            continue
        if path in theirs:
            unit = _recorded(path, theirs[path])
        else:
            template = paddle_flags(python, work) if template is None else template
            unit = _derived(path, call, torch, paddle, template)
        units.append(replace(unit, torch_macros=_undefined(call), torch_standard=_standard(call)))
    return tuple(units)


def _standard(call: CompilerCall) -> str:
    return next((arg[5:] for arg in reversed(call.args) if arg.startswith("-std=")), "")


def _undefined(call: CompilerCall) -> frozenset[str]:
    """Macros that an ``#if`` of the unit asks for and that torch does not define either."""
    found = parse(call.stderr, call.cwd, lambda path: True)
    return frozenset(d.name for d in found if d.kind is Kind.UNDEFINED_MACRO)


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
    own = [flag.replace(old, new) for flag in flags(call)]
    kept = [flag for flag in own if not _of_torch(flag, roots)]
    if not _asks_standard(torch.source):
        kept = [flag for flag in kept if not flag.startswith("-std=")]
    source = paddle.source / path
    base = [flag for flag in template if not flag.startswith("-DPADDLE_EXTENSION_NAME")]
    name = next((flag.partition("=")[2] for flag in kept if flag.startswith("-DTORCH_EXTENSION_NAME=")), "_C")
    command = (*call.command, *base, f"-DPADDLE_EXTENSION_NAME={name}", *kept)
    cwd = Path(str(call.cwd).replace(old, new))
    return Unit(
        path, command, source if source.is_file() else call.source or source, cwd if cwd.is_dir() else paddle.source
    )


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
    env: Mapping[str, str] = environment(place, Runtime.TARGET, python, describe(python, place.root), dry=True)
    run_bounded([python, "setup.py", "build_ext", "--inplace"], cwd=place.source, env=env, timeout=120)
    return next((flags(call) for call in read_calls(place.calls) if call.compiles), ())
