"""The five cases of the story, told from its snapshot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dradriver import allocator, explain
from dradriver.explain import Code, Verdict


def _claim(situation: explain.Situation, name: str) -> explain.ClaimExplanation:
    claim = situation.claim("story", name)
    assert claim is not None
    return explain.explain_claim(situation, claim)


def _pod(situation: explain.Situation, name: str) -> explain.PodExplanation:
    return explain.explain_pod(situation, next(pod for pod in situation.pods if pod.name == name))


def test_four_gpus_of_one_domain_are_allocated(story: explain.Situation) -> None:
    (claim,) = _pod(story, "train").claims
    assert (claim.verdict, claim.code, claim.corrections) == (Verdict.ALLOCATED, None, ())
    assert claim.headline == "holds gpu-0, gpu-1, gpu-2, gpu-3 of hgx-h100"
    fitting = next(bucket for bucket in claim.devices if bucket.reason is allocator.Reason.FITS)
    assert {device.device for device in fitting.devices} == {f"gpu-{n}" for n in range(8)}


def test_a_claim_with_two_requests_shows_which_device_is_for_which(story: explain.Situation) -> None:
    (claim,) = _pod(story, "serve").claims
    encoder, model = claim.requests
    picked = allocator.Reason.PICKED_FOR_OTHER_REQUEST
    assert [(d.device, b.detail) for b in encoder.buckets if b.reason is picked for d in b.devices] == [
        ("gpu-1", "request model")
    ]
    assert [d.device for b in model.buckets if b.reason is picked for d in b.devices] == ["gpu-0"]


def test_six_of_eight_wait_for_the_claim_that_holds_four(story: explain.Situation) -> None:
    (claim,) = _pod(story, "finetune").claims
    assert (claim.verdict, claim.code) == (Verdict.PENDING, Code.GROUP_HELD_BY_OTHERS)
    assert claim.because == (
        "request gpus needs 6 devices that agree on nvlinkDomain",
        "of the 8 in hgx-h100.nvl0 4 are free",
        "in the way: claim story/train-gpus-4kq7d of pod story/train with 4",
    )
    assert {(held.claim, held.pod) for held in claim.holders} == {("story/train-gpus-4kq7d", "story/train")}
    assert "kubectl delete pod -n story train" in [correction.path for correction in claim.corrections]
    assert claim.evidence.scheduler_message == "0/6 nodes are available: 6 cannot allocate all claims."


def test_what_waited_fits_once_that_claim_has_ended(story: explain.Situation) -> None:
    gone = replace(
        story,
        cluster=story.cluster.without_claims(lambda claim: claim.metadata.name.startswith("train-")),
        claims=tuple(c for c in story.claims if not c.metadata.name.startswith("train-")),
    )
    claim = _claim(gone, "six-hopper-80gb")
    assert (claim.verdict, claim.headline) == (Verdict.FITS, "fits on node hgx-h100")
    assert any("found no place when it looked last" in note for note in claim.notes)


def test_eight_bridged_in_pairs_are_impossible_and_the_group_there_is_is_named(story: explain.Situation) -> None:
    claim = _claim(story, "eight-h100-nvl")
    assert (claim.verdict, claim.code) == (Verdict.IMPOSSIBLE, Code.NO_SUCH_GROUP)
    assert claim.because == (
        "request gpus needs 8 devices that agree on nvlinkDomain",
        "the largest group has 2 (h100-nvl-4.nvl0 and 1 more)",
    )
    assert claim.corrections[0].change == "ask for 2 in place of 8"
    assert claim.corrections[0].path == "spec.devices.requests[0].exactly.count"


def test_80_gi_on_an_80_gb_card_shows_what_was_seen_and_what_to_write(story: explain.Situation) -> None:
    claim = _claim(story, "hopper-80gi")
    assert (claim.verdict, claim.code) == (Verdict.IMPOSSIBLE, Code.SELECTED_BY_NONE)
    nearest = claim.expressions[0]
    assert nearest.text[slice(*nearest.failing)] == (
        'device.capacity["gpu.gpupool.dev"].memory.compareTo(quantity("80Gi")) >= 0'
    )
    assert nearest.seen == (explain.Seen("81559Mi", 8),)
    assert nearest.where == "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert claim.corrections[0].change.startswith('write quantity("79Gi") in place of quantity("80Gi")')
    assert any("nominalMemoryGB" in note for note in claim.notes)


@pytest.mark.parametrize("pod", ["train", "notebook", "serve", "finetune", "pretrain", "batch"])
def test_every_device_is_counted_once(story: explain.Situation, pod: str) -> None:
    for claim in _pod(story, pod).claims:
        for buckets in (claim.devices, *(request.buckets for request in claim.requests)):
            devices = [device for bucket in buckets for device in bucket.devices]
            assert sorted(devices) == sorted(story.cluster.devices)
