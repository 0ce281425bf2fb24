"""torch itself in a process: the baseline, which answers ``import torch`` as ever."""

from __future__ import annotations

from migrate_lens.worker.backends.framework import About, Backend, Framework, Note, NoteItem, Zoom


class TorchFramework(Framework):
    """The baseline that all others are held against."""

    name = "torch"
    baseline = True

    def start(self, *, keep_torch: bool) -> About:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        return About(torch.__version__, str(torch.version.git_version or ""), device)

    def make_backend(self) -> Backend:
        from migrate_lens.worker.backends.torch.backend import TorchBackend

        return TorchBackend()

    def seed(self, number: int) -> None:
        import torch

        torch.manual_seed(number)

    def zoom(self, note: Note) -> Zoom:
        from migrate_lens.worker.backends.torch.zoom import TorchZoom

        return TorchZoom(note)

    def watch_loaders(self, note: NoteItem) -> None:
        from migrate_lens.worker.backends.torch.data_loaders import watch

        watch(note)
