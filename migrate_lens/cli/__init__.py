"""The command line: argv in; a report on stdout, progress on stderr and an exit code out; the only code that prints."""

from migrate_lens.cli.app import main

__all__ = ["main"]
