"""What a claim's allocation means on this node, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from dradriver import api, hardware
from dradriver.node import preparing
from dradriver.node.claims import PreparedClaim
from dradriver.node.errors import PrepareError

Make = Callable[..., Any]
DRIVER = "gpu.gpupool.dev"


def _plan(
    claim: api.ResourceClaim, offers: Iterable[hardware.Offer], holders: Sequence[PreparedClaim] = ()
) -> PreparedClaim:
    by_name = {offer.device.name: offer for offer in offers}
    return preparing.plan(claim, driver=DRIVER, pool="node-a", boot="boot-1", offers=by_name, holders=holders)


def _result(device: str, request: str = "r", **more: Any) -> api.AllocatedDevice:
    return api.AllocatedDevice(**{"driver": DRIVER, "pool": "node-a"} | more, request=request, device=device)


def _config(
    *requests: str, kind: str = "GpuConfig", source: str = "FromClaim", driver: str = DRIVER, **body: Any
) -> api.AllocatedConfiguration:
    parameters = {"apiVersion": "gpu.gpupool.dev/v1alpha1", "kind": kind, **body}
    return api.AllocatedConfiguration(
        api.ConfigSource(source), api.OpaqueConfiguration(driver, parameters), requests=requests
    )


MPS = {"sharing": {"strategy": "MPS"}}
EXCLUSIVE = {"sharing": {"strategy": "Exclusive"}}


def test_devices_are_planned_with_what_a_container_needs(make_claim: Make, make_offer: Make) -> None:
    planned = _plan(make_claim("train", "gpu-1"), [make_offer("gpu-0"), make_offer("gpu-1")])
    (device,) = planned.devices
    assert (device.name, device.pool, device.uuid, device.nodes) == ("gpu-1", "node-a", "GPU-1", ("/dev/nvidia1",))
    assert planned.title == "team/train"


def test_a_subrequest_is_left_out_of_the_requests_name(make_claim: Make, make_offer: Make) -> None:
    planned = _plan(make_claim("train", _result("gpu-0", "gpu/big")), [make_offer("gpu-0")])
    assert planned.devices[0].requests == ("gpu",)


def test_results_of_other_drivers_are_theirs(make_claim: Make, make_offer: Make) -> None:
    other = _result("nic-0", driver="nic.example", pool="elsewhere")
    planned = _plan(make_claim("train", _result("gpu-0"), other), [make_offer("gpu-0")])
    assert [device.name for device in planned.devices] == ["gpu-0"]


def test_a_claim_without_allocation_is_refused(make_claim: Make) -> None:
    claim = make_claim("train")
    bare = api.ResourceClaim(claim.metadata, claim.spec)
    with pytest.raises(PrepareError, match="team/train is not allocated"):
        _plan(bare, [])


def test_a_device_of_another_pool_is_refused(make_claim: Make, make_offer: Make) -> None:
    with pytest.raises(PrepareError, match=r"gpu.gpupool.dev/node-b/gpu-0 .* this node's is node-a"):
        _plan(make_claim("train", _result("gpu-0", pool="node-b")), [make_offer("gpu-0")])


def test_a_device_that_is_not_there_is_refused(make_claim: Make, make_offer: Make) -> None:
    with pytest.raises(PrepareError, match="device gpu-7 of claim team/train is not usable"):
        _plan(make_claim("train", "gpu-7"), [make_offer("gpu-0")])


def test_a_device_without_nodes_is_refused_with_the_reason(make_claim: Make, make_offer: Make) -> None:
    offer = make_offer("gpu-0")
    broken = hardware.Offer(offer.device, offer.gpu_uuid, offer.uuid, (), "no capability file for instance 3")
    with pytest.raises(PrepareError, match="no capability file for instance 3"):
        _plan(make_claim("train", "gpu-0"), [broken])


def test_a_device_held_by_another_claim_is_refused(make_claim: Make, make_offer: Make, make_prepared: Make) -> None:
    with pytest.raises(PrepareError, match=r"gpu-0 is held by claim team/holder \(uid uid-holder\)"):
        _plan(make_claim("train", "gpu-0"), [make_offer("gpu-0")], [make_prepared("holder", "gpu-0")])


def test_its_own_devices_are_no_obstacle(make_claim: Make, make_offer: Make, make_prepared: Make) -> None:
    planned = _plan(make_claim("train", "gpu-0"), [make_offer("gpu-0")], [make_prepared("train", "gpu-0")])
    assert [device.name for device in planned.devices] == ["gpu-0"]


def test_the_same_name_with_another_uid_is_another_claim(
    make_claim: Make, make_offer: Make, make_prepared: Make
) -> None:
    with pytest.raises(PrepareError, match="held by claim team/train"):
        _plan(make_claim("train", "gpu-0", uid="new"), [make_offer("gpu-0")], [make_prepared("train", "gpu-0")])


def test_a_whole_gpu_and_an_instance_of_it_exclude_each_other(
    make_claim: Make, make_offer: Make, make_prepared: Make
) -> None:
    instance = make_offer("gpu-0-mig-1g10gb-0", uuid="MIG-a", gpu="GPU-0", kind="mig")
    with pytest.raises(PrepareError, match="of which gpu-0 takes part"):
        _plan(make_claim("part", "gpu-0-mig-1g10gb-0"), [instance], [make_prepared("whole", "gpu-0")])
    sibling = make_offer("gpu-0-mig-1g10gb-1", uuid="MIG-b", gpu="GPU-0", kind="mig")
    first = _plan(make_claim("part", "gpu-0-mig-1g10gb-0"), [instance, sibling])
    _plan(make_claim("other", "gpu-0-mig-1g10gb-1"), [instance, sibling], [first])
    with pytest.raises(PrepareError, match="gpu-0-mig-1g10gb-0 takes part"):
        _plan(make_claim("whole", "gpu-0"), [make_offer("gpu-0")], [first])


def test_admin_access_neither_minds_holders_nor_is_one(make_claim: Make, make_offer: Make, make_prepared: Make) -> None:
    offers = [make_offer("gpu-0")]
    admin = _plan(make_claim("admin", _result("gpu-0", admin_access=True)), offers, [make_prepared("train", "gpu-0")])
    _plan(make_claim("late", "gpu-0"), offers, [admin])


def test_requests_that_got_the_same_device_share_one_entry(make_claim: Make, make_offer: Make) -> None:
    claim = make_claim("admin", _result("gpu-0", "a", admin_access=True), _result("gpu-0", "b", admin_access=True))
    (device,) = _plan(claim, [make_offer("gpu-0")]).devices
    assert device.requests == ("a", "b")


def test_a_lost_device_stays_its_own_claims_but_not_across_boots(make_claim: Make, make_prepared: Make) -> None:
    claim = make_claim("train", "gpu-0")
    assert _plan(claim, [], [make_prepared("train", "gpu-0")]).devices[0].uuid == "GPU-0"
    with pytest.raises(PrepareError, match="not usable"):
        _plan(claim, [], [make_prepared("train", "gpu-0", boot="boot-0")])


def test_exclusive_parameters_and_foreign_ones_pass(make_claim: Make, make_offer: Make) -> None:
    config = (_config(**EXCLUSIVE), _config(driver="other.example", kind="Anything"), _config(kind="MigConfig", **MPS))
    assert _plan(make_claim("train", "gpu-0", config=config), [make_offer("gpu-0")]).devices


@pytest.mark.parametrize("strategy", ["MPS", "TimeSlicing"])
def test_sharing_that_is_not_there_yet_is_refused_by_its_path(
    make_claim: Make, make_offer: Make, strategy: str
) -> None:
    config = (_config(**EXCLUSIVE), _config(sharing={"strategy": strategy}))
    with pytest.raises(PrepareError, match=rf"config\[1\].*sharing.strategy: {strategy} is not supported"):
        _plan(make_claim("train", "gpu-0", config=config), [make_offer("gpu-0")])


def test_the_last_fitting_parameters_win(make_claim: Make, make_offer: Make) -> None:
    config = (_config(source="FromClass", **MPS), _config("r", **EXCLUSIVE))
    assert _plan(make_claim("train", "gpu-0", config=config), [make_offer("gpu-0")]).devices


def test_parameters_of_other_requests_are_not_looked_at(make_claim: Make, make_offer: Make) -> None:
    claim = make_claim("train", _result("gpu-0", "a/small"), config=(_config("b", **MPS), _config("a/large", **MPS)))
    assert _plan(claim, [make_offer("gpu-0")]).devices


@pytest.mark.parametrize("named", ["a", "a/small"])
def test_a_request_is_named_whole_or_by_its_alternative(make_claim: Make, make_offer: Make, named: str) -> None:
    claim = make_claim("train", _result("gpu-0", "a/small"), config=(_config(named, **MPS),))
    with pytest.raises(PrepareError, match="MPS is not supported"):
        _plan(claim, [make_offer("gpu-0")])


def test_parameters_of_a_kind_that_does_not_fit_the_named_request_are_an_error(
    make_claim: Make, make_offer: Make
) -> None:
    with pytest.raises(PrepareError, match="MigConfig does not fit device gpu-0 of request r, which is of type gpu"):
        _plan(make_claim("train", "gpu-0", config=(_config("r", kind="MigConfig"),)), [make_offer("gpu-0")])


def test_unknown_fields_in_parameters_are_an_error_with_their_path(make_claim: Make, make_offer: Make) -> None:
    with pytest.raises(PrepareError, match=r"config\[0\].opaque.parameters.*sharring"):
        _plan(make_claim("train", "gpu-0", config=(_config(sharring={}),)), [make_offer("gpu-0")])
