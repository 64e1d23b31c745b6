"""What an explanation says: frozen values whose field names are the JSON contract of `-o json`.

Text made from them may change at any time; these names may not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dradriver import api
from dradriver.allocator import Reason
from dradriver.cel import Span
from dradriver.explain.codes import Code


class Verdict(StrEnum):
    """The one word that answers "why": the first that holds, in this order."""

    ALLOCATED = "allocated"
    UNKNOWN = "unknown"
    FITS = "fits"
    BLOCKED = "blocked"
    PENDING = "pending"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The devices that got exactly this far, named `driver/pool/device`; `detail` is a half sentence for people."""

    reason: Reason
    devices: tuple[api.DeviceID, ...]
    detail: str = ""

    @property
    def count(self) -> int:
        """How many devices these are."""
        return len(self.devices)


@dataclass(frozen=True, slots=True)
class RequestBuckets:
    """Every device once more, as one request sees it (`request` or `request/subrequest`)."""

    name: str
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A value that a failing part of an expression met; `value` is None where devices lack the attribute."""

    value: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Expression:
    """A selector that left devices behind: where it is written, the part that failed for most, the values it met.

    `where` is a JSON path in the API version the claim was read in, or `class NAME` with the path into that class.
    """

    where: str
    text: str
    failing: Span
    seen: tuple[Seen, ...]
    path: str = ""
    """What the failing part reads, as written."""
    error: str = ""
    """The message where the part did not fail but err: the scheduler aborts the pod then."""
    devices: int = 0
    """How many devices that part left behind."""
    missing: str = ""
    """The attribute or capacity that is not there, where the part errs for that reason."""


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device that would do but is held: by which claim, used by which pod, both `namespace/name`."""

    device: api.DeviceID
    claim: str
    pod: str | None = None


@dataclass(frozen=True, slots=True)
class Correction:
    """A change that makes the claim fit, and was tried: `path` is the field to change, or the command to run."""

    change: str
    path: str
    verified: bool = True
    changed: api.ResourceClaim | None = field(default=None, repr=False)
    """The claim with the change made, where the change is one to the claim."""
    ended: tuple[str, ...] = ()
    """The claims to be ended, `namespace/name`, where the change is to end some."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the answer rests on."""

    resource_version: str = ""
    age_seconds: float | None = None
    scheduler_message: str | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimExplanation:
    """Why one claim got what it got, or did not, and what would change that.

    `headline` follows `<verdict>: claim <name>`; `because` are the sentences that bear it out.
    """

    namespace: str
    name: str
    verdict: Verdict
    code: Code | None
    headline: str
    because: tuple[str, ...] = ()
    devices: tuple[Bucket, ...] = ()
    requests: tuple[RequestBuckets, ...] = ()
    expressions: tuple[Expression, ...] = ()
    holders: tuple[HeldDevice, ...] = ()
    corrections: tuple[Correction, ...] = ()
    notes: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    allocation: api.Allocation | None = None
    pods: tuple[str, ...] = ()
    """Pods that use the claim, `namespace/name`."""

    @property
    def summary(self) -> str:
        """The whole answer in one line."""
        return f"{self.headline}: {'; '.join(self.because)}" if self.because else self.headline

    @property
    def total(self) -> int:
        """How many devices there are; the buckets' counts add up to it."""
        return sum(bucket.count for bucket in self.devices)


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """The claims of one pod, judged together."""

    namespace: str
    name: str
    summary: str
    claims: tuple[ClaimExplanation, ...]
    notes: tuple[str, ...] = ()


API_VERSION = "gpupool.dev/v1alpha1"


def as_json(explanation: ClaimExplanation | PodExplanation) -> dict[str, Any]:
    """The versioned object of `-o json`; lists are always present."""
    if isinstance(explanation, PodExplanation):
        return _pod(explanation)
    return {"apiVersion": API_VERSION, "kind": "ClaimExplanation", **_claim(explanation)}


def _pod(explanation: PodExplanation) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "PodExplanation",
        "metadata": {"namespace": explanation.namespace, "name": explanation.name},
        "summary": explanation.summary,
        "claims": [_claim(claim) for claim in explanation.claims],
        "notes": list(explanation.notes),
    }


def _claim(explanation: ClaimExplanation) -> dict[str, Any]:
    evidence = explanation.evidence
    return {
        "metadata": {"namespace": explanation.namespace, "name": explanation.name},
        "verdict": str(explanation.verdict),
        "code": str(explanation.code) if explanation.code else None,
        "summary": explanation.summary,
        "devices": {"total": explanation.total, "buckets": [_bucket(bucket) for bucket in explanation.devices]},
        "requests": [
            {"name": request.name, "buckets": [_bucket(bucket) for bucket in request.buckets]}
            for request in explanation.requests
        ],
        "expressions": [_expression(expression) for expression in explanation.expressions],
        "holders": [{"device": str(held.device), "claim": held.claim, "pod": held.pod} for held in explanation.holders],
        "corrections": [
            {"change": correction.change, "path": correction.path, "verified": correction.verified}
            for correction in explanation.corrections
        ],
        "notes": list(explanation.notes),
        "evidence": {
            "resourceVersion": evidence.resource_version,
            "ageSeconds": evidence.age_seconds,
            "schedulerMessage": evidence.scheduler_message,
            "assumed": list(evidence.assumed),
        },
    }


def _bucket(bucket: Bucket) -> dict[str, Any]:
    return {
        "reason": str(bucket.reason),
        "count": bucket.count,
        "devices": [str(device) for device in bucket.devices],
        "detail": bucket.detail,
    }


def _expression(expression: Expression) -> dict[str, Any]:
    return {
        "where": expression.where,
        "text": expression.text,
        "failing": {"from": expression.failing.start, "to": expression.failing.end},
        "seen": [{"value": seen.value, "count": seen.count} for seen in expression.seen],
        "error": expression.error or None,
    }
