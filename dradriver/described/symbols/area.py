"""What the groups of symbols have in common: the machine they speak of."""

from __future__ import annotations

from dradriver.described.machine import Machine


class Area:
    """Symbols about one thing."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
