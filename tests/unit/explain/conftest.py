"""Situations: the story's snapshot, and small ones of a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dradriver import allocator, api, cluster, explain

DRIVER = "gpu.example.com"
STORY = Path(__file__).parent / "story.yaml"


class Scene:
    """What tests write instead of twenty lines of constructors; one driver, one class, a pool for each node."""

    driver = DRIVER

    def device(self, name: str, *taints: str, **attributes: Any) -> api.Device:
        memory = attributes.pop("memory", None)
        return api.Device(
            name,
            attributes,
            {"memory": api.Capacity(api.Quantity.parse(memory))} if memory else {},
            taints=tuple(api.Taint(key, api.TaintEffect.NO_SCHEDULE) for key in taints),
        )

    def slice(
        self, pool: str, *devices: api.Device, count: int = 1, driver: str = DRIVER, **fields: Any
    ) -> api.ResourceSlice:
        fields = fields or {"node_name": pool}
        return api.ResourceSlice(
            driver, api.Pool(pool, 1, count), api.ObjectMeta(name=f"{driver}-{pool}"), devices=devices, **fields
        )

    def request(self, name: str = "r", *expressions: str, count: int = 1, **fields: Any) -> api.DeviceRequest:
        selectors = tuple(map(api.Selector, expressions))
        device_class = fields.pop("device_class", "gpu")
        return api.DeviceRequest(name, api.ExactDeviceRequest(device_class, selectors, count=count, **fields))

    def claim(self, *requests: api.DeviceRequest, name: str = "c", match: str = "", **fields: Any) -> api.ResourceClaim:
        constraints = (api.DeviceConstraint((), match_attribute=f"{DRIVER}/{match}"),) if match else ()
        metadata = api.ObjectMeta(name=name, namespace="ns", uid=api.UID(f"uid-{name}"), **fields)
        return api.ResourceClaim(metadata, api.ClaimSpec(requests or (self.request(),), constraints))

    def held(self, *devices: str, name: str = "other", pod: str | None = None) -> api.ResourceClaim:
        """A claim that holds devices, written as pool/device, and the pod it is reserved for."""
        results = tuple(api.AllocatedDevice("r", DRIVER, *device.split("/")) for device in devices)
        users = (api.ConsumerReference("pods", pod, api.UID(f"uid-{pod}")),) if pod else ()
        return replace(self.claim(name=name), status=api.ClaimStatus(api.Allocation(results), users))

    def situation(
        self,
        *slices: api.ResourceSlice,
        claims: Iterable[api.ResourceClaim] = (),
        selectors: Iterable[str] = (),
        nodes: Mapping[str, explain.NodeState] | None = None,
        labels: Mapping[str, Mapping[str, str]] | None = None,
        **fields: Any,
    ) -> explain.Situation:
        names = [s.node_name for s in slices if s.node_name] + sorted(labels or {})
        index = allocator.Cluster(
            slices=slices,
            classes=[api.DeviceClass(api.ObjectMeta(name="gpu"), tuple(map(api.Selector, selectors)))],
            claims=claims,
            nodes=[api.Node(name, (labels or {}).get(name, {})) for name in dict.fromkeys(names)],
            kubernetes=api.Kubernetes.release("1.37"),
        )
        return explain.Situation(index, tuple(claims), nodes=tuple((nodes or {}).values()), **fields)

    def where(self, attribute: str, value: object) -> str:
        """An expression that errs on devices without the attribute."""
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        return f'device.attributes["{DRIVER}"].{attribute} == {text}'

    def pod(self, *claims: explain.PodClaim | str, name: str = "p", **fields: Any) -> explain.Pod:
        entries = tuple(c if isinstance(c, explain.PodClaim) else explain.PodClaim(c, c, None) for c in claims)
        return explain.Pod("ns", name, uid=f"uid-{name}", claims=entries, **fields)


@pytest.fixture(scope="session")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="session")
def story() -> explain.Situation:
    """The story once all its steps are applied: train, notebook and serve run, the others wait."""
    snapshot = cluster.load_snapshot(STORY)
    return explain.Situation(
        cluster=allocator.Cluster(
            slices=snapshot.slices,
            classes=snapshot.classes,
            claims=snapshot.claims,
            nodes=[api.Node(explain.read_node(node).name) for node in snapshot.nodes],
            kubernetes=snapshot.kubernetes,
        ),
        claims=snapshot.claims,
        templates=snapshot.templates,
        pods=tuple(map(explain.read_pod, snapshot.pods)),
        nodes=tuple(map(explain.read_node, snapshot.nodes)),
        versions=snapshot.versions,
    )
