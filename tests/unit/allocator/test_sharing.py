"""Devices that many claims may have, each a part of their capacity."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import allocator, api

Build = Any

Q = api.Quantity.parse


def policy(**fields: Any) -> api.RequestPolicy:
    return api.RequestPolicy(**fields)


def shared(build: Build, value: str = "80Gi", request_policy: api.RequestPolicy | None = None) -> api.Device:
    capacity = {"memory": api.Capacity(Q(value), request_policy)}
    return build.device("gpu", capacity=capacity, allow_multiple_allocations=True)


def asking(build: Build, amount: str | None, **fields: Any) -> api.ResourceClaim:
    capacity = {"memory": Q(amount)} if amount else {}
    return build.claim(build.request("r", capacity=capacity, **fields))


def taken(outcome: allocator.Outcome) -> list[str]:
    assert isinstance(outcome, allocator.Allocated), outcome
    return [str(r.consumed_capacity["memory"]) for a in outcome.allocations for r in a.results]


STEPS = policy(default=Q("10Gi"), valid_range=api.ValidRange(Q("10Gi"), Q("40Gi"), Q("5Gi")))
VALUES = policy(default=Q("10Gi"), valid_values=(Q("10Gi"), Q("20Gi"), Q("40Gi")))


@pytest.mark.parametrize(
    ("request_policy", "asked", "given"),
    [
        (None, None, "80Gi"),
        (None, "12Gi", "12Gi"),
        (STEPS, None, "10Gi"),
        (STEPS, "1Gi", "10Gi"),
        (STEPS, "11Gi", "15Gi"),
        (STEPS, "40Gi", "40Gi"),
        (VALUES, None, "10Gi"),
        (VALUES, "11Gi", "20Gi"),
    ],
)
def test_a_request_is_completed_and_rounded_by_the_policy_of_the_capacity(
    build: Build, request_policy: api.RequestPolicy | None, asked: str | None, given: str
) -> None:
    cluster = build.cluster(build.slice("n1", [shared(build, request_policy=request_policy)]))
    assert taken(build.allocate(cluster, asking(build, asked))) == [given]


@pytest.mark.parametrize(("request_policy", "asked"), [(STEPS, "41Gi"), (VALUES, "41Gi"), (None, "81Gi")])
def test_more_than_policy_or_device_allow_is_refused(
    build: Build, request_policy: api.RequestPolicy | None, asked: str
) -> None:
    cluster = build.cluster(build.slice("n1", [shared(build, request_policy=request_policy)]))
    assert isinstance(build.allocate(cluster, asking(build, asked)), allocator.Refused)


def test_claims_share_a_device_until_it_is_full(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", [shared(build)]))
    two = (asking(build, "40Gi"), asking(build, "40Gi"))
    assert taken(build.allocate(cluster, *two)) == ["40Gi", "40Gi"]
    assert isinstance(build.allocate(cluster, *two, asking(build, "1Gi")), allocator.Refused)


def test_every_share_has_an_id_of_its_own(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", [shared(build)]))
    claim = build.claim(*(build.request(name, capacity={"memory": Q("1Gi")}) for name in "ab"))
    outcome = build.allocate(cluster, claim)
    assert isinstance(outcome, allocator.Allocated)
    assert len({r.share_id for a in outcome.allocations for r in a.results}) == 2


def test_a_fraction_of_a_step_is_computed_in_thousandths_only_with_its_gate(build: Build) -> None:
    fine = policy(default=Q("500m"), valid_range=api.ValidRange(Q("500m"), Q("10"), Q("250m")))
    devices = [shared(build, "10", fine)]
    with_gate = build.cluster(build.slice("n1", devices))
    assert taken(build.allocate(with_gate, asking(build, "600m"))) == ["750m"]
    without = build.cluster(build.slice("n1", devices), version="1.36")
    assert taken(build.allocate(without, asking(build, "600m"))) == ["1"]


def test_an_amount_that_steps_cannot_reach_is_an_error_from_1_37_on(build: Build) -> None:
    steps = policy(default=Q("1"), valid_range=api.ValidRange(Q("1"), None, Q("3")))
    cluster = build.cluster(build.slice("n1", [shared(build, "10", steps)]))
    outcome = build.allocate(cluster, asking(build, "10E"))
    assert isinstance(outcome, allocator.Failed)
    assert "cannot be represented" in outcome.message


def test_without_the_gate_a_device_goes_to_one_claim(build: Build) -> None:
    gates = {"DRAConsumableCapacity": False}
    cluster = build.cluster(build.slice("n1", [shared(build)]), gates=gates)
    assert isinstance(build.allocate(cluster, asking(build, None), asking(build, None)), allocator.Refused)
