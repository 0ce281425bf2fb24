"""Two traces in; what differs between them, and where it began, out. Pure functions: nothing is run here."""

import sys

from migrate_lens.callable_package import CallablePackage

sys.modules[__name__].__class__ = CallablePackage
