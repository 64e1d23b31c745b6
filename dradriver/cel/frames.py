"""One evaluation: the device at hand, the values of local names, and the steps taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dradriver import api
from dradriver.cel import values
from dradriver.cel.reading import Entry, Source
from dradriver.cel.values import ABSENT, DomainMap


class Frame:
    """The state of one evaluation; `slots` hold the values of local names, by numbers given when compiling."""

    __slots__ = ("attributes", "capacity", "device", "driver", "slots", "steps")

    def __init__(self, driver: str, device: api.Device) -> None:
        self.driver = driver
        self.device = device
        self.attributes = device.attributes
        self.capacity = device.capacity
        self.slots: dict[int, Any] = {}
        self.steps = 0

    def spend(self, steps: int) -> None:
        """Count steps. Raises Abort beyond the cost limit."""
        self.steps += steps
        if self.steps > values.MAX_COST:
            raise values.Abort(values.COST_EXCEEDED)

    def domains(self, source: Source) -> DomainMap:
        """A whole map of the device, by domain and id."""
        published = self.attributes if source is Source.ATTRIBUTES else self.capacity
        domains = DomainMap()
        for name, value in published.items():
            domain, _, id_ = name.rpartition("/")
            entry = value.value if isinstance(value, api.Capacity) else value
            domains.setdefault(domain or self.driver, {})[id_] = entry
        return domains

    def whole(self) -> dict[str, Any]:
        """The device as a value."""
        return {
            "driver": self.driver,
            "allowMultipleAllocations": self.device.allow_multiple_allocations,
            "attributes": self.domains(Source.ATTRIBUTES),
            "capacity": self.domains(Source.CAPACITY),
        }


Closure: TypeAlias = Callable[[Frame], Any]


def lookup(entry: Entry) -> Closure:
    """The closure that finds one attribute's or capacity's value, or ABSENT.

    Names are published bare for the driver's own domain, qualified for others.
    """
    domain, id_, qualified = entry.domain, entry.id, f"{entry.domain}/{entry.id}"

    def attribute(frame: Frame) -> Any:
        if frame.driver == domain:
            value = frame.attributes.get(id_, ABSENT)
            if value is not ABSENT:
                return value
        return frame.attributes.get(qualified, ABSENT)

    def capacity(frame: Frame) -> Any:
        found = frame.capacity.get(id_) if frame.driver == domain else None
        found = found or frame.capacity.get(qualified)
        return ABSENT if found is None else found.value

    return attribute if entry.source is Source.ATTRIBUTES else capacity
