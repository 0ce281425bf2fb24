"""Start of a worker: run by path, in an interpreter that need not have migrate-lens installed.

It makes this very package importable without putting the folder around it on ``sys.path``, since that folder holds
the driver's packages, which the other interpreter must not see.
"""

import importlib.util
import os
import sys


def boot() -> int:
    """Import the package from where this file is, and serve."""
    sys.path.pop(0)  # the folder of this script
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    init = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("migrate_lens", init, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["migrate_lens"] = package
    spec.loader.exec_module(package)
    from migrate_lens.worker.run.zygote import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(boot())
