"""migrate-lens: runs one program under torch and under Paddle's torch compat layer, and names every gap.

Importing this package imports nothing but the standard library; a framework is imported only in a worker process.
"""

__version__ = "0.1.0"
