"""Writes clusters and claims at random, hostile ones among them, as JSON of resource.k8s.io/v1.

A case is one question to an allocator: gates that differ from the version's defaults, one node, slices, classes,
holders (allocated claims) and the claims of one pod. Everything is drawn from the `random.Random` given: a seed names a
case, and hypothesis can stand behind it (`strategies.randoms`), so that it shrinks what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from dradriver import api
from dradriver.allocator.variants import Distinct, rules_of

Json: TypeAlias = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"
DRIVERS = (GPU, NIC)
GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceCompatibilityGroups",
    "DRADeviceTaints",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
)
"""The gates that the allocator looks at, of those that are modelled."""

EXPRESSIONS = (
    "true",
    f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].?kind.orValue("x") == "x"',
    f'device.driver == "{GPU}" && device.attributes["{GPU}"].kind == "x"',
    f'device.attributes["{GPU}"].?domain.orValue(1) == 1',
    f'device.attributes["{GPU}"].kind == "x"',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'"memory" in device.capacity["{GPU}"]',
    'device.attributes["nope"].nope',
    "device.nope",
)
"""The last three err on some devices or on all, or do not compile."""

MULTIPLE = "device.allowMultipleAllocations"
INCLUDES = f'device.attributes["{GPU}"].?kinds.orValue("x").includes("x")'


class Drawing:
    """One case being drawn for one version; `often` and `seldom` decide what a case is about."""

    def __init__(self, random: Random, minor: int) -> None:
        self.random = random
        self.kubernetes = api.Kubernetes.release(f"1.{minor}", self._gates(minor))
        # Upstream tries every order where it is not sorted, and 1.33 cannot be stopped.
        self.patient = not rules_of(self.kubernetes).permutes
        self.big = self.patient and self.chance(0.03)
        self.depth = 7 if self.patient else 3
        self.counters = self.chance(0.4)
        self.shared = minor >= 34 and self.chance(0.4)
        self.hostile = self.chance(0.3)
        self.lists = minor >= 36 and self.chance(0.3)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one(self, *choices: Any) -> Any:
        return choices[self.random.randrange(len(choices))]

    def usable(self, gate: str) -> bool:
        """Whether to draw what a gate is for: seldom where it is off."""
        return self.kubernetes.enabled(gate) or self.chance(0.06)

    def some(self, make: Callable[[int], Any], *counts: int) -> list[Any]:
        return [make(index) for index in range(self.one(*counts))]

    def _gates(self, minor: int) -> dict[str, bool]:
        usual = api.Kubernetes.release(f"1.{minor}").gates
        known = [gate for gate in GATES if gate in usual]
        if self.chance(0.35):
            return {}
        if self.chance(0.5):
            return dict.fromkeys(known, True)
        return {gate: self.chance(0.6) for gate in known if self.chance(0.5)}


def draw(random: Random, minor: int) -> Json:
    """A case for a version."""
    drawing = Drawing(random, minor)
    slices = _slices(drawing)
    usual = api.Kubernetes.release(f"1.{minor}").gates
    return {
        "gates": {gate: on for gate, on in drawing.kubernetes.gates.items() if on != usual[gate]},
        "node": _node(drawing),
        "slices": slices,
        "classes": _classes(drawing),
        "holders": _holders(drawing, slices),
        "claims": drawing.some(lambda index: _claim(drawing, index), 1, 1, 1, 2 if drawing.patient else 1),
    }


def _node(d: Drawing) -> Json:
    node: Json = {"metadata": {"name": "n1", "labels": {"zone": "a", "rank": "7"}}}
    if d.kubernetes.enabled("DRAOptionalNodeOperations") and d.chance(0.7):
        node["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    return node


def _selector(d: Drawing) -> Json:
    requirement = d.one(
        {"key": "zone", "operator": "In", "values": ["a"]},
        {"key": "zone", "operator": "In", "values": ["b", "a"]},
        {"key": "zone", "operator": "NotIn", "values": ["a"]},
        {"key": "zone", "operator": "Exists"},
        {"key": "nope", "operator": "DoesNotExist"},
        {"key": "rank", "operator": "Gt", "values": ["3"]},
    )
    if d.chance(0.15):
        return {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}


def _placement(d: Drawing, *, device: bool) -> Json:
    if device:
        return d.one({"nodeName": "n1"}, {"nodeName": "n2"}, {"allNodes": True}, {"nodeSelector": _selector(d)}, {})
    return d.one(
        *({"nodeName": "n1"},) * 6,
        {"nodeName": "n2"},
        {"allNodes": True},
        {"nodeSelector": _selector(d)},
        {"perDeviceNodeSelection": True},
    )


def _slices(d: Drawing) -> list[Json]:
    slices: list[Json] = []
    taken: set[tuple[str, str]] = set()
    for _ in range(d.one(1, 1, 2, 3)):
        identity = (d.one(*DRIVERS), d.one("n1", "p", "q"))
        if identity in taken and not d.hostile:
            continue
        taken.add(identity)
        slices += _pool(d, *identity, len(slices))
    d.random.shuffle(slices)
    return slices


def _pool(d: Drawing, driver: str, name: str, base: int) -> list[Json]:
    counters = d.counters and d.chance(0.8)
    apart = counters and d.kubernetes.minor >= 35
    parts = d.one(1, 1, 2, 3)
    pool = {"name": name, "generation": d.one(1, 1, 2), "resourceSliceCount": parts + apart}
    if d.chance(0.3 if d.hostile else 0.03):
        pool["resourceSliceCount"] = max(1, pool["resourceSliceCount"] + d.one(-1, 1))
    made = []
    for part in range(parts + apart):
        own = dict(pool)
        if d.hostile and d.chance(0.15):
            own["generation"] += d.one(-1, 1)
        spec: Json = {"driver": driver, "pool": own, **_placement(d, device=False)}
        if counters and (not apart or part == parts):
            spec["sharedCounters"] = [_counter_set(d, s) for s in ("c1", "c2")[: d.one(1, 2, 2)]]
        if part < parts:
            spec["devices"] = _devices(d, base + part, counters=counters, placed="perDeviceNodeSelection" in spec)
        if d.kubernetes.enabled("DRAOptionalNodeOperations") and d.chance(0.2):
            spec["skipNodeOperations"] = d.one(["NodeUnprepareResources"], ["*"])
        made.append({"metadata": {"name": f"s{d.random.randrange(50):02}-{base + part}"}, "spec": spec})
    return made


def _counter_set(d: Drawing, name: str) -> Json:
    amounts = {"a": d.one("4", "4", "6", "2"), "b": d.one("40Gi", "80Gi")}
    if d.hostile and d.chance(0.2):
        amounts["a"] = d.one("-1", "0", "9223372036854775807", "1500m")
    return {"name": name, "counters": {key: {"value": value} for key, value in amounts.items()}}


def _devices(d: Drawing, part: int, *, counters: bool, placed: bool) -> list[Json]:
    count = d.one(10, 20, 34) if d.big else d.one(0, 1, 2, 3, 4, 4, *((5, 6) if d.patient else ()))
    devices = []
    for index in range(count):
        name = d.one("d0", "d1") if d.hostile and d.chance(0.1) else f"d{part}{index}"
        devices.append({"name": name, **_device(d, counters=counters, placed=placed)})
    return devices


def _device(d: Drawing, *, counters: bool, placed: bool) -> Json:
    device: Json = {"attributes": _attributes(d)}
    if d.chance(0.7):
        device["capacity"] = {"memory": _capacity(d)} | ({"cores": _capacity(d)} if d.chance(0.2) else {})
    if d.shared and d.chance(0.6):
        device["allowMultipleAllocations"] = True
    if counters and d.chance(0.6):
        device["consumesCounters"] = [_consumption(d, s) for s in d.random.sample(["c1", "c2"], d.one(1, 1, 2))]
    if placed:
        device |= _placement(d, device=True)
    if d.chance(0.12):
        effects = ("NoSchedule", "NoExecute") if d.kubernetes.minor < 35 else ("NoSchedule", "NoExecute", "None")
        device["taints"] = [{"key": d.one("t", "u"), "value": "v", "effect": d.one(*effects)}]
    if d.chance(0.04):
        device |= {"bindingConditions": ["b.x"], "bindingFailureConditions": ["f.x"]}
    if d.chance(0.04):
        device["bindsToNode"] = True
    return {key: value for key, value in device.items() if value != {}}


def _attributes(d: Drawing) -> Json:
    attributes: Json = {}
    if d.chance(0.8):
        attributes["kind"] = {"string": d.one("x", "x", "y")}
    if d.chance(0.8):
        odd = ({"int": 3}, {"bool": True}, {"string": "1"}, {"version": "1.0.0"})
        attributes["domain"] = d.one(*odd) if d.chance(0.15) else {"int": d.one(1, 1, 2)}
    if d.chance(0.5):
        attributes[f"{GPU}/root"] = {"string": d.one("r1", "r2")}
    if d.lists:
        if d.chance(0.5):
            attributes["kinds"] = d.one(
                {"strings": ["x", "y"]}, {"strings": ["y", "z"]}, {"strings": ["x"]}, {"string": "x"}
            )
        if d.chance(0.5):
            attributes["domain"] = d.one(
                {"ints": [1, 2]}, {"ints": [2, 3]}, {"ints": [1, 3]}, {"int": 2}, {"bools": [True]}
            )
    return attributes


def _capacity(d: Drawing) -> Json:
    capacity: Json = {"value": d.one("40Gi", "80Gi", "80Gi", "10")}
    if d.hostile and d.chance(0.15):
        capacity["value"] = d.one("-1", "0", "16Ei", "1500m")
    if d.shared and d.chance(0.6):
        capacity["requestPolicy"] = d.one(
            {"default": "10Gi"},
            {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
            {"default": "10Gi", "validRange": {"min": "10Gi"}},
            {"default": "10Gi", "validRange": {"min": "10Gi", "max": "40Gi"}},
            {"default": "10Gi", "validRange": {"min": "10Gi", "max": "40Gi", "step": "5Gi"}},
            {"default": "1", "validRange": {"min": "1", "step": "3"}},
            {"default": "500m", "validRange": {"min": "500m", "max": "10", "step": "250m"}},
        )
    return capacity


def _consumption(d: Drawing, counter_set: str) -> Json:
    amounts = {"a": d.one("1", "1", "2", "3")} | ({"b": d.one("10Gi", "20Gi")} if d.chance(0.3) else {})
    if d.hostile and d.chance(0.1):
        counter_set, amounts = d.one((counter_set, {"nope": "1"}), ("nope", amounts), (counter_set, {"a": "-1"}))
    use: Json = {"counterSet": counter_set, "counters": {name: {"value": value} for name, value in amounts.items()}}
    if d.kubernetes.minor >= 37 and d.chance(0.2):
        use["compatibilityGroups"] = d.one(["g"], ["h"], ["g", "h"])
    return use


def _classes(d: Drawing) -> list[Json]:
    opaque = {"driver": GPU, "parameters": {"from": "class"}}
    selector = {"cel": {"expression": f'device.driver == "{GPU}"'}}
    plain = {"metadata": {"name": "any"}, "spec": {"config": [{"opaque": opaque}] if d.chance(0.5) else []}}
    return [plain, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}]


def _holders(d: Drawing, slices: Sequence[Json]) -> list[Json]:
    """Claims that hold devices, whole or in shares; now and then of devices that are not there any more."""
    held = []
    for spec in (s["spec"] for s in slices):
        for device in spec.get("devices", ()):
            if not d.chance(0.2):
                continue
            result = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            held.append(result)
            if device.get("allowMultipleAllocations") and d.chance(0.9):
                held[-1:] = [_share(d, result, device, number) for number in range(d.one(1, 1, 2))]
            elif d.chance(0.1):
                result["adminAccess"] = True
    if not held:
        return []
    claim = {"metadata": {"name": "holder", "namespace": "ns"}, "spec": {"devices": {}}}
    return [claim | {"status": {"allocation": {"devices": {"results": held}}}}]


def _share(d: Drawing, result: Json, device: Json, number: int) -> Json:
    share = result | {"shareID": f"00000000-0000-0000-0000-00000000000{number}"}
    if device.get("capacity") and d.chance(0.9):
        share["consumedCapacity"] = {name: d.one("10Gi", "20Gi", "1") for name in device["capacity"]}
    return share


def _claim(d: Drawing, index: int) -> Json:
    names = [f"r{number}" for number in range(d.one(1, 1, 2, 3 if d.patient else 2))]
    devices: Json = {"requests": [_request(d, name) for name in names]}
    devices["constraints"] = d.some(lambda _: _constraint(d), 0, 0, 0, 1, 1, 2)
    devices["config"] = d.some(lambda number: _configuration(d, number), 0, 0, 1, 2)
    if d.hostile and d.chance(0.02):
        devices["requests"] = []
    spec = {"devices": {key: value for key, value in devices.items() if value}}
    return {"metadata": {"name": f"c{index}", "namespace": "ns"}, "spec": spec}


def _names(d: Drawing) -> list[str]:
    names: list[str] = d.one([], ["r0"], ["r0", "r1"], ["r0/s0"], ["r1"], ["r0/s1", "r1"])
    return names


def _constraint(d: Drawing) -> Json:
    names = _names(d)
    constraint: Json = {"requests": names} if names else {}
    known = rules_of(d.kubernetes).distinct is not Distinct.UNKNOWN
    kinds = ("matchAttribute",) * 3 + (("distinctAttribute",) * 2 if known or d.chance(0.05) else ())
    if not (d.hostile and d.chance(0.03)):
        constraint[d.one(*kinds)] = f"{GPU}/" + d.one(
            "domain", "domain", "kind", "root", *(("kinds",) if d.lists else ())
        )
    return constraint


def _configuration(d: Drawing, number: int) -> Json:
    names = d.one([], ["r0"], ["r0/s0"], ["r1", "r0"], ["r0", "r1", "r2"], ["r0/s1"])
    opaque = {"driver": GPU, "parameters": {"n": number}}
    return {"opaque": opaque} | ({"requests": names} if names else {})


def _request(d: Drawing, name: str) -> Json:
    prioritized = d.usable("DRAPrioritizedList") and d.kubernetes.minor > 32
    if not prioritized or d.chance(0.65):
        return {"name": name, "exactly": _way(d, exactly=True)}
    ways = d.some(lambda index: {"name": f"s{index}", **_way(d, exactly=False)}, 1, 2, 2, 3)
    return {"name": name, "firstAvailable": ways}


def _way(d: Drawing, *, exactly: bool) -> Json:
    way: Json = {"deviceClassName": d.one("any", "any", "gpu")}
    expressions = EXPRESSIONS if d.chance(0.1) else EXPRESSIONS[:5]
    if d.shared and d.chance(0.1):
        expressions += (MULTIPLE,)
    if d.lists and d.chance(0.3):
        expressions += (INCLUDES,)
    selectors = d.some(lambda _: {"cel": {"expression": d.one(*expressions)}}, 0, 0, 0, 1, 1, 2)
    if selectors:
        way["selectors"] = selectors
    way |= {"allocationMode": "All"} if d.chance(0.15) else {"allocationMode": "ExactCount", "count": _count(d)}
    if d.chance(0.3):
        way["tolerations"] = [d.one({"key": "t", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"})]
    if exactly and d.usable("DRAAdminAccess") and d.chance(0.12):
        way["adminAccess"] = True
    if d.kubernetes.minor >= 34 and d.usable("DRAConsumableCapacity") and d.chance(0.45 if d.shared else 0.1):
        wanted = {"memory": d.one("5Gi", "10Gi", "12Gi", "40Gi", "50Gi", "600m", "2")}
        if d.hostile and d.chance(0.1):
            wanted = d.one({"memory": "-1"}, {"nope": "1"}, {"memory": "10E"}, {"cores": "1"})
        way["capacity"] = {"requests": wanted}
    if d.hostile and d.chance(0.03):
        way |= d.one({"allocationMode": "Other"}, {"deviceClassName": "nope"}, {"count": 33}, {"count": 2**40})
    return way


def _count(d: Drawing) -> int:
    count: int = d.one(9, 16, 17, 32) if d.big else d.one(1, 1, 1, 2, 2, 3)
    if not d.big:
        count = max(1, min(count, d.depth))
        d.depth -= count
    return count
