"""From refusals to verdicts, counts and checked corrections. Pure: values in, values out."""

from dradriver.explain.codes import TITLES, Code
from dradriver.explain.counting import WORDS
from dradriver.explain.explaining import explain_claim, explain_pod, explain_template
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
from dradriver.explain.surroundings import (
    NodeState,
    Pod,
    PodClaim,
    Refusal,
    SurroundingsError,
    read_labels,
    read_node,
    read_pod,
    read_refusal,
)

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
    "NodeState",
    "Pod",
    "PodClaim",
    "PodExplanation",
    "Refusal",
    "RequestBuckets",
    "Seen",
    "Situation",
    "SurroundingsError",
    "Verdict",
    "as_json",
    "explain_claim",
    "explain_pod",
    "explain_template",
    "read_labels",
    "read_node",
    "read_pod",
    "read_refusal",
    "with_manifest",
]
