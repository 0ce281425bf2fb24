"""Scans and gaps of one library, in; what a migration would do, in the guide's order, out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from migrate_lens.audit.gather import Nearness, language
from migrate_lens.audit.tree import role_of
from migrate_lens.model.audit import AuditGap, Plan
from migrate_lens.model.report import Layer, Symptom
from migrate_lens.model.uses import Scan

ORDER = (Layer.BUILD, Layer.PYTHON_PROXY, Layer.CPP_API, Layer.OP_REGISTRY, Layer.PYTHON_INTERFACE)
DSL = frozenset(("triton", "cutlass", "tilelang", "tvm", "tvm_ffi", "cupy", "numba"))
GPU_WORDS = ("cuda", "Stream", "Event", "nccl", "distributed", "pin_memory", "device")
GRADES = ((0, "A"), (5, "B"), (20, "C"), (60, "D"))


def kind_of(scans: Mapping[str, Scan]) -> tuple[str, str]:
    """The library's kind, and where its control plane is."""
    native = [path for path, scan in scans.items() if language(path) == "cpp" and scan.torch]
    registry = any(use.event == "library" for path in native for use in scans[path].uses)
    libraries = [path for path in scans if role_of(path) == "library" and language(path) == "python"]
    imported = {module.partition(".")[0] for path in libraries for _, module, _, _ in scans[path].imports}
    glue = sum(1 for path in libraries if scans[path].torch)
    layers = sum(use.event == "base" for path in libraries for use in scans[path].uses)
    if native and registry and glue > 3:
        return "runtime glue", "TORCH_LIBRARY registrations in C++, called through torch.ops from Python"
    if native:
        return "plain extension", "the build entry and the pybind module; Python is a thin wrapper"
    if imported & DSL:
        names = ", ".join(sorted(imported & DSL))
        return "kernel DSL", f"kernels in {names}; torch holds the memory, the streams and the autograd functions"
    if layers > glue:
        return "plain models", "torch.nn layers in Python"
    return "Python glue", "Python functions over torch tensors"


def serious(gaps: Iterable[AuditGap]) -> list[AuditGap]:
    """Gaps that a user of the library would meet."""
    return [one for one in gaps if not one.guarded and one.reach not in ("test", "example") and one.score >= 2]


def grade_of(gaps: Iterable[AuditGap]) -> str:
    """A to E, by how many gaps a user would meet."""
    number = len(serious(gaps))
    return next((grade for most, grade in GRADES if number <= most), "E")


def first_patch(gaps: tuple[AuditGap, ...]) -> str:
    """Where the first patch belongs: the cheapest layer that has a gap, at its likeliest site."""
    for layer in ORDER:
        for one in serious(gaps):
            if one.gap.layer is layer and one.gap.symptom is not Symptom.SCOPE:
                site = one.gap.sites[0]
                return f"{site.path}:{site.line} ({layer}: {one.gap.api})"
    return "none: enable compat with the library in its scope and run its tests"


def validation(scans: Mapping[str, Scan], near: Nearness, native: bool) -> tuple[str, ...]:
    """The path from cheap to dear, with commands."""
    packages = sorted({near.modules.name_of[root] for root in near.roots})
    scope = "{" + ", ".join(repr(name) for name in packages) + "}"
    steps = []
    if native or any(role_of(path) == "build" for path in scans):
        steps.append(
            'build: python -c "import paddle; paddle.enable_compat(); import runpy; '
            "runpy.run_path('setup.py', run_name='__main__')\" build_ext --inplace"
        )
    for name in packages[:3]:
        steps.append(f'import: python -c "import paddle; paddle.enable_compat(scope={scope}); import {name}"')
    steps.append("run: migrate-lens diagnose . --probe SMALLEST_PROGRAM")
    tests = sorted(path for path in scans if role_of(path) == "test" and path.rpartition("/")[2].startswith("test_"))
    if tests:
        steps.append(f"test: migrate-lens diagnose . --tests   (begin with {tests[0]})")
    return tuple(steps)


def changed(gaps: tuple[AuditGap, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The files that gaps stand in, layer by layer."""
    by_layer: dict[Layer, dict[str, None]] = {layer: {} for layer in ORDER}
    for one in gaps:
        near = [spot.site.path for spot in one.spots if spot.reach not in ("test", "example")]
        by_layer.setdefault(one.gap.layer, {}).update(dict.fromkeys(near))
    return tuple((str(layer), tuple(sorted(files))) for layer, files in by_layer.items() if files)


def make(scans: Mapping[str, Scan], gaps: tuple[AuditGap, ...], near: Nearness) -> Plan:
    """The whole plan."""
    kind, control = kind_of(scans)
    touched = {path for one in gaps for path in one.files}
    own = [path for path in scans if role_of(path) in ("library", "build")]
    gpu = sorted({one.gap.api for one in serious(gaps) if any(word in one.gap.api for word in GPU_WORDS)})
    native = any(language(path) == "cpp" and scan.torch for path, scan in scans.items())
    return Plan(
        kind=kind,
        control_plane=control,
        first_patch=first_patch(gaps),
        unchanged=tuple(sorted(path for path in own if path not in touched and not scans[path].reason)),
        changed=changed(gaps),
        validation=validation(scans, near, native),
        gpu_only=tuple(gpu),
    )
