"""torch, the baseline: the framework that programs under diagnosis are written for."""

from migrate_lens.worker.backends.torch.framework import TorchFramework

FRAMEWORK = TorchFramework()
