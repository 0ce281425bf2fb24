"""A small surface made by hand, and what an audit found by id or line."""

from __future__ import annotations

from collections.abc import Callable

from migrate_lens.audit import surface
from migrate_lens.model.audit import AuditGap, LibraryAudit

Audit = Callable[..., LibraryAudit]

DOCUMENT: surface.Document = {
    "schema": surface.SCHEMA,
    "torch": ["2.0", "aaa"],
    "paddle": ["3.0", "bbb"],
    "names": {
        "torch": ["module", "module", [], False, False],
        "torch.Tensor": ["class", "class", [], False, False],
        "torch.Tensor.view": ["function", "function", [], False, False],
        "torch.Tensor.cauchy_": ["function", None, [], False, False],
        "torch.Tensor.max": ["function", "function", ["dim"], False, False],
        "torch.sort": ["function", "function", [], False, True],
        "torch.add": ["function", "function", [], False, False],
        "torch.ones": ["function", "function", ["layout"], False, False],
        "torch.frombuffer": ["function", None, [], False, False],
        "torch.device": ["class", "module", [], False, False],
        "torch.finfo": ["class", "function", [], False, False],
        "torch.nn": ["module", "module", [], False, False],
        "torch.nn.Module": ["class", "class", [], False, False],
        "torch.nn.Linear": ["class", "class", [], False, False],
        "torch.nn.functional": ["module", "module", [], False, False],
        "torch.nn.functional.gelu": ["function", "function", [], False, False],
        "torch.optim": ["module", None, [], False, False],
        "torch.optim.SGD": ["class", None, [], False, False],
        "torch.autograd": ["module", "module", [], False, False],
        "torch.autograd.Function": ["class", "class", [], False, False],
        "torch.profiler": ["module", "module", [], False, False],
        "torch.profiler.profile": ["class", "class", [], True, False],
        "torch._C": ["module", "module", [], False, False],
        "torch._C._log": ["function", None, [], False, False],
    },
    "native": {
        "torch": {
            "names": ["Tensor", "tensor", "cumsum", "empty"],
            "macros": ["TORCH_WARN", "TORCH_CHECK", "AT_ERROR"],
            "headers": ["torch/extension.h", "torch/script.h"],
            "methods": {"Tensor": ["narrow", "view"], "Library": ["def", "impl_abstract_pystub"]},
        },
        "paddle": {
            "names": ["Tensor", "empty"],
            "macros": ["TORCH_CHECK"],
            "headers": ["torch/extension.h"],
            "methods": {"Tensor": ["view"], "Library": ["def"]},
        },
    },
}


def by_id(library: LibraryAudit) -> dict[str, AuditGap]:
    """The gaps of a library by their id."""
    return {one.gap.id: one for one in library.gaps}


def lines(library: LibraryAudit, gap: str) -> list[tuple[str, int]]:
    """Where a gap stands."""
    found = by_id(library).get(gap)
    return sorted((site.path, site.line) for site in found.gap.sites) if found else []
