"""What stops a command: one line for a person, exit status 1.

CommandError
└── UsageError   a flag or argument that makes no sense; the line ends with where help is
"""

from __future__ import annotations


class CommandError(Exception):
    """A command could not answer; the message names the object, the value and the remedy."""


class UsageError(CommandError):
    """A flag or argument that makes no sense."""
