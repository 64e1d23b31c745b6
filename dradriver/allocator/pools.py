"""Resource pools: as the whole cluster sees them, and as one node does.

Pure values, made once from the slices. Rules of which slices count, when a pool is incomplete or invalid and in which
order its devices are tried are those of dynamic-resource-allocation `structured/internal/*/pools_*.go`, as `variants`
names them. The sorted order of 1.36 is used for every version: before it was random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dradriver import api
from dradriver.allocator.variants import BrokenPools, Rules, rules_of


class PoolID(NamedTuple):
    """A pool's identity in the cluster; its text form is `driver/pool`."""

    driver: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One device at its place: compared by identity, so that two devices of one name stay two.

    `plain` says that who asks for no capacity need not look at it: it is not shared, has no policies, is not negative.
    """

    id: api.DeviceID
    device: api.Device
    slice: api.ResourceSlice
    plain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PoolView:
    """A pool as one node sees it: `candidates` are those of slices for the node, in the order of the search.

    `elsewhere` are devices of the pool in slices for other nodes: they share its counters. Both are empty while the
    pool is incomplete; an invalid pool keeps them only before 1.35.
    `gated` says that a device needs someone's consent before a pod starts (KEP-5007), `refills` that one consumes less
    than nothing of a counter, so that taking it makes room for others.
    """

    id: PoolID
    incomplete: bool = False
    invalid: str | None = None
    candidates: tuple[Candidate, ...] = ()
    elsewhere: tuple[Candidate, ...] = ()
    counter_slices: tuple[api.ResourceSlice, ...] = ()
    gated: bool = False
    refills: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as the whole cluster sees it.

    `slices` are those of the newest generation by name, `published` those of all generations. `invalid` says why no
    device of the pool may be allocated (two devices of one name, a counter that does not exist), None if it is sound
    (a node judges the slices for it alone, so a name that two nodes' slices have keeps nobody from using it). `node` is
    the node that every slice names, if there is one.
    """

    id: PoolID
    kubernetes: api.Kubernetes = field(repr=False)
    rules: Rules = field(repr=False)
    generation: int
    slices: tuple[api.ResourceSlice, ...]
    published: tuple[api.ResourceSlice, ...] = ()
    complete: bool = True
    invalid: str | None = None
    node: str | None = None
    # By identity of the slice. Made once, since a candidate is compared by identity.
    _candidates: Mapping[int, tuple[Candidate, ...]] = field(default_factory=dict, repr=False)
    # The one view there is of a pool whose slices all name one node.
    _local: PoolView | None = field(default=None, repr=False)

    @property
    def driver(self) -> str:
        """The driver that publishes the pool."""
        return self.id.driver

    @property
    def name(self) -> str:
        """The pool's name, by convention that of its node."""
        return self.id.name

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every device of the newest generation, whatever node it is for."""
        return tuple(c for s in self.slices for c in self._candidates[id(s)])

    @property
    def devices(self) -> tuple[tuple[api.DeviceID, api.Device], ...]:
        """The devices of the newest generation by slice, each once even if its name is there twice."""
        return tuple({c.id: (c.id, c.device) for c in reversed(self.candidates)}.values())[::-1]

    @property
    def node_names(self) -> tuple[str, ...]:
        """Nodes that slices or devices name; empty for pools that are selected in another way."""
        names = {s.node_name for s in self.slices} | {d.node_name for s in self.slices for d in s.devices}
        return tuple(sorted(name for name in names if name))

    def seen_from(self, node: api.Node, *, repaired: bool = False) -> PoolView | None:
        """The pool as a node sees it, None where it has nothing for the node or is being replaced.

        `repaired` takes the pool as if its driver had finished publishing it: the slices present are all there are,
        and of two devices of one name the first counts.
        """
        if repaired:
            here = [s for s in self.slices if self._serves(s, node)]
            return self._build(here, self.slices, repaired=True) if here else None
        if self.node == node.name and self._local is not None:
            return self._local
        relevant = [s for s in self.published if self._serves(s, node)]
        if not relevant:
            return None
        newest = max(s.pool.generation for s in relevant)
        here = [s for s in relevant if s.pool.generation == newest]
        # Upstream looks for a newer generation on other nodes only where this one is not complete by itself.
        replaced = newest < self.generation and len(here) != here[0].pool.resource_slice_count
        return None if replaced and self.rules.pool_wide else self._judge(here)

    def _serves(self, resource_slice: api.ResourceSlice, node: api.Node) -> bool:
        """Whether a slice has something for a node; per-device selection is judged device by device afterwards."""
        if not self._understands(resource_slice):
            return False
        if resource_slice.shared_counters and self.rules.counter_slices_everywhere:
            return True
        if resource_slice.per_device_node_selection:
            return any(_picks(d, node) for d in resource_slice.devices)
        return _picks(resource_slice, node)

    def _understands(self, resource_slice: api.ResourceSlice) -> bool:
        # What a gate adds to slices makes a scheduler without it ignore them; they still count for completeness.
        partitioned = resource_slice.per_device_node_selection or (
            bool(resource_slice.shared_counters) and self.rules.counter_slices_need_gate
        )
        if partitioned and not self.kubernetes.enabled("DRAPartitionableDevices"):
            return False
        return not self._uses_unknown_groups(resource_slice)

    def _uses_unknown_groups(self, resource_slice: api.ResourceSlice) -> bool:
        """Whether a slice has compatibility groups and the gate is off: then not even completeness counts it."""
        if self.rules.groups is not False:
            return False
        return any(use.compatibility_groups for d in resource_slice.devices for use in d.consumes_counters)

    def _judge(self, here: Sequence[api.ResourceSlice]) -> PoolView:
        """A view from the slices for a node, all of one generation; completeness as of the version."""
        wanted = here[0].pool.resource_slice_count
        complete = len(here) == wanted
        if not self.rules.pool_wide:
            seen = self._build(here)
            return seen if complete else replace(seen, incomplete=True)
        generation = here[0].pool.generation
        everywhere = [s for s in self.published if s.pool.generation == generation and not self._uses_unknown_groups(s)]
        if not complete and len(everywhere) != wanted:
            return PoolView(self.id, incomplete=True)
        return self._build(here, () if complete else everywhere)

    def _build(
        self,
        here: Sequence[api.ResourceSlice],
        everywhere: Sequence[api.ResourceSlice] = (),
        *,
        repaired: bool = False,
    ) -> PoolView:
        last = self.rules.gated_slices_last
        here = sorted(here, key=lambda s: (last and _gated(s), s.metadata.name))
        present = {id(s) for s in here}
        candidates = tuple(c for s in here for c in self._candidates[id(s)])
        if repaired:
            candidates = _first_of_each_name(candidates)
        invalid = _duplicate_name(candidates)
        elsewhere: tuple[Candidate, ...] = ()
        counter_slices: tuple[api.ResourceSlice, ...] = ()
        if self.rules.pool_wide and self.kubernetes.enabled("DRAPartitionableDevices"):
            others = [s for s in everywhere if id(s) not in present]
            elsewhere = tuple(c for s in others for c in self._candidates[id(s)])
            counter_slices = tuple(s for s in (*here, *others) if s.shared_counters)
            invalid = invalid or _broken_counters(counter_slices, (*candidates, *elsewhere))
        if invalid and self.rules.broken_pools is BrokenPools.SKIPPED and not repaired:
            return PoolView(self.id, invalid=invalid)
        return PoolView(
            self.id,
            False,
            None if repaired else invalid,
            candidates,
            elsewhere,
            counter_slices,
            any(c.device.binding_conditions for c in candidates),
            any(_refills(c.device) for c in candidates),
        )

    def checked(self) -> Pool:
        """The same pool with what is computed once: whether it is valid, and its view if it is for one node alone."""
        here = [s for s in self.published if s.pool.generation == self.generation and self._understands(s)]
        local = self.node is not None and not self._shows_elsewhere()
        return replace(
            self,
            invalid=self._build(here, self.slices).invalid,
            node=self.node if local else None,
            _local=self._judge(here) if here and local else None,
        )

    def _shows_elsewhere(self) -> bool:
        """Whether other nodes than its own have to do with a pool: its counters may be for every node.

        There they bring no device, but a pool that is not in order stands in the way of all that are wanted.
        """
        if not self.rules.counter_slices_everywhere:
            return False
        counters = [s for s in self.published if s.shared_counters and self._understands(s)]
        newest = max((s.pool.generation for s in counters), default=None)
        counters = [s for s in counters if s.pool.generation == newest]
        if not counters or newest != self.generation:
            return bool(counters)
        view = self._judge(counters)
        return view.incomplete or view.invalid is not None


def gather(slices: Iterable[api.ResourceSlice], kubernetes: api.Kubernetes) -> dict[PoolID, Pool]:
    """Sort slices into pools, ordered by driver, then name."""
    grouped: dict[PoolID, list[api.ResourceSlice]] = {}
    for resource_slice in slices:
        grouped.setdefault(PoolID(resource_slice.driver, resource_slice.pool.name), []).append(resource_slice)
    return {pool: _pool(pool, grouped[pool], kubernetes) for pool in sorted(grouped)}


def candidate_serves(candidate: Candidate, node: api.Node) -> bool:
    """Whether one device can be used on a node."""
    if candidate.slice.per_device_node_selection:
        return _picks(candidate.device, node)
    return _picks(candidate.slice, node)


def _picks(selection: api.ResourceSlice | api.Device, node: api.Node) -> bool:
    if selection.node_name:
        return selection.node_name == node.name
    if selection.all_nodes:
        return True
    return selection.node_selector is not None and api.selects(selection.node_selector, node)


def _pool(pool: PoolID, slices: Sequence[api.ResourceSlice], kubernetes: api.Kubernetes) -> Pool:
    newest = max(s.pool.generation for s in slices)
    node_names = {s.node_name for s in slices}
    current = tuple(sorted((s for s in slices if s.pool.generation == newest), key=lambda s: s.metadata.name))
    return Pool(
        id=pool,
        kubernetes=kubernetes,
        rules=rules_of(kubernetes),
        generation=newest,
        slices=current,
        published=tuple(sorted(slices, key=lambda s: not _goes_first(s, kubernetes))),
        complete=len(current) == current[0].pool.resource_slice_count,
        node=node_names.pop() if len(node_names) == 1 else None,
        _candidates={id(s): _candidates(s, kubernetes) for s in slices},
    ).checked()


def _goes_first(resource_slice: api.ResourceSlice, kubernetes: api.Kubernetes) -> bool:
    """Whether upstream looks at a slice before others: where counts differ within a pool, the first is believed."""
    rules = rules_of(kubernetes)
    if rules.gated_slices_last:
        return not _gated(resource_slice)
    if rules.random_order:
        return True
    beside = rules.counter_slices_everywhere and bool(resource_slice.shared_counters)
    return bool(resource_slice.node_name) and not beside


def _is_plain(device: api.Device) -> bool:
    if device.allow_multiple_allocations:
        return False
    return not any(c.request_policy is not None or c.value.text.startswith("-") for c in device.capacity.values())


def _refills(device: api.Device) -> bool:
    return any(amount.value < 0 for use in device.consumes_counters for amount in use.counters.values())


def _gated(resource_slice: api.ResourceSlice) -> bool:
    return any(device.binding_conditions for device in resource_slice.devices)


def _candidates(resource_slice: api.ResourceSlice, kubernetes: api.Kubernetes) -> tuple[Candidate, ...]:
    # From 1.35 on a slice with counters has no devices (KEP-4815): what is there anyway is ignored.
    if resource_slice.shared_counters and rules_of(kubernetes).pool_wide:
        return ()
    return tuple(
        Candidate(
            api.DeviceID(resource_slice.driver, resource_slice.pool.name, d.name), d, resource_slice, _is_plain(d)
        )
        for d in resource_slice.devices
    )


def _first_of_each_name(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    first: dict[api.DeviceID, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.id, candidate)
    return tuple(first.values())


def _duplicate_name(candidates: Iterable[Candidate]) -> str | None:
    seen: set[str] = set()
    for candidate in candidates:
        if candidate.id.device in seen:
            return f"duplicate device name {candidate.id.device}"
        seen.add(candidate.id.device)
    return None


def _broken_counters(slices: Iterable[api.ResourceSlice], candidates: Iterable[Candidate]) -> str | None:
    sets: dict[str, api.CounterSet] = {}
    for counter_set in (c for s in slices for c in s.shared_counters):
        if counter_set.name in sets:
            return f"duplicate counter set name {counter_set.name}"
        sets[counter_set.name] = counter_set
    for consumed in (use for c in candidates for use in c.device.consumes_counters):
        if consumed.counter_set not in sets:
            return f"counter set {consumed.counter_set} not found"
        for name in consumed.counters:
            if name not in sets[consumed.counter_set].counters:
                return f"counter {name} not found in counter set {consumed.counter_set}"
    return None
