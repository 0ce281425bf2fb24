"""The parent side of tracing: workers are started here, jobs sent, and the traces they leave read back."""

import sys

from migrate_lens.callable_package import CallablePackage

sys.modules[__name__].__class__ = CallablePackage
