"""Which of upstream's allocators answers, and the rules in which they differ.

From 1.34 on dynamic-resource-allocation holds three: the first of stable, incubating and experimental that supports
every feature that the gates enable is taken (`structured/allocator.go`; the features are kube-scheduler's
AllocatorFeatures). Each rule below names what that allocator does in the newest patch release of its minor (1.32.13,
1.33.13, 1.34.13, 1.35.10, 1.36.6, 1.37.2); those that are plainly bugs are here because a pod meets them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from dradriver import api


class Variant(StrEnum):
    """One of upstream's allocators; up to 1.33 there is only one."""

    ONLY = "only"
    STABLE = "stable"
    INCUBATING = "incubating"
    EXPERIMENTAL = "experimental"


class CounterScope(StrEnum):
    """What has a set of counters of its own.

    DEVICES: the slice they stand in, computed anew for each device from those held and taken (1.33). POOL_NAMES: pools
    of one name share what the first of them offers, whatever their drivers (kubernetes issue 140434).
    """

    NONE = "none"
    DEVICES = "devices"
    SLICES = "slices"
    POOL_NAMES = "poolNames"
    POOLS = "pools"


class Distinct(StrEnum):
    """What distinctAttribute does.

    UNKNOWN: such a constraint is an error. NEVER_EQUAL: values are compared by address, so no two devices have the
    same. ONE_PER_REQUEST: one value is remembered for each request, and forgotten with any of its devices. ALL: the
    value of every device is remembered.
    """

    UNKNOWN = "unknown"
    NEVER_EQUAL = "neverEqual"
    ONE_PER_REQUEST = "onePerRequest"
    ALL = "all"


