"""Reading the JSON of pods and claims: the few questions that controller, scheduler and kubelet all ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Json = Mapping[str, Any]
FINAL_PHASES = ("Succeeded", "Failed")


def key(obj: Json) -> tuple[str, str]:
    """Namespace and name."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def uid(obj: Json) -> str:
    """The UID."""
    return str(obj["metadata"]["uid"])


def created(obj: Json) -> str:
    """When an object was created, to sort by (a stable sort keeps the order of arrival within a second)."""
    return str(obj["metadata"].get("creationTimestamp", ""))


def is_deleted(obj: Json) -> bool:
    """Whether deletion was asked for."""
    return obj["metadata"].get("deletionTimestamp") is not None


def is_final(pod: Json) -> bool:
    """Whether a pod's containers will never run again."""
    return pod.get("status", {}).get("phase") in FINAL_PHASES


def node_name(pod: Json) -> str | None:
    """The node a pod is bound to."""
    return pod["spec"].get("nodeName") or None


def pod_path(pod: Json, subresource: str = "") -> str:
    """Path of a pod."""
    namespace, name = key(pod)
    return f"/api/v1/namespaces/{namespace}/pods/{name}" + (f"/{subresource}" if subresource else "")


def claim_names(pod: Json) -> dict[str, str | None]:
    """Names of a pod's claims by the pod's own names for them.

    None: not generated yet. A claim that the status says is not needed is left out.
    """
    generated = {
        status["name"]: status.get("resourceClaimName")
        for status in pod.get("status", {}).get("resourceClaimStatuses") or ()
    }
    names: dict[str, str | None] = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            names[entry["name"]] = entry["resourceClaimName"]
        elif entry["name"] not in generated:
            names[entry["name"]] = None
        elif generated[entry["name"]] is not None:
            names[entry["name"]] = generated[entry["name"]]
    return names


def reservation(pod: Json) -> dict[str, str]:
    """A pod as an entry of `status.reservedFor`."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid(pod)}


def is_reserved_for(claim: Json, pod: Json) -> bool:
    """Whether a claim is reserved for a pod."""
    return any(entry.get("uid") == uid(pod) for entry in claim.get("status", {}).get("reservedFor") or ())


def status_patch(pod: Json, status: Json) -> dict[str, Any]:
    """A patch of a pod's status that another pod of the same name, or a newer state, refuses (ConflictError)."""
    return {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "status": status}


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def event(about: Json, kind: str, *, reason: str, message: str, component: str, warning: bool = True) -> dict[str, Any]:
    """An event about an object, as core/v1 has it."""
    namespace, name = key(about)
    time = now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name}.", "namespace": namespace or "default"},
        "involvedObject": {
            "apiVersion": about.get("apiVersion", "v1"),
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "uid": uid(about),
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": component},
    }
