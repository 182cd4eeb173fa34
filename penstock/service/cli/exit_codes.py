"""Failures of commands: each has one line for people, and an exit code for scripts.

CommandFailed        1   the command was tried and failed
├── UsageFailed      2   the command was used wrongly
├── NoServer         3   no server answers at the address
├── NotFound         4   the job, program, savepoint or state does not exist
└── NotAllowed       5   the server requires a token, or another one
"""

from __future__ import annotations

CANCELLED = 130
"""Exit code after Ctrl-C, as in a shell."""


class CommandFailed(Exception):
    """Raised if a command was tried and failed."""

    code = 1

    def __init__(self, message: str, kind: str = "error") -> None:
        """Create the error. `kind` is the word before the message."""
        super().__init__(message)
        self.kind = kind


class UsageFailed(CommandFailed):
    """Raised if a command was used wrongly."""

    code = 2


class NoServer(CommandFailed):
    """Raised if no server answers."""

    code = 3


class NotFound(CommandFailed):
    """Raised if the named job, program, savepoint or state does not exist."""

    code = 4


class NotAllowed(CommandFailed):
    """Raised if the server requires a token, or another one."""

    code = 5
