"""Claims made from templates, released, deallocated and deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dradriver import api

Ask = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("controller")


def allocate(objects: Any, claim: str, *pods: dict[str, Any]) -> None:
    """What a scheduler writes."""
    finalizers = {"metadata": {"finalizers": [api.DELETE_PROTECTION_FINALIZER]}}
    objects.connection.merge(f"{objects.claims}/{claim}", finalizers)
    result = {"request": "r0", "driver": "gpu.gpupool.dev", "pool": "node-a", "device": "gpu-0"}
    reserved = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
    objects.connection.merge(f"{objects.claims}/{claim}/status", {"status": status})


def generated(objects: Any, pod: str) -> list[str]:
    statuses = ((objects.pod(pod) or {}).get("status") or {}).get("resourceClaimStatuses") or ()
    return [status["resourceClaimName"] for status in statuses]


def test_a_claim_is_made_from_each_template_and_belongs_to_its_pod(objects: Any, eventually: Ask) -> None:
    objects.add_template("one")
    objects.add_template("two")
    pod = objects.add_pod("trainer", templates=["one", "two"])
    names = eventually(lambda: generated(objects, "trainer"))
    assert [name[:-5] for name in names] == ["trainer-one-", "trainer-two-"]
    metadata = objects.claim(names[0])["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert metadata["annotations"] == {api.POD_CLAIM_NAME_ANNOTATION: "one"}
    assert len(objects.connection.list(objects.claims)[0]) == 2


def test_one_claim_is_made_for_each_of_many_pods(objects: Any, eventually: Ask) -> None:
    objects.add_template("gpu")
    for number in range(20):
        objects.add_pod(f"pod-{number}", templates=["gpu"])
    eventually(lambda: all(generated(objects, f"pod-{number}") for number in range(20)))
    assert len(objects.connection.list(objects.claims)[0]) == 20


def test_names_of_63_characters_are_cut_so_that_the_claims_name_fits(objects: Any, eventually: Ask) -> None:
    objects.add_template("t" * 63)
    objects.add_pod("p" * 63, templates=["t" * 63])
    (name,) = eventually(lambda: generated(objects, "p" * 63))
    assert len(name) <= 63
    assert name.startswith("ppp")
    assert "-ttt" in name


def test_a_missing_template_is_said_once_and_waited_for(objects: Any, eventually: Ask) -> None:
    objects.add_pod("trainer", templates=["gpu"])
    eventually(lambda: objects.events("trainer", "FailedResourceClaimCreation"))
    objects.add_pod("other")  # gives the controller another occasion to say it
    objects.add_template("gpu")
    eventually(lambda: generated(objects, "trainer"))
    (message,) = objects.events("trainer", "FailedResourceClaimCreation")
    assert message == 'PodResourceClaim gpu: resourceclaimtemplate "gpu" not found'


def test_a_claim_is_deallocated_when_its_last_pod_is_gone(objects: Any, eventually: Ask) -> None:
    objects.add_claim("shared")
    pods = [objects.add_pod(name, "shared") for name in ("first", "second")]
    allocate(objects, "shared", *pods)
    objects.delete_pod("first")
    eventually(lambda: len(objects.claim("shared")["status"]["reservedFor"]) == 1)
    assert objects.allocated("shared")
    objects.delete_pod("second")
    eventually(lambda: not objects.allocated("shared"))
    eventually(lambda: not objects.claim("shared")["metadata"].get("finalizers"))


def test_a_pod_that_has_ended_gives_up_its_claim(objects: Any, eventually: Ask) -> None:
    objects.add_claim("own")
    allocate(objects, "own", objects.add_pod("job", "own", nodeName="node-a"))
    objects.finish("job")
    eventually(lambda: not objects.allocated("own"))


def test_a_pod_of_the_same_name_does_not_keep_a_claim_reserved(objects: Any, eventually: Ask) -> None:
    objects.add_claim("own")
    old = objects.add_pod("job", "own")
    objects.delete_pod("job", force=True)
    objects.add_pod("job", "own")
    allocate(objects, "own", old)
    eventually(lambda: not objects.allocated("own"))


def test_a_generated_claim_is_deleted_when_its_pod_has_ended(objects: Any, eventually: Ask) -> None:
    objects.add_template("gpu")
    pod = objects.add_pod("job", templates=["gpu"], nodeName="node-a")
    (name,) = eventually(lambda: generated(objects, "job"))
    allocate(objects, name, pod)
    objects.finish("job")
    eventually(lambda: objects.claim(name) is None)


def test_a_generated_claim_goes_with_its_pod(objects: Any, eventually: Ask) -> None:
    objects.add_template("gpu")
    pod = objects.add_pod("job", templates=["gpu"])
    (name,) = eventually(lambda: generated(objects, "job"))
    allocate(objects, name, pod)
    objects.delete_pod("job")
    eventually(lambda: objects.claim(name) is None)


def test_a_claim_deleted_while_it_is_used_stays_until_its_pod_is_gone(objects: Any, eventually: Ask) -> None:
    objects.add_claim("own")
    allocate(objects, "own", objects.add_pod("job", "own"))
    objects.connection.delete(f"{objects.claims}/own")
    objects.add_claim("other")
    allocate(objects, "other", objects.add_pod("short", "other"))
    objects.delete_pod("short")
    eventually(lambda: not objects.allocated("other"))  # the controller has looked at everything since
    assert objects.allocated("own")
    objects.delete_pod("job")
    eventually(lambda: objects.claim("own") is None)


def test_an_allocation_that_nobody_reserved_is_left_alone(objects: Any, eventually: Ask) -> None:
    objects.add_claim("idle")
    allocate(objects, "idle")
    objects.add_claim("other")
    allocate(objects, "other", objects.add_pod("short", "other"))
    objects.delete_pod("short")
    eventually(lambda: not objects.allocated("other"))
    assert objects.allocated("idle")
