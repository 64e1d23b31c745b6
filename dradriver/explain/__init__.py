"""From refusals to verdicts, counts and checked corrections. Pure: values in, values out."""

from dradriver.explain.codes import TITLES, Code
from dradriver.explain.counting import WORDS
from dradriver.explain.explaining import explain_claim, explain_pod
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
from dradriver.explain.situations import Situation, with_manifest

__all__ = [
    "API_VERSION",
    "TITLES",
    "WORDS",
    "Bucket",
    "ClaimExplanation",
    "Code",
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
    "explain_claim",
    "explain_pod",
    "with_manifest",
]
