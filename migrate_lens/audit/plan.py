"""Scans and gaps of one library, in; what a migration would do, in the guide's order, out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from migrate_lens.audit.gather import Nearness, language
from migrate_lens.audit.tree import Language, Role, role_of
from migrate_lens.model.audit import AuditGap, Grade, LayerFiles, Plan, Reach
from migrate_lens.model.report import Layer, Site, Symptom
from migrate_lens.model.uses import Event, Scan

ORDER = (Layer.BUILD, Layer.PYTHON_PROXY, Layer.CPP_API, Layer.OP_REGISTRY, Layer.PYTHON_INTERFACE)
DSL = frozenset(("triton", "cutlass", "tilelang", "tvm", "tvm_ffi", "cupy", "numba"))
GPU_WORDS = ("cuda", "Stream", "Event", "nccl", "distributed", "pin_memory", "device_capability", "device_count")
# What a build or an import cannot get past.
_STOPS = frozenset((
    Symptom.MISSING_API, Symptom.MISSING_ARGUMENT, Symptom.EXCEPTION, Symptom.IMPORT_ERROR, Symptom.MISSING_HEADER,
    Symptom.COMPILE_ERROR, Symptom.LINK_ERROR,
))  # fmt: skip
AWAY = (Reach.TEST, Reach.EXAMPLE)
SERIOUS = 2.0  # the least score of a gap that a user would meet
GRADES = ((0, Grade.A), (5, Grade.B), (20, Grade.C), (60, Grade.D))
GLUED = 3  # modules over torch beyond which a library with registrations is more than a wrapper


class Kind(NamedTuple):
    """What sort of library it is, and where its control plane is."""

    name: str
    control_plane: str


def kind_of(scans: Mapping[str, Scan]) -> Kind:
    """What sort of library it is, by what its sources do."""
    native = torch_natives(scans)
    modules = [
        scan for path, scan in scans.items() if language(path) is Language.PYTHON and role_of(path) is Role.LIBRARY
    ]
    glue = sum(scan.torch for scan in modules)
    if native:
        if uses_of("library", native) and glue > GLUED:
            return Kind("runtime glue", "TORCH_LIBRARY registrations in C++, called through torch.ops from Python")
        return Kind("plain extension", "the build entry and the pybind module; Python is a thin wrapper")
    dsl = sorted(DSL & {one.module.partition(".")[0] for scan in modules for one in scan.imports})
    if dsl:
        kernels = f"kernels in {', '.join(dsl)}"
        return Kind("kernel DSL", f"{kernels}; torch holds the memory, the streams and the autograd functions")
    if uses_of("base", modules) > glue:
        return Kind("plain models", "torch.nn layers in Python")
    return Kind("Python glue", "Python functions over torch tensors")


def torch_natives(scans: Mapping[str, Scan]) -> list[Scan]:
    """The C++ and CUDA files that use torch."""
    return [scan for path, scan in scans.items() if scan.torch and language(path) is Language.CPP]


def uses_of(event: Event, scans: Iterable[Scan]) -> int:
    """How many uses of one sort some files have."""
    return sum(use.event == event for scan in scans for use in scan.uses)


def serious(gaps: Iterable[AuditGap]) -> list[AuditGap]:
    """Gaps that a user of the library would meet."""
    return [gap for gap in gaps if gap.score >= SERIOUS and not gap.guarded and gap.reach not in AWAY]


def grade_of(gaps: Iterable[AuditGap]) -> Grade:
    """By how many gaps a user would meet."""
    number = len(serious(gaps))
    return next((grade for most, grade in GRADES if number <= most), Grade.E)


def first_patch(gaps: tuple[AuditGap, ...], near: Nearness) -> str:
    """Where the first patch belongs: where a build fails, else the import, else the cheapest layer that has a gap."""
    stops = [audited for audited in gaps if audited.gap.symptom in _STOPS]
    candidates = serious(stops)
    building = [audited for audited in candidates if audited.gap.layer is Layer.BUILD]
    # An import stops at the first of them, however little a score says of it.
    first = min((site for gap in building or stops for site in _met(gap, near)), default=None)
    if first is not None:
        return f"{first.site.path}:{first.site.line} ({first.layer}: {first.api})"
    for layer in ORDER:
        for gap in (audited.gap for audited in candidates if audited.gap.layer is layer):
            return f"{gap.sites[0].path}:{gap.sites[0].line} ({layer}: {gap.api})"
    return "none seen by reading: enable compat with the library in its scope and run its tests"


class Meeting(NamedTuple):
    """A site that is met when a package is built or imported: when, where, and what."""

    stretch: int
    site: Site
    layer: Layer
    api: str


def _met(audited: AuditGap, near: Nearness) -> Iterator[Meeting]:
    """The unguarded sites of a gap that building or importing the library comes by, in the order of the files."""
    for spot in audited.spots:
        if not spot.guard and spot.reach in (Reach.IMPORT, Reach.BUILD):
            yield Meeting(near.order(spot.site), spot.site, audited.gap.layer, audited.gap.api)


def validation(library: str, scans: Mapping[str, Scan], near: Nearness, built: bool) -> tuple[str, ...]:
    """The path from cheap to dear, with commands."""
    packages = sorted({near.modules.name_of[root] or library for root in near.roots})
    scope = "{" + ", ".join(repr(name) for name in packages) + "}"
    steps = []
    if built and any(path.rpartition("/")[2] == "setup.py" for path in scans):
        steps.append(
            'build: python -c "import paddle; paddle.enable_compat(); import runpy; '
            "runpy.run_path('setup.py', run_name='__main__')\" build_ext --inplace"
        )
    for name in packages[:3]:
        steps.append(f'import: python -c "import paddle; paddle.enable_compat(scope={scope}); import {name}"')
    steps.append("run: migrate-lens diagnose . --probe SMALLEST_PROGRAM")
    tests = [path for path in scans if path.rpartition("/")[2].startswith("test_") and role_of(path) is Role.TEST]
    if tests:
        steps.append(f"test: migrate-lens diagnose . --tests   (begin with {min(tests)})")
    return tuple(steps)


def changed(gaps: tuple[AuditGap, ...]) -> tuple[LayerFiles, ...]:
    """The files that gaps stand in, layer by layer."""
    by_layer: dict[Layer, set[str]] = {layer: set() for layer in ORDER}
    for audited in gaps:
        near = {spot.site.path for spot in audited.spots if spot.reach not in AWAY}
        by_layer.setdefault(audited.gap.layer, set()).update(near)
    return tuple(LayerFiles(str(layer), tuple(sorted(files))) for layer, files in by_layer.items() if files)


def make(library: str, scans: Mapping[str, Scan], gaps: tuple[AuditGap, ...], near: Nearness) -> Plan:
    """The whole plan of a library that is called so."""
    kind, control = kind_of(scans)
    touched = {path for gap in gaps for path in gap.files}
    own = [path for path in scans if role_of(path) in (Role.LIBRARY, Role.BUILD)]
    apis = {audited.gap.api for audited in serious(gaps)}
    gpu = sorted(api for api in apis if any(word in api for word in GPU_WORDS))
    return Plan(
        kind=kind,
        control_plane=control,
        first_patch=first_patch(gaps, near),
        unchanged=tuple(sorted(path for path in own if path not in touched and not scans[path].reason)),
        changed=changed(gaps),
        validation=validation(library, scans, near, near.natives.built),
        gpu_only=tuple(gpu),
    )
