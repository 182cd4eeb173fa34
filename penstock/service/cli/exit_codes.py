"""How a command ends if it does not succeed: one line for people, and an exit code for scripts.

CommandFailed        1   what was asked for was tried, and did not succeed
├── UsageFailed      2   the command was given wrongly
├── NoServer         3   no server answers at the address
├── NotFound         4   there is no such job, program, savepoint or state
└── NotAllowed       5   the server wants a token, or another one
"""

from __future__ import annotations

CANCELLED = 130
"""The exit code after Ctrl-C, as in a shell."""


class CommandFailed(Exception):
    """What was asked for was tried, and did not succeed."""

    code = 1

    def __init__(self, message: str, kind: str = "error") -> None:
        """`kind` is the word in front of the message."""
        super().__init__(message)
        self.kind = kind


class UsageFailed(CommandFailed):
    """The command was given wrongly."""

    code = 2


class NoServer(CommandFailed):
    """No server answers."""

    code = 3


class NotFound(CommandFailed):
    """There is no such thing."""

    code = 4


class NotAllowed(CommandFailed):
    """The server wants a token, or another one."""

    code = 5
