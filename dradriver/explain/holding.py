"""Who holds what would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dradriver import api
from dradriver.allocator import Finding, Holder
from dradriver.explain.explanations import HeldDevice


def name(claim: api.ResourceClaim) -> str:
    """`namespace/name`."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def users(claim: api.ResourceClaim) -> tuple[str, ...]:
    """The names of the pods a claim is reserved for, all in its namespace."""
    return tuple(consumer.name for consumer in claim.status.reserved_for if consumer.resource == "pods")


def user(claim: api.ResourceClaim) -> str | None:
    """The first pod a claim is reserved for, `namespace/name`."""
    return next((f"{claim.metadata.namespace}/{pod}" for pod in users(claim)), None)


def held(findings: Mapping[api.DeviceID, Finding]) -> tuple[HeldDevice, ...]:
    """Devices that would do but for their holders, each holder once."""
    return tuple(
        dict.fromkeys(
            HeldDevice(device, name(holder.claim), user(holder.claim))
            for device, finding in sorted(findings.items())
            for holder in finding.holders
        )
    )


def holders(findings: Iterable[Finding]) -> list[Holder]:
    """The holders behind findings, one for each claim, those in the way of the fewest devices first."""
    found = [holder for finding in findings for holder in finding.holders]
    counts = Counter(name(holder.claim) for holder in found)
    one_each = {name(holder.claim): holder for holder in found}
    return [one_each[claim] for claim, _ in sorted(counts.items(), key=lambda item: (item[1], item[0]))]
