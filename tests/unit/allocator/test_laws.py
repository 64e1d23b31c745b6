"""The search against enumeration: every way to give devices, in the scheduler's order, tested by rules of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dradriver import allocator, api

DRIVER = "gpu.example.com"
CLASS = api.DeviceClass(api.ObjectMeta(name="gpu"))
TOLERATE = (api.Toleration(operator=api.TolerationOperator.EXISTS),)
COUNTERS = 4
Pick = tuple[str, api.Device]

values = st.sampled_from(["x", "y", "z"])


@st.composite
def devices(draw: st.DrawFn) -> list[api.Device]:
    made = []
    for n in range(draw(st.integers(0, 7))):
        attributes = {"kind": draw(values)} | draw(
            st.sampled_from([{}, {"domain": 1}, {"domain": 2}, {"domain": True}])
        )
        size = draw(st.sampled_from([0, 0, 1, 2]))
        uses = (api.CounterConsumption("set", {"slices": api.Quantity.parse(str(size))}),) if size else ()
        tainted = draw(st.integers(0, 5)) == 0
        taints = (api.Taint("sick", api.TaintEffect.NO_SCHEDULE),) if tainted else ()
        made.append(api.Device(f"d{n}", attributes, consumes_counters=uses, taints=taints))
    return made


@st.composite
def exactly(draw: st.DrawFn) -> api.ExactDeviceRequest:
    kind = draw(st.sampled_from(["x", "y", "z", None, None]))
    selectors = (api.Selector(f'device.attributes["{DRIVER}"].kind == "{kind}"'),) if kind else ()
    everything = draw(st.integers(0, 5)) == 0
    return api.ExactDeviceRequest(
        "gpu",
        selectors,
        "All" if everything else "ExactCount",
        0 if everything else draw(st.integers(1, 3)),
        admin_access=draw(st.integers(0, 7)) == 0,
        tolerations=draw(st.sampled_from([(), TOLERATE])),
    )


@st.composite
def requests(draw: st.DrawFn, name: str) -> api.DeviceRequest:
    if draw(st.integers(0, 3)):
        return api.DeviceRequest(name, exactly=draw(exactly()))
    options = draw(st.lists(exactly(), min_size=1, max_size=2))
    return api.DeviceRequest(
        name,
        first_available=tuple(
            api.DeviceSubRequest(f"s{n}", "gpu", o.selectors, o.allocation_mode, o.count, o.tolerations)
            for n, o in enumerate(options)
        ),
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> api.ResourceClaim:
    made = tuple(draw(requests(f"r{n}")) for n in range(draw(st.integers(1, 2))))
    covered = st.sampled_from([(), ("r0",), ("r0/s0",), ("r0", "r1")])
    constraint = st.builds(
        lambda names, kind, attribute: api.DeviceConstraint(names, **{kind: f"{DRIVER}/{attribute}"}),
        covered,
        st.sampled_from(["match_attribute", "match_attribute", "distinct_attribute"]),
        st.sampled_from(["domain", "kind"]),
    )
    constraints = tuple(draw(st.lists(constraint, max_size=2)))
    return api.ResourceClaim(api.ObjectMeta(name=name), api.ClaimSpec(made, constraints))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[api.Device], set[str], list[api.ResourceClaim]]:
    there = draw(devices())
    held = {d.name for d in there if draw(st.integers(0, 4)) == 0}
    return there, held, [draw(claims(f"c{n}")) for n in range(draw(st.integers(1, 2)))]


def index(there: list[api.Device], held: set[str]) -> allocator.Cluster:
    pool = api.Pool("n1", 1, 2)
    amounts = {"slices": api.Quantity.parse(str(COUNTERS))}
    results = tuple(api.AllocatedDevice("r", DRIVER, "n1", name) for name in sorted(held))
    holder = api.ResourceClaim(api.ObjectMeta(name="h"), api.ClaimSpec(), api.ClaimStatus(api.Allocation(results)))
    return allocator.Cluster(
        slices=[
            api.ResourceSlice(DRIVER, pool, api.ObjectMeta(name="a"), "n1", devices=tuple(there)),
            api.ResourceSlice(
                DRIVER, pool, api.ObjectMeta(name="b"), "n1", shared_counters=(api.CounterSet("set", amounts),)
            ),
        ],
        classes=[CLASS],
        claims=[holder],
        nodes=[],
        kubernetes=api.Kubernetes.release("1.37"),
    )


def selected(request: Any, there: list[api.Device]) -> list[api.Device]:
    kinds = [s.expression.rpartition(" == ")[2].strip('"') for s in request.selectors]
    return [d for d in there if all(d.attributes["kind"] == kind for kind in kinds)]


def ways(request: api.DeviceRequest, there: list[api.Device]) -> Iterator[tuple[str, Any, tuple[api.Device, ...]]]:
    """Every way to meet one request, in the order in which the scheduler comes to them."""
    named = (
        [(request.name, request.exactly)]
        if request.exactly
        else [(f"{request.name}/{s.name}", s) for s in request.first_available]
    )
    for name, spec in named:
        candidates = selected(spec, there)
        count = len(candidates) if spec.allocation_mode == "All" else spec.count
        for chosen in combinations(candidates, count) if count else ():
            yield name, spec, chosen


def holds(constraint: api.DeviceConstraint, picks: list[Pick]) -> bool:
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    covered = [
        device.attributes.get(name.rpartition("/")[2])
        for request, device in picks
        if not constraint.requests or request in constraint.requests or request.partition("/")[0] in constraint.requests
    ]
    keys = {(type(value), value) for value in covered}
    if None in covered:
        return False
    return len(keys) <= 1 if constraint.match_attribute else len(keys) == len(covered)


def sound(chosen: Any, there: list[api.Device], held: set[str], pod: list[api.ResourceClaim]) -> bool:
    """Whether a choice of devices for all requests of all claims breaks no rule."""
    spoken_for = set(held)
    left = COUNTERS - sum(drawn(d) for d in there if d.name in held)
    for claim, parts in zip(pod, chosen, strict=True):
        own: set[str] = set()
        for _, spec, given_ in parts:
            for device in given_:
                admin = getattr(spec, "admin_access", False)
                if device.name in (own if admin else spoken_for | own):
                    return False
                own.add(device.name)
                left -= drawn(device)
                if (device.taints and not spec.tolerations) or (drawn(device) and left < 0):
                    return False
        # A device taken with admin access is taken for the rest of this pod, though others may hold it.
        spoken_for |= own
        picks = [(name, device) for name, _, given_ in parts for device in given_]
        if not all(holds(constraint, picks) for constraint in claim.spec.constraints):
            return False
    return True


def drawn(device: api.Device) -> int:
    return sum(int(a.value) for use in device.consumes_counters for a in use.counters.values())


def first_solution(there: list[api.Device], held: set[str], pod: list[api.ResourceClaim]) -> list[list[str]] | None:
    per_claim = [[list(ways(r, there)) for r in claim.spec.requests] for claim in pod]
    for chosen in product(*(product(*parts) for parts in per_claim)):
        if sound(chosen, there, held, pod):
            return [[f"{name} {d.name}" for name, _, given_ in parts for d in given_] for parts in chosen]
    return None


def given_devices(outcome: allocator.Allocated) -> list[list[str]]:
    return [[f"{r.request} {r.device}" for r in allocation.results] for allocation in outcome.allocations]


@given(cases())
def test_the_answer_is_the_first_of_all_solutions_in_the_schedulers_order(case: Any) -> None:
    there, held, pod = case
    outcome = allocator.allocate(index(there, held), api.Node("n1"), pod)
    match outcome:
        case allocator.Allocated():
            assert given_devices(outcome) == first_solution(there, held, pod)
        case allocator.Refused():
            assert first_solution(there, held, pod) is None
        case _:
            # The one error in these cases: a constraint refuses one of all devices.
            assert isinstance(outcome, allocator.Failed)
            assert outcome.message.endswith("because a claim constraint would not be satisfied")


@given(cases())
def test_answers_do_not_depend_on_what_was_asked_before(case: Any) -> None:
    there, held, pod = case
    cluster = index(there, held)
    first = allocator.allocate(cluster, api.Node("n1"), pod)
    allocator.allocate(cluster.emptied(), api.Node("n1"), pod)
    assert (
        allocator.allocate(cluster, api.Node("n1"), pod)
        == first
        == allocator.allocate(index(there, held), api.Node("n1"), pod)
    )


@given(cases())
def test_devices_that_are_given_out_fit_by_themselves(case: Any) -> None:
    there, held, pod = case
    cluster = index(there, held)
    outcome = allocator.allocate(cluster, api.Node("n1"), pod[:1])
    findings = allocator.assess(cluster, pod[0], [api.Node("n1")]).requests
    if isinstance(outcome, allocator.Allocated):
        for result in outcome.allocations[0].results:
            assert findings[result.request][result.id].reason is allocator.Reason.FITS
    if isinstance(outcome, allocator.Refused) and outcome.shortfall is not None:
        assert len(outcome.shortfall.found) <= len(cluster.devices)


@given(cases())
def test_freeing_devices_never_makes_a_claim_stop_fitting(case: Any) -> None:
    there, held, pod = case
    cluster = index(there, held)
    if isinstance(allocator.allocate(cluster, api.Node("n1"), pod), allocator.Allocated):
        assert not isinstance(allocator.allocate(cluster.emptied(), api.Node("n1"), pod), allocator.Refused)


@pytest.mark.parametrize("size", [4, 6])
def test_eight_of_two_groups_of_identical_devices_are_refused_at_once(size: int) -> None:
    there = [api.Device(f"d{n:02}", {"kind": "x", "domain": n % 2}) for n in range(size * 2)]
    request = api.DeviceRequest("r", exactly=api.ExactDeviceRequest("gpu", count=8))
    constraint = api.DeviceConstraint(match_attribute=f"{DRIVER}/domain")
    claim = api.ResourceClaim(api.ObjectMeta(name="c"), api.ClaimSpec((request,), (constraint,)))
    outcome = allocator.allocate(index(there, set()), api.Node("n1"), [claim], budget=200)
    assert isinstance(outcome, allocator.Refused)
    assert outcome.shortfall is not None
    assert (len(outcome.shortfall.found), outcome.shortfall.wanted, outcome.shortfall.constraint) == (size, 8, 0)
