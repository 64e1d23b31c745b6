"""Builders for clusters and claims of a few lines, with one driver and one class unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dradriver import allocator, api, cel
from dradriver.allocator.selecting import compile_stored

DRIVER = "gpu.example.com"


class Build:
    """What tests write instead of twenty lines of constructors."""

    driver = DRIVER

    def device(self, name: str, attributes: Mapping[str, Any] | None = None, **fields: Any) -> api.Device:
        return api.Device(name, attributes or {}, **fields)

    def taint(self, key: str, effect: str = "NoSchedule", value: str = "") -> api.Taint:
        return api.Taint(key, api.TaintEffect(effect), value)

    def slice(self, node: str | None, devices: Iterable[api.Device | str], **fields: Any) -> api.ResourceSlice:
        pool = {"name": node or "pool", "generation": 1, "resource_slice_count": 1} | fields.pop("pool", {})
        name = fields.pop("name", f"{pool['name']}-slice")
        return api.ResourceSlice(
            fields.pop("driver", DRIVER),
            api.Pool(**pool),
            api.ObjectMeta(name=name),
            node_name=node,
            devices=tuple(self.device(d) if isinstance(d, str) else d for d in devices),
            **fields,
        )

    def device_class(self, name: str = "gpu", *expressions: str, config: Sequence[Any] = ()) -> api.DeviceClass:
        opaque = tuple(api.OpaqueConfiguration(DRIVER, {"note": note}) for note in config)
        return api.DeviceClass(api.ObjectMeta(name=name), tuple(map(api.Selector, expressions)), opaque)

    def request(self, name: str = "r", *expressions: str, count: int = 1, **fields: Any) -> api.DeviceRequest:
        return api.DeviceRequest(name, exactly=self._exactly(expressions, count, fields))

    def everything(self, name: str = "r", *expressions: str, **fields: Any) -> api.DeviceRequest:
        return self.request(name, *expressions, count=0, allocation_mode="All", **fields)

    def first_of(self, name: str, *options: api.DeviceRequest) -> api.DeviceRequest:
        subs = [
            api.DeviceSubRequest(
                o.name, e.device_class_name, e.selectors, e.allocation_mode, e.count, e.tolerations, e.capacity
            )
            for o in options
            if (e := o.exactly) is not None
        ]
        return api.DeviceRequest(name, first_available=tuple(subs))

    def claim(self, *requests: api.DeviceRequest, name: str = "c", **fields: Any) -> api.ResourceClaim:
        return api.ResourceClaim(
            api.ObjectMeta(name=name, namespace="ns", uid=api.UID(f"uid-{name}")), api.ClaimSpec(requests, **fields)
        )

    def held(self, *devices: tuple[str, str], name: str = "other", **fields: Any) -> api.ResourceClaim:
        """A claim that holds devices, written as (pool, device)."""
        results = tuple(api.AllocatedDevice("r", DRIVER, pool, device, **fields) for pool, device in devices)
        claim = self.claim(self.request(), name=name)
        return replace(claim, status=api.ClaimStatus(api.Allocation(results)))

    def match(self, attribute: str, *requests: str) -> api.DeviceConstraint:
        return api.DeviceConstraint(requests, match_attribute=f"{DRIVER}/{attribute}")

    def distinct(self, attribute: str, *requests: str) -> api.DeviceConstraint:
        return api.DeviceConstraint(requests, distinct_attribute=f"{DRIVER}/{attribute}")

    def where(self, attribute: str, value: object) -> str:
        """An expression that errs on devices without the attribute."""
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        return f'device.attributes["{DRIVER}"].{attribute} == {text}'

    def cluster(
        self,
        *slices: api.ResourceSlice,
        claims: Iterable[api.ResourceClaim] = (),
        classes: Iterable[api.DeviceClass] | None = None,
        nodes: Iterable[api.Node] = (),
        version: str = "1.37",
        gates: Mapping[str, bool] | None = None,
        taint_rules: Iterable[api.DeviceTaintRule] = (),
        asked: bool = False,
    ) -> allocator.Cluster:
        return allocator.Cluster(
            slices=slices,
            classes=[self.device_class()] if classes is None else classes,
            claims=claims,
            nodes=nodes,
            kubernetes=api.Kubernetes.release(version, gates),
            taint_rules=taint_rules,
            compile_expression=compile_asked if asked else compile_stored,
        )

    def allocate(
        self, cluster: allocator.Cluster, *claims: api.ResourceClaim, node: str = "n1", **fields: Any
    ) -> allocator.Outcome:
        return allocator.allocate(cluster, cluster.nodes.get(node, api.Node(node)), claims, **fields)

    def names(self, outcome: allocator.Outcome) -> list[list[str]]:
        """The devices of every claim of an outcome that must be an allocation."""
        assert isinstance(outcome, allocator.Allocated), outcome
        return [[result.device for result in allocation.results] for allocation in outcome.allocations]

    def _exactly(self, expressions: Sequence[str], count: int, fields: dict[str, Any]) -> api.ExactDeviceRequest:
        device_class = fields.pop("device_class", "gpu")
        return api.ExactDeviceRequest(device_class, tuple(map(api.Selector, expressions)), count=count, **fields)


class Asked(cel.Program):
    """A compiled expression that remembers on which devices it was evaluated."""

    def __init__(self, program: cel.Program) -> None:
        self._program = program
        self.asked: list[str] = []

    def evaluate(self, driver: str, device: api.Device) -> bool:
        self.asked.append(device.name)
        return self._program.evaluate(driver, device)


def compile_asked(text: str, kubernetes: api.Kubernetes) -> cel.Program:
    return Asked(cel.compile_expression(text, kubernetes))


@pytest.fixture(scope="session")
def build() -> Build:
    return Build()