class BrokenPools(StrEnum):
    """What a pool with two devices of one name does to a search, where not all devices are wanted.

    ON_SELECTION: an error once a device of it is selected (1.32). ON_SIGHT: an error once the search comes to the pool.
    SKIPPED: it is passed over.
    """

    ON_SELECTION = "onSelection"
    ON_SIGHT = "onSight"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Rules:
    """How one allocator under one set of gates behaves; the defaults are those of 1.37.

    Attributes:
        variant: whose behaviour this is.
        random_order: pools are tried in random order; ours is then the sorted one.
        permutes: devices of one request are tried in every order instead of as combinations (kubernetes pull request
            133678): of a shared device one request can so get several shares.
        gated_last: pools with binding conditions are tried last (KEP-5007).
        gated_slices_last: within a pool slices with binding conditions are tried last.
        pool_wide: completeness is judged over the whole pool, not over the slices for one node (issue 134466).
        counter_slices_everywhere: slices with counters count as being for every node.
        counter_slices_need_gate: without DRAPartitionableDevices slices with counters are ignored.
        broken_pools: what an invalid pool does.
        says_invalid: a refusal tells that there are invalid pools.
        counters: the scope of counters.
        free_without_gate: devices that consume counters are given out unchecked without DRAPartitionableDevices.
        counters_leak: a device that a taint or a constraint refuses keeps its counters (issue 140431).
        every_effect_blocks: a taint blocks whatever its effect.
        admin_unchecked: admin access may take one device several times, and does not keep others from it.
        all_of_nothing: asking for all devices where there are none succeeds (issue 129560).
        all_gives_up: a device that is wanted as one of all but is in use ends the whole search.
        all_keeps: what was taken as one of all stays taken when the search turns back.
        all_forgets_option: after the first of all devices a subrequest goes on as the first subrequest of its request
            (issue 137347).
        judged_as_before: selectors of all devices for a subrequest are remembered as those of the subrequest before it.
        limit_skips: a request that exceeds the limit of a claim ends the tries of earlier requests of the claim.
        limit_checked: the limit is checked during the search.
        names_remainder: the message about too many devices names the request.
        distinct: what distinctAttribute does.
        lists: match and distinct work on lists, intersecting and disjoint (KEP-5491).
        lists_reach_constraints: kube-scheduler hands the gate for lists on to the allocator.
        refuses_capacity: asking for capacity without DRAConsumableCapacity is an error; otherwise it asks for nothing.
        names_subrequest: that error names the subrequest.
        conditions: devices with binding conditions may be had; False leaves them alone, None does not know the field.
        binds_to_node: `bindsToNode` ties the claim to the node.
        tolerations_kept: results repeat the tolerations of their request.
        whole_config: a claim's configuration is written whole, whichever requests it names.
        configured_once: a claim's configuration is written once, and without names where it covers all requests
            (pull requests 139730 and 139731); otherwise once for each request that it names.
        consumable: devices may be shared by capacity (KEP-5075).
        tells_sharing: selectors see which devices may be shared; otherwise none may, as far as they know.
        fractional: ranges of capacity are computed in thousandths (gate DRAFractionalCapacityRange).
        capacity_strict: an amount that is negative or cannot be represented is an error.
        capacity_of_neighbour: a second check looks at the device at the position of the result (1.34).
        capacity_leaks: a device that the second check refuses stays in constraints, counters and in use.
        shares_charge_once: further shares of a device do not consume its counters again.
        shares_known_by_capacity: a share counts as held only where it consumes capacity (up to 1.36).
        shares_hold_counters: the counters of devices held in shares count as consumed.
        shares_keep_counters: shares given back keep their counters.
        all_needs_room: of all devices those without room left are not wanted, instead of failing the request.
        groups: compatibility groups of counters are obeyed, or their slices ignored (KEP-5963).
        optional_operations: devices may skip node operations, where the node declares that it can (KEP-5945); None
            where slices that ask for it are taken like any other.
        device_named: a message about a selector names the device.
    """

    variant: Variant
    random_order: bool = False
    permutes: bool = False
    gated_last: bool = True
    gated_slices_last: bool = False
    pool_wide: bool = True
    counter_slices_everywhere: bool = False
    counter_slices_need_gate: bool = True
    broken_pools: BrokenPools = BrokenPools.SKIPPED
    says_invalid: bool = True
    counters: CounterScope = CounterScope.POOLS
    free_without_gate: bool = False
    counters_leak: bool = False
    every_effect_blocks: bool = False
    admin_unchecked: bool = False
    all_of_nothing: bool = False
    all_gives_up: bool = False
    all_keeps: bool = False
    all_forgets_option: bool = False
    judged_as_before: bool = False
    limit_skips: bool = True
    limit_checked: bool = True
    names_remainder: bool = True
    distinct: Distinct = Distinct.ALL
    lists: bool = False
    lists_reach_constraints: bool = True
    refuses_capacity: bool = True
    names_subrequest: bool = True
    conditions: bool | None = False
    binds_to_node: bool = True
    tolerations_kept: bool = True
    whole_config: bool = False
    configured_once: bool = True
    consumable: bool = False
    tells_sharing: bool = True
    fractional: bool = False
    capacity_strict: bool = True
    capacity_of_neighbour: bool = False
    capacity_leaks: bool = False
    shares_charge_once: bool = True
    shares_known_by_capacity: bool = False
    shares_hold_counters: bool = True
    shares_keep_counters: bool = False
    all_needs_room: bool = False
    groups: bool | None = None
    optional_operations: bool | None = None
    device_named: bool = True


_EVER = frozenset({"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints"})
_CONDITIONS = frozenset({"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"})
_SHARING = frozenset({"DRAConsumableCapacity"})
_NEWEST = frozenset(
    {
        "DRADeviceCompatibilityGroups",
        "DRADerivedAttributes",
        "DRAListTypeAttributes",
        "DRAOptionalNodeOperations",
    }
)
_ONE_ALLOCATOR = 33
"""Up to this minor there is one allocator."""


@lru_cache(maxsize=256)
def rules_of(kubernetes: api.Kubernetes) -> Rules:
    """The rules of the allocator that a version runs under its gates."""
    enabled = kubernetes.enabled
    rules = _of_minor(kubernetes.minor, _variant(kubernetes))
    return replace(
        rules,
        consumable=enabled("DRAConsumableCapacity"),
        conditions=rules.conditions if rules.conditions is None else all(map(enabled, _CONDITIONS)),
        fractional=enabled("DRAFractionalCapacityRange"),
        lists=rules.lists_reach_constraints and enabled("DRAListTypeAttributes"),
        groups=enabled("DRADeviceCompatibilityGroups") if rules.groups is not None else None,
        optional_operations=enabled("DRAOptionalNodeOperations") if rules.optional_operations is not None else None,
    )


