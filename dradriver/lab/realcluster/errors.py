"""What can go wrong with a real cluster.

```
RealClusterError
├── MissingError   something must be installed or allowed first; the message says what
├── BuildError     Go could not build a binary
└── StartError     a process ended or was not ready in time
```
"""


class RealClusterError(Exception):
    """The real cluster cannot be had; the message says why and what to do."""


class MissingError(RealClusterError):
    """Something must be installed, or root is needed; the message names it."""


class BuildError(RealClusterError):
    """Go could not build a binary; the message ends with what Go said."""


class StartError(RealClusterError):
    """A process ended or was not ready in time; the message ends with what its log last said."""
