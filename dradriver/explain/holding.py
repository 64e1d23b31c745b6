"""Who holds what a claim would need, and who uses a claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dradriver import api
from dradriver.allocator import Finding, Holder
from dradriver.explain.explanations import HeldDevice
from dradriver.explain.situations import Situation


def name(claim: api.ResourceClaim) -> str:
    """`namespace/name`."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def pods_of(situation: Situation, claim: api.ResourceClaim) -> list[Mapping[str, Any]]:
    """Pods that use a claim: it is reserved for them, or they name it."""
    reserved = {consumer.uid for consumer in claim.status.reserved_for if consumer.resource == "pods"}
    return [
        pod
        for pod in situation.pods
        if pod["metadata"].get("uid") in reserved
        or (
            pod["metadata"].get("namespace") == claim.metadata.namespace
            and claim.metadata.name in claim_names(pod).values()
        )
    ]


def claim_names(pod: Mapping[str, Any]) -> dict[str, str | None]:
    """The claims of a pod by the pod's own names for them; None while one is not generated."""
    generated = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    return {
        entry["name"]: entry.get("resourceClaimName") or generated.get(entry["name"])
        for entry in (pod.get("spec") or {}).get("resourceClaims") or ()
    }


def user(claim: api.ResourceClaim) -> str | None:
    """The first pod a claim is reserved for, `namespace/name`."""
    for consumer in claim.status.reserved_for:
        if consumer.resource == "pods":
            return f"{claim.metadata.namespace}/{consumer.name}"
    return None


def held(findings: Mapping[api.DeviceID, Finding]) -> tuple[HeldDevice, ...]:
    """Devices that would do but for their holders."""
    return tuple(
        HeldDevice(device, name(holder.claim), user(holder.claim))
        for device, finding in sorted(findings.items())
        for holder in finding.holders
    )


def holders(findings: Iterable[Finding]) -> list[Holder]:
    """The holders behind findings, one for each claim, those of most devices last."""
    by_claim: dict[str, list[Holder]] = {}
    for finding in findings:
        for holder in finding.holders:
            by_claim.setdefault(str(holder.claim.metadata.uid) or name(holder.claim), []).append(holder)
    return [entries[0] for entries in sorted(by_claim.values(), key=len)]
