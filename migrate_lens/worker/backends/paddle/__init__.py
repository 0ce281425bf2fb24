"""Paddle: a framework that answers ``import torch`` through its compat layer."""

from migrate_lens.worker.backends.paddle.framework import PaddleFramework

FRAMEWORK = PaddleFramework()
