"""The claim controller: claims from templates, reservations that ended, deallocation (kube-controller-manager's part).

It looks at all pods and claims at every change; what it does is idempotent. Rules: pkg/controller/resourceclaim of
kubernetes: a generated claim is owned by its pod and named `<pod>-<claim>-<random>`; a claim nobody uses loses its
allocation, then its finalizer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from dradriver import api, cluster
from dradriver.lab import objects
from dradriver.lab.loops import Loop

log = logging.getLogger(__name__)

LONGEST_PREFIX = 57
"""Room for a generateName: 63 characters less six for the random part and its dash."""


class ClaimController:
    """Keeps claims in step with the pods that use them."""

    def __init__(self, connection: cluster.Connection, served: cluster.Served) -> None:
        self._connection = connection
        self._served = served
        self._loop = Loop("claim-controller", self._pass)
        wake = self._loop.wake
        self._pods = cluster.Reflector(connection, "/api/v1/pods", on_change=wake)
        self._claims = cluster.Reflector(connection, f"{served.prefix}/resourceclaims", on_change=wake)
        self._templates = cluster.Reflector(connection, f"{served.prefix}/resourceclaimtemplates", on_change=wake)
        self._made: dict[tuple[str, str], str] = {}
        """Claims made here, by pod UID and the pod's own name for them: the watches may not show them yet."""
        self._reported: set[tuple[str, str]] = set()
        """What was said already, by pod UID."""

    def start(self) -> None:
        """Start watching and working."""
        for reflector in (self._pods, self._claims, self._templates):
            reflector.start()
        self._loop.start()

    def stop(self) -> None:
        """Stop working, then watching."""
        self._loop.stop()
        for reflector in (self._pods, self._claims, self._templates):
            reflector.stop()

    def _pass(self) -> None:
        if not all(reflector.wait_synced(0) for reflector in (self._pods, self._claims, self._templates)):
            return
        pods = {objects.uid(pod): pod for pod in self._pods.items()}
        claims = self._claims.items()
        self._made = {known: name for known, name in self._made.items() if known[0] in pods}
        self._reported = {said for said in self._reported if said[0] in pods}
        for pod in sorted(pods.values(), key=objects.created):
            if not objects.is_deleted(pod) and not objects.is_final(pod):
                self._generate(pod, claims)
        for claim in claims:
            self._release(claim, pods)

    def _generate(self, pod: Mapping[str, Any], claims: list[dict[str, Any]]) -> None:
        missing = [name for name, claim in objects.claim_names(pod).items() if claim is None]
        if not missing:
            return
        made = dict(_statuses(pod))
        for entry in pod["spec"]["resourceClaims"]:
            if entry["name"] in missing:
                known = (objects.uid(pod), entry["name"])
                found = self._made.get(known) or _generated(pod, entry["name"], claims) or self._create(pod, entry)
                if found is None:
                    return
                made[entry["name"]] = self._made[known] = found
        statuses = [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
        patch = objects.status_patch(pod, {"resourceClaimStatuses": statuses})
        self._connection.merge(objects.pod_path(pod, "status"), patch)

    def _create(self, pod: Mapping[str, Any], entry: Mapping[str, Any]) -> str | None:
        """Create a claim from its template; None (and an event) where that cannot be."""
        namespace, name = objects.key(pod)
        template = self._templates.get(namespace, entry["resourceClaimTemplateName"])
        if template is None:
            self._report(pod, entry, f'resourceclaimtemplate "{entry["resourceClaimTemplateName"]}" not found')
            return None
        inner = template["spec"].get("metadata") or {}
        body = {
            "apiVersion": template["apiVersion"],
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": _prefix(name, entry["name"]),
                "namespace": namespace,
                "labels": inner.get("labels") or {},
                "annotations": {**(inner.get("annotations") or {}), api.POD_CLAIM_NAME_ANNOTATION: entry["name"]},
                "ownerReferences": [_owner(pod)],
            },
            "spec": template["spec"]["spec"],
        }
        try:
            return str(self._connection.create(self._claims_path(namespace), body)["metadata"]["name"])
        except (cluster.InvalidError, cluster.ForbiddenError) as error:
            self._report(pod, entry, str(error))
            return None

    def _report(self, pod: Mapping[str, Any], entry: Mapping[str, Any], message: str) -> None:
        text = f"PodResourceClaim {entry['name']}: {message}"
        if (objects.uid(pod), text) in self._reported:
            return
        self._reported.add((objects.uid(pod), text))
        event = objects.event(
            pod, "Pod", reason="FailedResourceClaimCreation", message=text, component="resource_claim"
        )
        self._connection.create(f"/api/v1/namespaces/{objects.key(pod)[0]}/events", event)

    def _release(self, claim: dict[str, Any], pods: Mapping[str, Mapping[str, Any]]) -> None:
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        namespace = objects.key(claim)[0]
        kept = [entry for entry in reserved if self._uses(entry, namespace, pods)]
        ended = not kept and (bool(reserved) or objects.is_deleted(claim))
        if len(kept) != len(reserved) or (ended and status.get("allocation")):
            left = {name: value for name, value in status.items() if name != "reservedFor"}
            if kept:
                left["reservedFor"] = kept
            else:
                left.pop("allocation", None)
                left.pop("devices", None)
            claim = self._connection.replace(f"{self._path(claim)}/status", {**claim, "status": left})
            log.info("released claim claim=%s/%s left=%d", *objects.key(claim), len(kept))
        if ended:
            self._unprotect(claim)
        self._delete_generated(claim, pods)

    def _uses(self, entry: Mapping[str, Any], namespace: str, pods: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether a consumer still uses a claim; one that is no pod is none of ours to judge."""
        if entry.get("resource") != "pods":
            return True
        pod = pods.get(entry["uid"])
        if pod is None:
            # Our copy of the pods may be older than this claim: only the server's answer tells that a pod is gone.
            try:
                pod = self._connection.get(f"/api/v1/namespaces/{namespace}/pods/{entry['name']}")
            except cluster.NotFoundError:
                return False
            if objects.uid(pod) != entry["uid"]:
                return False
        return not objects.is_final(pod) and not (objects.is_deleted(pod) and objects.node_name(pod) is None)

    def _unprotect(self, claim: Mapping[str, Any]) -> None:
        finalizers = claim["metadata"].get("finalizers") or []
        if api.DELETE_PROTECTION_FINALIZER not in finalizers:
            return
        left = [finalizer for finalizer in finalizers if finalizer != api.DELETE_PROTECTION_FINALIZER]
        version = claim["metadata"]["resourceVersion"]
        self._connection.merge(self._path(claim), {"metadata": {"finalizers": left, "resourceVersion": version}})

    def _delete_generated(self, claim: Mapping[str, Any], pods: Mapping[str, Mapping[str, Any]]) -> None:
        """Delete a generated claim once its pod is done; where the pod is gone, garbage collection does it."""
        if objects.is_deleted(claim) or api.POD_CLAIM_NAME_ANNOTATION not in (
            claim["metadata"].get("annotations") or {}
        ):
            return
        owners = [pods.get(owner["uid"]) for owner in claim["metadata"].get("ownerReferences") or ()]
        if any(pod is not None and objects.is_final(pod) for pod in owners):
            self._connection.delete(self._path(claim), uid=objects.uid(claim))

    def _claims_path(self, namespace: str) -> str:
        return f"{self._served.prefix}/namespaces/{namespace}/resourceclaims"

    def _path(self, claim: Mapping[str, Any]) -> str:
        namespace, name = objects.key(claim)
        return f"{self._claims_path(namespace)}/{name}"


def _statuses(pod: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    entries = pod.get("status", {}).get("resourceClaimStatuses") or ()
    return [(entry["name"], entry.get("resourceClaimName")) for entry in entries]


def _generated(pod: Mapping[str, Any], name: str, claims: list[dict[str, Any]]) -> str | None:
    """A claim made for a pod already, in a pass whose status update was lost."""
    for claim in claims:
        metadata = claim["metadata"]
        if (metadata.get("annotations") or {}).get(api.POD_CLAIM_NAME_ANNOTATION) == name and any(
            owner["uid"] == objects.uid(pod) for owner in metadata.get("ownerReferences") or ()
        ):
            return str(metadata["name"])
    return None


def _owner(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": objects.uid(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _prefix(pod: str, claim: str) -> str:
    """`<pod>-<claim>-`, both cut in proportion where they are too long together."""
    room = LONGEST_PREFIX - 2
    if len(pod) + len(claim) > room:
        keep = room * len(pod) // (len(pod) + len(claim))
        pod, claim = pod[:keep], claim[: room - keep]
    return f"{pod}-{claim}-"
