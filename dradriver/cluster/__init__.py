"""Talking to an API server: connection, version negotiation, reflector, snapshots."""

from dradriver.cluster.connecting import Connection, Location, connect
from dradriver.cluster.discovering import Served, assume_kubernetes, discover
from dradriver.cluster.documents import SnapshotError
from dradriver.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
)
from dradriver.cluster.pacing import Pace
from dradriver.cluster.reflecting import Change, Reflector
from dradriver.cluster.snapshots import Snapshot, load_snapshot, take_snapshot
from dradriver.cluster.watching import Watch

__all__ = [
    "AlreadyExistsError",
    "Change",
    "ClusterError",
    "ConflictError",
    "Connection",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "Location",
    "NotFoundError",
    "Pace",
    "Reflector",
    "Served",
    "Snapshot",
    "SnapshotError",
    "UnauthorizedError",
    "UnreachableError",
    "Watch",
    "assume_kubernetes",
    "connect",
    "discover",
    "load_snapshot",
    "take_snapshot",
]
