"""Puts one case to both allocators and tells whether they agree; knows what is random upstream.

An answer is compared as `["allocated", allocations]`, `["refused"]` or `["error", message]`; `["undecided"]`, where a
budget or the time ran out, agrees with all. Share ids are random, so
only their presence counts. Where the variant that the gates select tries pools in random order (all before 1.36, and
the stable one), upstream is asked several times, with slices in different orders: ours must be one of its answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, TypeAlias

from dradriver import allocator, api
from dradriver.allocator.variants import rules_of
from dradriver.api import wire

Json: TypeAlias = dict[str, Any]
Answer: TypeAlias = list[Any]
Ask: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]

TRIES = 60
"""How often upstream is asked where its order is random: of three pools it gives each order in a third of these."""

BUDGET = 300_000
"""Devices that ours looks at before it gives up."""

V1_MINOR = 34
"""From this minor on the allocator works on v1, before on v1beta1."""

FEATURES = {
    "AdminAccess": "DRAAdminAccess",
    "CompatibilityGroups": "DRADeviceCompatibilityGroups",
    "ConsumableCapacity": "DRAConsumableCapacity",
    "DeviceBinding": "DRADeviceBindingConditions",
    "DeviceStatus": "DRAResourceClaimDeviceStatus",
    "DeviceTaints": "DRADeviceTaints",
    "EnableConsumableCapacity": "DRAConsumableCapacity",
    "EnableListTypeAttributes": "DRAListTypeAttributes",
    "FractionalCapacityRange": "DRAFractionalCapacityRange",
    "ListTypeAttributes": "DRAListTypeAttributes",
    "OptionalNodeOperations": "DRAOptionalNodeOperations",
    "PartitionableDevices": "DRAPartitionableDevices",
    "PrioritizedList": "DRAPrioritizedList",
}
"""Features of the allocator and of CEL by the gates that switch them (kube-scheduler, AllocatorFeatures)."""


def features(kubernetes: api.Kubernetes) -> dict[str, bool]:
    """What kube-scheduler hands to the allocator and to CEL under these gates."""
    given = {feature: kubernetes.enabled(gate) for feature, gate in FEATURES.items()}
    given["DeviceBindingAndStatus"] = given["DeviceBinding"] and given["DeviceStatus"]
    # kube-scheduler 1.36 (seen in 1.36.3) tells CEL of lists, but not the allocator.
    given["ListTypeAttributes"] = given["ListTypeAttributes"] and rules_of(kubernetes).lists_reach_constraints
    return given


def kubernetes_of(case: Json, minor: int) -> api.Kubernetes:
    return api.Kubernetes.release(f"1.{minor}", case["gates"])


def question(case: Json, minor: int) -> Json:
    """A case as the program of its minor reads it."""
    return {
        "Features": features(kubernetes_of(case, minor)),
        "Node": case["node"],
        "Slices": [_in_version(item, "ResourceSlice", minor) for item in _sorted(case["slices"])],
        "Classes": case["classes"],
        "Holders": [_in_version(item, "ResourceClaim", minor) for item in case["holders"]],
        "Claims": [_in_version(item, "ResourceClaim", minor) for item in case["claims"]],
    }


def _sorted(slices: list[Json]) -> list[Json]:
    return sorted(slices, key=lambda s: (s["spec"]["driver"], s["spec"]["pool"]["name"], s["metadata"]["name"]))


def _in_version(item: Json, kind: str, minor: int) -> Json:
    if minor >= V1_MINOR:
        return item
    value = wire.read({**item, "kind": kind}, wire.ApiVersion.V1)
    write: Any = {"ResourceSlice": wire.write_slice, "ResourceClaim": wire.write_claim}[kind]
    written: Json = write(value, wire.ApiVersion.V1BETA1)
    return written


def answer(case: Json, minor: int) -> Answer:
    """Our answer to a case."""
    version = wire.ApiVersion.V1
    node = case["node"]
    here = api.Node(
        node["metadata"]["name"],
        node["metadata"]["labels"],
        tuple(node.get("status", {}).get("declaredFeatures", ())),
    )
    cluster = allocator.Cluster(
        slices=[wire.read_slice(item, version) for item in _sorted(case["slices"])],
        classes=[wire.read_class(item, version) for item in case["classes"]],
        claims=[wire.read_claim(item, version) for item in case["holders"]],
        nodes=[here],
        kubernetes=kubernetes_of(case, minor),
    )
    claims = [wire.read_claim(item, version) for item in case["claims"]]
    outcome = allocator.allocate(cluster, here, claims, budget=BUDGET)
    if isinstance(outcome, allocator.Allocated):
        return ["allocated", [_plain(wire.write_allocation(a)) for a in outcome.allocations]]
    if isinstance(outcome, allocator.Undecided):
        return ["undecided"]
    if isinstance(outcome, allocator.Refused):
        return ["error", outcome.message] if outcome.message.startswith("invalid") else ["refused"]
    return ["error", outcome.message]


def their_answer(given: Mapping[str, Any]) -> Answer:
    """What a program answered."""
    if "deadline exceeded" in given.get("error", ""):
        return ["undecided"]
    if given.get("error"):
        return ["error", given["error"]]
    return ["allocated", [_plain(a) for a in given["results"]]] if given.get("results") is not None else ["refused"]


def _plain(value: Any, key: str = "") -> Any:
    """JSON without what says nothing: empty fields, random ids, how a quantity is written."""
    if isinstance(value, Mapping):
        items = ((k, _plain(v, key if key == "consumedCapacity" else k)) for k, v in value.items())
        return {k: "random" if k == "shareID" else v for k, v in items if v not in (None, [], {}, False)}
    if isinstance(value, list):
        return [_plain(item, key) for item in value]
    return str(api.Quantity.parse(value)) if key == "consumedCapacity" else value


def agree(ours: Answer, theirs: Answer) -> bool:
    """Whether two answers are one."""
    if "undecided" in (ours[0], theirs[0]):
        return True
    if ours[0] != theirs[0]:
        return False
    return ours[0] == "refused" or ours[1] == theirs[1] or (ours[0] == "error" and _same_error(ours[1], theirs[1]))


_CAPACITY = re.compile(r'capacity "[^"]*"')
_CHECKED_EARLIER = re.compile(
    r"request .*: (device class .* does not exist|unsupported request type)"
    r"|resource claim .*: (has subrequests, but .*|unknown request type)"
)
"""What kube-scheduler finds in any claim before it asks the allocator (PreFilter); that errs too, if later."""


def _same_error(ours: str, theirs: str) -> bool:
    for head in (": CEL compile error: ", ": CEL runtime error: "):
        # What CEL says is compared by the tests of CEL; here it counts who erred, and on what.
        if head in ours and head in theirs:
            return ours.split(head, maxsplit=1)[0] == theirs.split(head, maxsplit=1)[0]
    # Which of two capacities errs first is random upstream.
    if _CAPACITY.sub("", ours) == _CAPACITY.sub("", theirs):
        return True
    return bool(_CHECKED_EARLIER.fullmatch(ours))


def find(case: Json, minor: int, ask: Ask) -> tuple[Answer, list[Answer], bool]:
    """Our answer, the different ones upstream gave, and whether ours is among them."""
    ours = answer(case, minor)
    given: list[Answer] = []
    for asked in _orders(question(case, minor), random=rules_of(kubernetes_of(case, minor)).random_order):
        theirs = their_answer(ask(asked))
        if agree(ours, theirs):
            return ours, [theirs], True
        if theirs not in given:
            given.append(theirs)
    return ours, given, False


def _orders(asked: Json, *, random: bool) -> Iterator[Json]:
    yield asked
    shuffling = Random(0)  # noqa: S311 - orders of pools, not secrets
    pools: dict[tuple[str, str], list[Json]] = {}
    for item in asked["Slices"]:
        pools.setdefault((item["spec"]["driver"], item["spec"]["pool"]["name"]), []).append(item)
    for _ in range(TRIES if random and len(pools) > 1 else 0):
        order = list(pools.values())
        shuffling.shuffle(order)
        yield asked | {"Slices": [item for pool in order for item in pool]}
