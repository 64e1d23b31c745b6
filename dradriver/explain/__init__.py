"""From refusals to verdicts, counts and checked corrections. Pure.

explain_claim(situation, claim, pod=None) -> ClaimExplanation
explain_pod(situation, pod) -> PodExplanation
"""

from dradriver.explain.explanations import (
    API_VERSION,
    Bucket,
    ClaimExplanation,
    Correction,
    Evidence,
    Expression,
    HeldDevice,
    PodExplanation,
    RequestBuckets,
    Seen,
    Verdict,
    as_json,
)
from dradriver.explain.situations import Situation

__all__ = [
    "API_VERSION",
    "Bucket",
    "ClaimExplanation",
    "Correction",
    "Evidence",
    "Expression",
    "HeldDevice",
    "PodExplanation",
    "RequestBuckets",
    "Seen",
    "Situation",
    "Verdict",
    "as_json",
]
