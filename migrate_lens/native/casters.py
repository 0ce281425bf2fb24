"""A build and a C++ type go in; whether pybind11 has a caster for it among the headers comes out, by compiling."""

from __future__ import annotations

import os
from pathlib import Path

from migrate_lens.native.build import BuildRun, outside
from migrate_lens.native.compiler import CompilerCall
from migrate_lens.native.process import run_bounded
from migrate_lens.native.units import flags, include_folders

HEADERS = ("torch/extension.h", "torch/csrc/utils/pybind.h", "paddle/utils/pybind.h")
SECONDS = 120.0
# What has no caster of its own is held by the generic one, which wants a type that was registered.
ASKED = """\
#include <torch/extension.h>
#include <type_traits>
static_assert(!std::is_base_of_v<pybind11::detail::type_caster_generic, pybind11::detail::make_caster<{kind}>>,
              "no caster");
"""


def lacks_caster(build: BuildRun, kind: str, work: Path) -> bool | None:
    """Whether there is no caster for a type; None where that cannot be found out.

    Args:
        build: its flags are used.
        kind: a C++ type, such as ``at::ScalarType``.
        work: a private folder.
    """
    call = _call(build)
    if call is None:
        return None
    work.mkdir(parents=True, exist_ok=True)
    source = work / "caster.cc"
    source.write_text(ASKED.format(kind=kind), encoding="utf-8")
    argv = [*call.command, *flags(call), "-w", "-fdiagnostics-color=never", "-fsyntax-only", str(source)]
    ran = run_bounded(argv, cwd=call.cwd, env=outside(os.environ), timeout=SECONDS)
    if ran.ok:
        return False
    return True if "no caster" in ran.output else None


def declared_for_others(build: BuildRun, kind: str) -> str:
    """The header that declares a caster for a type under some condition; empty if none does."""
    call = _call(build)
    folders = include_folders(call.args, call.cwd) if call is not None else []
    for name in HEADERS:
        for folder in folders:
            try:
                if f"struct type_caster<{kind}>" in (folder / name).read_text(encoding="utf-8", errors="replace"):
                    return name
            except OSError:
                continue
    return ""


def _call(build: BuildRun) -> CompilerCall | None:
    return next((c for c in build.compiles if c.compiles and c.returncode == 0 and not c.device), None)
