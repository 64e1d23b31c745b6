"""What Kubernetes 1.37.2 (dynamic-resource-allocation/cel on cel-go 0.29.2) answered for the device in conftest.

Each line of recorded.jsonl: an expression, whether it was compiled as a stored one or as a new one (with the default
gates), and the outcome: true, false, error (on this device) or refused (by the API server).
"""

from __future__ import annotations

import json
from pathlib import Path

from dradriver import api, cel

RECORDED = Path(__file__).with_name("recorded.jsonl")


def outcome(text: str, kubernetes: api.Kubernetes, gpu: api.Device, *, stored: bool) -> str:
    try:
        program = cel.compile_expression(text, kubernetes, stored=stored)
    except cel.CompileError:
        return "refused"
    traced = program.trace("gpu.gpupool.dev", gpu).outcome
    try:
        answer = program.evaluate("gpu.gpupool.dev", gpu)
    except cel.EvaluationError as error:
        return "error" if str(traced) == str(error) else f"error, but traced as {traced}"
    return str(answer).lower() if traced is answer else f"{answer}, but traced as {traced}"


def test_every_recorded_expression_has_the_outcome_that_kubernetes_gave(
    kubernetes: api.Kubernetes,
    gpu: api.Device,
) -> None:
    cases = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    different = [
        (case, given)
        for case in cases
        if (given := outcome(case["expression"], kubernetes, gpu, stored=case["stored"])) != case["outcome"]
    ]
    assert len(cases) > 1000
    assert different == []
