"""Paddle in a process: a target, which answers ``import torch`` through its compat layer, in a scope or everywhere."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Sequence

from migrate_lens.worker.backends.framework import About, Backend, Framework, NoCompatError, Note, Zoom
from migrate_lens.worker.backends.hiding import hide_torch


class PaddleFramework(Framework):
    """The target."""

    name = "paddle"

    def start(self, *, keep_torch: bool) -> About:
        if not keep_torch:
            hide_torch()
        import paddle

        if not hasattr(paddle, "enable_compat"):
            raise NoCompatError(f"paddle {paddle.__version__} has no enable_compat")
        # Paddle's handler prints to stdout, and deadlocks in malloc after a heap corruption.
        paddle.disable_signal_handler()
        on_gpu = paddle.device.is_compiled_with_cuda() and paddle.device.cuda.device_count()
        return About(paddle.__version__, str(paddle.version.commit), "gpu" if on_gpu else "cpu")

    def make_backend(self) -> Backend:
        from migrate_lens.worker.backends.paddle.backend import PaddleBackend

        return PaddleBackend()

    def seed(self, number: int) -> None:
        import paddle

        paddle.seed(number)

    def zoom(self, note: Note) -> Zoom:
        from migrate_lens.worker.backends.paddle.zoom import PaddleZoom

        return PaddleZoom(note)

    def answer_torch(self, scope: Sequence[str] | None) -> None:
        import paddle

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if scope is None:
                paddle.enable_compat()
            else:
                paddle.enable_compat(scope=set(scope))

    def admit(self, module: types.ModuleType) -> None:
        proxy = sys.modules.get("paddle.compat.proxy")
        marker = getattr(proxy, "MAGIC_ENABLED_MODULE_ATTR", None)
        if marker:
            module.__dict__[marker] = True