def _variant(kubernetes: api.Kubernetes) -> Variant:
    minor = kubernetes.minor
    if minor <= _ONE_ALLOCATOR:
        return Variant.ONLY
    on = {gate for gate in _EVER | _SHARING | _CONDITIONS if kubernetes.enabled(gate)}
    # From 1.35 on both gates make one feature, before each is one.
    if minor > _ONE_ALLOCATOR + 1 and not on >= _CONDITIONS:
        on -= _CONDITIONS
    early = minor <= 35  # noqa: PLR2004 - from 1.36 on each variant supports what the next one did before
    stable, incubating = (frozenset[str](), _EVER) if early else (_EVER, _EVER | _CONDITIONS | _SHARING)
    if any(kubernetes.enabled(gate) for gate in _NEWEST) and _knows_newest(minor):
        return Variant.EXPERIMENTAL
    if on <= stable and not kubernetes.enabled("DRAFractionalCapacityRange"):
        return Variant.STABLE
    return Variant.INCUBATING if on <= incubating else Variant.EXPERIMENTAL


def _knows_newest(minor: int) -> bool:
    """Whether kube-scheduler hands the newest gates on: 1.36 has that for lists, and does not (seen in 1.36.3)."""
    return minor >= 37  # noqa: PLR2004


def _of_minor(minor: int, variant: Variant) -> Rules:
    experimental, stable = variant is Variant.EXPERIMENTAL, variant is Variant.STABLE
    rules = Rules(variant, groups=False, optional_operations=False if experimental else None)
    if stable:
        rules = replace(
            rules,
            random_order=True,
            permutes=True,
            gated_last=False,
            counter_slices_everywhere=True,
            distinct=Distinct.UNKNOWN,
            refuses_capacity=False,
            tells_sharing=False,
            binds_to_node=False,
        )
    if minor <= 36:  # noqa: PLR2004 - each step takes back what the next minor brought
        rules = replace(
            rules,
            counter_slices_everywhere=True,
            distinct=rules.distinct if stable else Distinct.ONE_PER_REQUEST,
            lists_reach_constraints=False,
            configured_once=False,
            capacity_strict=False,
            shares_known_by_capacity=True,
            all_needs_room=True,
            groups=None,
            optional_operations=None,
            device_named=False,
        )
    if minor <= 35:  # noqa: PLR2004
        rules = replace(
            rules,
            random_order=True,
            permutes=True,
            gated_last=experimental,
            gated_slices_last=experimental,
            counter_slices_everywhere=not stable,
            counter_slices_need_gate=not stable,
            counters=CounterScope.SLICES if stable else CounterScope.POOL_NAMES,
            counters_leak=True,
            all_forgets_option=True,
            judged_as_before=True,
            limit_skips=not stable,
            distinct=Distinct.ONE_PER_REQUEST if experimental else Distinct.UNKNOWN,
            refuses_capacity=experimental,
            tells_sharing=experimental,
            binds_to_node=experimental,
            tolerations_kept=not stable,
            capacity_leaks=True,
            shares_hold_counters=False,
            shares_keep_counters=True,
        )
    if minor <= 34:  # noqa: PLR2004
        rules = replace(
            rules,
            pool_wide=False,
            counter_slices_everywhere=False,
            counter_slices_need_gate=False,
            broken_pools=BrokenPools.ON_SIGHT,
            says_invalid=False,
            counters=CounterScope.SLICES,
            every_effect_blocks=True,
            distinct=Distinct.NEVER_EQUAL if experimental else Distinct.UNKNOWN,
            names_subrequest=False,
            tolerations_kept=False,
            capacity_of_neighbour=True,
            shares_charge_once=False,
        )
    if minor <= _ONE_ALLOCATOR:
        rules = replace(
            rules,
            counter_slices_need_gate=True,
            counters=CounterScope.DEVICES,
            free_without_gate=True,
            counters_leak=False,
            admin_unchecked=True,
            all_keeps=True,
            limit_skips=False,
            names_remainder=False,
            conditions=None,
        )
    if minor < _ONE_ALLOCATOR:
        rules = replace(
            rules,
            counter_slices_need_gate=False,
            broken_pools=BrokenPools.ON_SELECTION,
            counters=CounterScope.NONE,
            all_of_nothing=True,
            all_gives_up=True,
            limit_checked=False,
            whole_config=True,
        )
    return rules
