"""migrate-lens: runs one program under torch and under Paddle's torch compat layer, and names every gap.

Importing this package imports nothing else; a framework is imported only in a worker process. For use from Python
there are ``trace``, ``compare`` and ``record`` in ``migrate_lens.api``.
"""

__version__ = "0.1.0"
