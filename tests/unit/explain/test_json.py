"""The fields of `-o json` are a contract."""

from __future__ import annotations

import json
from typing import Any

from dradriver import explain

FIELDS = {
    "metadata",
    "verdict",
    "code",
    "summary",
    "devices",
    "requests",
    "expressions",
    "holders",
    "corrections",
    "notes",
    "evidence",
}


def test_a_claim_has_every_field_and_its_lists_are_always_there(story: explain.Situation) -> None:
    for claim in story.claims:
        data = json.loads(json.dumps(explain.as_json(explain.explain_claim(story, claim))))
        assert (data.pop("apiVersion"), data.pop("kind")) == ("gpupool.dev/v1alpha1", "ClaimExplanation")
        assert data.keys() == FIELDS
        counted = sum(bucket["count"] for bucket in data["devices"]["buckets"])
        assert data["devices"]["total"] == counted == len(story.cluster.devices)
        for name in ("requests", "expressions", "holders", "corrections", "notes"):
            assert isinstance(data[name], list)
        assert data["evidence"].keys() == {"resourceVersion", "ageSeconds", "schedulerMessage", "assumed"}


def test_a_pod_wraps_its_claims(story: explain.Situation) -> None:
    pod = next(pod for pod in story.pods if pod.name == "batch")
    data = explain.as_json(explain.explain_pod(story, pod))
    assert data["kind"] == "PodExplanation"
    (claim,) = data["claims"]
    assert claim.keys() == FIELDS
    expression: dict[str, Any] = claim["expressions"][0]
    assert expression["seen"] == [{"value": "81559Mi", "count": 8}]
    assert expression["text"][expression["failing"]["from"] : expression["failing"]["to"]].startswith("device.capacity")
    assert claim["holders"] == []


def test_devices_are_named_by_driver_pool_and_device(story: explain.Situation) -> None:
    claim = story.claim("story", "six-hopper-80gb")
    assert claim is not None
    data = explain.as_json(explain.explain_claim(story, claim))
    assert data["holders"][0] == {
        "device": "gpu.gpupool.dev/hgx-h100/gpu-0",
        "claim": "story/train-gpus-4kq7d",
        "pod": "story/train",
    }
