"""One lab with the real node plugin, in each version of the API: from a claim to what its container gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dradriver import cluster

Ask = Callable[..., Any]


@pytest.mark.parametrize("kubernetes", ["1.32", "1.33", "1.34", "1.37"])
def test_a_pod_gets_the_devices_of_its_claim(
    start_lab: Callable[..., Any], as_person: Callable[..., Any], eventually: Ask, kubernetes: str
) -> None:
    lab = start_lab("l4-4", kubernetes=kubernetes)
    prefix = cluster.discover(lab.connection).prefix
    objects = as_person(
        lab.connection, claims=f"{prefix}/namespaces/default/resourceclaims", classes=f"{prefix}/deviceclasses"
    )
    objects.add_class()
    spec = objects.wanted(2)
    if prefix.endswith("v1beta1"):
        (request,) = spec["devices"]["requests"]
        request |= request.pop("exactly")
    objects.add_claim("gpus", spec)
    pod = objects.add_pod("trainer", "gpus")
    eventually(lambda: objects.runs("trainer"))
    assert objects.allocated("gpus") == ["l4-4/gpu-0", "l4-4/gpu-1"]
    lines = lab.kubelets["l4-4"].log(pod["metadata"]["uid"], "main")
    assert sum("GPUPOOL_DEVICE_GPU_" in line for line in lines) == 2
    assert {"device node /dev/nvidia0", "device node /dev/nvidia1"} <= set(lines)
    assert "device node /dev/nvidia2" not in lines
    objects.delete_pod("trainer")
    eventually(lambda: objects.pod("trainer") is None)
    assert not list(lab.places["l4-4"].cdi.iterdir())


def test_slices_that_someone_deletes_are_published_again(
    start_lab: Callable[..., Any], as_person: Callable[..., Any], eventually: Ask
) -> None:
    lab = start_lab("l4-4")
    objects = as_person(lab.connection)
    (old,) = lab.connection.list(objects.slices)[0]
    lab.connection.delete(f"{objects.slices}/{old['metadata']['name']}")
    (new,) = eventually(lambda: lab.connection.list(objects.slices)[0])
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["spec"]["devices"] == old["spec"]["devices"]


def test_two_nodes_of_one_description_have_gpus_of_their_own(
    start_lab: Callable[..., Any], as_person: Callable[..., Any]
) -> None:
    lab = start_lab("l4-4", "l4-4")
    slices, _ = lab.connection.list(as_person(lab.connection).slices)
    devices = [device for entry in slices for device in entry["spec"]["devices"]]
    assert {entry["spec"]["nodeName"] for entry in slices} == {"l4-4", "l4-4-2"}
    assert len({device["attributes"]["uuid"]["string"] for device in devices}) == len(devices) == 8
