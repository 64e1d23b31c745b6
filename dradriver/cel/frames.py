"""One evaluation: the device at hand and how it is read, the values of local names, and the steps taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dradriver import api
from dradriver.cel import syntax, values
from dradriver.cel.errors import EvaluationError
from dradriver.cel.reading import Domain, Domains, Entry, Field, Reference, Source, is_optional
from dradriver.cel.values import ABSENT, NONE, DomainMap, EntryMap, Optional


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
            domains.setdefault(domain or self.driver, EntryMap())[id_] = entry
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


def read(node: syntax.Node, reference: Reference) -> Closure:
    """Read a part of the device that is known from the text alone."""
    optional = is_optional(node)
    match reference:
        case Field.DRIVER if not optional:
            return lambda frame: frame.driver
        case Field.DRIVER:
            return lambda frame: _wrapped(frame.driver, optional=optional)
        case Field.SHARED:
            return lambda frame: _wrapped(frame.device.allow_multiple_allocations, optional=optional)
        case Field.DEVICE:
            return Frame.whole
        case Domains(source):
            return lambda frame: _wrapped(frame.domains(source), optional=optional)
        case Domain(source, domain):
            return lambda frame: _wrapped(frame.domains(source).get(domain, EntryMap()), optional=optional)
        case Entry():
            return _read_entry(node, reference, optional=optional)


def _wrapped(value: Any, *, optional: bool) -> Any:
    return Optional(value) if optional else value


def _read_entry(node: syntax.Node, entry: Entry, *, optional: bool) -> Closure:
    found = lookup(entry)
    span = node.field_span if isinstance(node, syntax.Select) else node.span
    name = entry.id

    def value(frame: Frame) -> Any:
        result = found(frame)
        if result is ABSENT:
            raise EvaluationError(span, f"no such key: {name}", name)
        return result

    def maybe(frame: Frame) -> Any:
        result = found(frame)
        return NONE if result is ABSENT else Optional(result)

    return maybe if optional else value
