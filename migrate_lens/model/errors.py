"""Every error that a user can be shown, each with its remedy; the command line catches the root once.

LensError                 one line, one remedy, exit code 2
├── UsageError            the command line, a configuration file or a path is wrong
├── LibraryError          the path holds nothing that can be diagnosed
├── RuntimeUnavailable    an interpreter, or the framework in it, cannot be used
├── StateError            a folder of ours cannot be read or written
└── RuleError             a rule file is not valid
"""


class LensError(Exception):
    """Root of all errors that end a command with exit code 2.

    Args:
        message: what is wrong, in one line.
        remedy: what the user can do about it, in one line.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(LensError):
    """The command line, a configuration file or a path is wrong."""


class LibraryError(LensError):
    """The path holds nothing that can be diagnosed."""


class RuntimeUnavailable(LensError):  # noqa: N818 - it names what is unavailable
    """An interpreter, or the framework in it, cannot be used."""


class StateError(LensError):
    """A folder of ours cannot be read or written."""


class RuleError(LensError):
    """A rule file is not valid."""
