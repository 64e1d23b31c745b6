"""The index the allocator works on: pools, devices, classes, and who holds what.

A `Cluster` never changes. Variants (`without_claims`, `emptied`, `repaired`) share everything but what they change, so
the questions "and if it were free?" and "and if it were healthy?" cost no new index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dradriver import api
from dradriver.allocator.pools import Candidate, Pool, PoolID, PoolView, gather
from dradriver.allocator.selecting import Compile, Selectors, compile_stored
from dradriver.allocator.tainting import rules_work, tainted
from dradriver.allocator.variants import rules_of


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that holds a device; `share_id` of the result is set where it holds only a share of it."""

    claim: api.ResourceClaim
    result: api.AllocatedDevice


@dataclass(frozen=True, slots=True)
class Repairs:
    """What a variant takes as put right: taints gone, pools as published so far taken whole, erring selectors false."""

    taints: bool = False
    pools: bool = False
    selectors: bool = False


class Cluster:
    """An immutable index of what allocation depends on.

    `claims` are all claims of all namespaces, allocated or not; only allocated ones count, admin access left out.
    Devices have the taints of `taint_rules` beside their own, where the gates let the scheduler look at rules.

    Attributes:
        kubernetes: the version and gates whose rules hold.
        rules: how the allocator of that version behaves under these gates.
        classes, nodes: by name.
        claims: all claims given, whatever a variant leaves out of account.
        pools: every pool as the whole cluster sees it, ordered by driver, then name.
        candidates: every device of the newest generation of every pool with its slice, by its identity.
        devices: the same devices alone.
        selectors: compiled selectors, shared by all variants.
        repairs: what this variant takes as put right.
        has_shares: whether claims hold shares of devices.
    """

    def __init__(
        self,
        *,
        slices: Iterable[api.ResourceSlice],
        classes: Iterable[api.DeviceClass],
        claims: Iterable[api.ResourceClaim],
        nodes: Iterable[api.Node],
        kubernetes: api.Kubernetes,
        taint_rules: Iterable[api.DeviceTaintRule] = (),
        compile_expression: Compile = compile_stored,
    ) -> None:
        self.kubernetes = kubernetes
        self.rules = rules_of(kubernetes)
        self.classes: Mapping[str, api.DeviceClass] = {c.metadata.name: c for c in classes}
        self.nodes: Mapping[str, api.Node] = {n.name: n for n in nodes}
        self.claims = tuple(claims)
        self.selectors = Selectors(kubernetes, compile_expression)
        if rules_work(kubernetes):
            slices = tainted(slices, tuple(taint_rules), self._meets)
        self._pools = gather(slices, kubernetes)
        self.pools = tuple(self._pools.values())
        self.candidates: Mapping[api.DeviceID, Candidate] = _first_by_id(self.pools)
        self.devices: Mapping[api.DeviceID, api.Device] = {i: c.device for i, c in self.candidates.items()}
        self.repairs = Repairs()
        self._held = _holders(self.claims)
        self.has_shares = any(h.result.share_id is not None for held in self._held.values() for h in held)
        self._local, self._shared = _by_node(self.pools)

    def pool(self, device: api.DeviceID) -> Pool:
        """The pool of a device. Raises KeyError for one that no pool has."""
        return self._pools[PoolID(device.driver, device.pool)]

    def holders(self, device: api.DeviceID) -> tuple[Holder, ...]:
        """Who holds a device, or shares of it."""
        return self._held.get(device, ())

    def in_use(self, device: api.DeviceID) -> bool:
        """Whether a device is held whole, so that nobody else can have it."""
        held = self._held.get(device)
        if not held:
            return False
        return not self.rules.consumable or any(h.result.share_id is None for h in held)

    def shares(self, device: api.DeviceID) -> tuple[api.AllocatedDevice, ...]:
        """The shares that claims hold of a device."""
        return tuple(h.result for h in self._held.get(device, ()) if h.result.share_id is not None)

    def pools_for(self, node: api.Node) -> list[PoolView]:
        """The pools with something for a node, in the order in which they are tried.

        By driver, then name; pools with binding conditions last, where the version does that.
        """
        pools = sorted((*self._local.get(node.name, ()), *self._shared), key=lambda pool: pool.id)
        seen = (pool.seen_from(node, repaired=self.repairs.pools) for pool in pools)
        found = [view for view in seen if view is not None]
        return sorted(found, key=lambda view: view.gated) if self.rules.gated_last else found

    def without_claims(self, leaves: Callable[[api.ResourceClaim], bool]) -> Cluster:
        """The cluster once the claims for which `leaves` is true hold nothing any more."""
        kept = {i: tuple(h for h in held if not leaves(h.claim)) for i, held in self._held.items()}
        return self._variant(_held={i: held for i, held in kept.items() if held})

    def emptied(self) -> Cluster:
        """The cluster in which no claim holds anything."""
        return self._variant(_held={})

    def repaired(self, *, taints: bool = True, pools: bool = True, selectors: bool = True) -> Cluster:
        """The cluster once what is broken outside the devices in use is put right.

        Args:
            taints: no device is tainted.
            pools: incomplete pools are taken as published so far, and of two devices of one name the first.
            selectors: a selector that errs on a device is false on it.
        """
        return self._variant(repairs=Repairs(taints, pools, selectors))

    def _meets(self, identity: api.DeviceID, device: api.Device, selector: api.DeviceTaintSelector) -> bool:
        """Whether a device meets the class and selectors of a taint rule; one that errs does not."""
        named = self.classes.get(selector.device_class_name or "")
        if selector.device_class_name and named is None:
            return False
        candidate = Candidate(identity, device, api.ResourceSlice(identity.driver, api.Pool(identity.pool)))
        return self.selectors.judge(candidate, named, selector.selectors).passed

    def _variant(self, **changes: Any) -> Cluster:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **changes)
        return made


def _first_by_id(pools: Iterable[Pool]) -> dict[api.DeviceID, Candidate]:
    found: dict[api.DeviceID, Candidate] = {}
    for candidate in (c for pool in pools for c in pool.candidates):
        found.setdefault(candidate.id, candidate)
    return found


def _holders(claims: Iterable[api.ResourceClaim]) -> dict[api.DeviceID, tuple[Holder, ...]]:
    held: dict[api.DeviceID, tuple[Holder, ...]] = {}
    for claim in claims:
        for result in claim.status.allocation.results if claim.status.allocation else ():
            if not result.admin_access:
                held[result.id] = (*held.get(result.id, ()), Holder(claim, result))
    return held


def _by_node(pools: Iterable[Pool]) -> tuple[dict[str, list[Pool]], list[Pool]]:
    """Pools for one node alone by that node, and all others."""
    local: dict[str, list[Pool]] = {}
    shared: list[Pool] = []
    for pool in pools:
        if pool.node:
            local.setdefault(pool.node, []).append(pool)
        else:
            shared.append(pool)
    return local, shared
