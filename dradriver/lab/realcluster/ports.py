"""Free ports on loopback, below those that the kernel gives to clients, so that nobody else is given one meanwhile."""

from __future__ import annotations

import random
import socket

from dradriver.lab.realcluster.errors import StartError

_FIRST, _LAST = 20_000, 30_000
_TRIES = 200


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on. Raises StartError where there are none."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(_FIRST, _LAST), _TRIES):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise StartError(f"no {count} free ports from {_FIRST} to {_LAST} on 127.0.0.1")
