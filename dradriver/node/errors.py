"""What can go wrong on the node.

NodeError
├── SettingsError    flags or environment that cannot be run with; the process ends with one line
├── JournalError     the journal cannot take a record (full disk); the call that needed it fails, state stays whole
├── CdiError         a CDI file cannot be written, or names a device node that does not exist
├── PrepareError     one claim cannot be prepared; its message goes to the kubelet and into the pod's events
└── LockError        the node's lock cannot be had: another call or another instance is at work for too long
"""

from __future__ import annotations


class NodeError(Exception):
    """Base of everything this room raises; the message names the object, the value and the remedy."""


class SettingsError(NodeError):
    """Flags or environment that cannot be run with."""


class JournalError(NodeError):
    """The journal cannot take a record; nothing of it was left in the file."""


class CdiError(NodeError):
    """A CDI file cannot be written, or names a device node that does not exist."""


class PrepareError(NodeError):
    """One claim cannot be prepared; other claims of the same call are not affected."""


class LockError(NodeError):
    """The node's lock cannot be had: another call or another instance is at work for too long."""
