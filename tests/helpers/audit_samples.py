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
        "torch": ["module", "module", [], False],
        "torch.Tensor": ["class", "class", [], False],
        "torch.Tensor.view": ["function", "function", [], False],
        "torch.Tensor.cauchy_": ["function", None, [], False],
        "torch.Tensor.max": ["function", "function", ["dim"], False],
        "torch.sort": ["function", "function", [], False],
        "torch.add": ["function", "function", [], False],
        "torch.ones": ["function", "function", ["layout"], False],
        "torch.frombuffer": ["function", None, [], False],
        "torch.device": ["class", "module", [], False],
        "torch.finfo": ["class", "function", [], False],
        "torch.nn": ["module", "module", [], False],
        "torch.nn.Module": ["class", "class", [], False],
        "torch.nn.Linear": ["class", "class", [], False],
        "torch.nn.functional": ["module", "module", [], False],
        "torch.nn.functional.gelu": ["function", "function", [], False],
        "torch.optim": ["module", None, [], False],
        "torch.optim.SGD": ["class", None, [], False],
        "torch.autograd": ["module", "module", [], False],
        "torch.autograd.Function": ["class", "class", [], False],
        "torch.profiler": ["module", "module", [], False],
        "torch.profiler.profile": ["class", "class", [], True],
        "torch._C": ["module", "module", [], False],
        "torch._C._log": ["function", None, [], False],
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
    "members": {},
    "unread": [],
    "nearest": {"torch.optim": "paddle.optimizer"},
}


def by_id(library: LibraryAudit) -> dict[str, AuditGap]:
    """The gaps of a library by their id."""
    return {one.gap.id: one for one in library.gaps}


def lines(library: LibraryAudit, gap: str) -> list[tuple[str, int]]:
    """Where a gap stands."""
    found = by_id(library).get(gap)
    return sorted((site.path, site.line) for site in found.gap.sites) if found else []
