"""Pods: their claims judged together, those that are not there, and what stands around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dradriver import api, explain
from dradriver.explain import Code, PodClaim, Verdict


def _template(name: str, *requests: Any) -> api.ResourceClaimTemplate:
    return api.ResourceClaimTemplate(api.ObjectMeta(name=name, namespace="ns"), api.ClaimSpec(requests))


def test_claims_of_a_pod_are_judged_together(scene: Any) -> None:
    claims = [scene.claim(name="c"), scene.claim(name="d")]
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=claims)
    alone = explain.explain_claim(situation, claims[0])
    together = explain.explain_pod(situation, scene.pod("c", "d"))
    assert alone.verdict is Verdict.FITS
    assert [claim.verdict for claim in together.claims] == [Verdict.IMPOSSIBLE, Verdict.IMPOSSIBLE]


def test_a_claim_that_fits_by_itself_points_to_its_pod(scene: Any) -> None:
    claims = [scene.claim(name="c"), scene.claim(name="d")]
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=claims, pods=(scene.pod("c", "d"),))
    notes = explain.explain_claim(situation, claims[0]).notes
    assert "its pod needs d at the same time: kubectl gpupool explain pod ns/p" in notes


def test_a_claim_stays_on_the_node_of_those_the_pod_has_already(scene: Any) -> None:
    only = api.NodeSelectorRequirement("metadata.name", "In", ("n1",))
    held = scene.held("n1/a", name="c")
    tied = replace(
        held,
        status=replace(
            held.status,
            allocation=replace(
                held.status.allocation, node_selector=api.NodeSelector((api.NodeSelectorTerm((), (only,)),))
            ),
        ),
    )
    slices = scene.slice("n1", scene.device("a")), scene.slice("n2", scene.device("a"))
    situation = scene.situation(*slices, claims=[tied, scene.claim(name="d")])
    first, second = explain.explain_pod(situation, scene.pod("c", "d")).claims
    assert first.verdict is Verdict.ALLOCATED
    assert (second.verdict, second.code) == (Verdict.IMPOSSIBLE, Code.NODES_LEFT_OUT)


def test_a_claim_not_generated_yet_is_explained_from_its_template(scene: Any) -> None:
    template = _template("t", scene.request(count=2))
    situation = scene.situation(scene.slice("n1", scene.device("a")), templates=(template,))
    (claim,) = explain.explain_pod(situation, scene.pod(PodClaim("gpu", None, "t"))).claims
    assert claim.verdict is Verdict.IMPOSSIBLE
    assert claim.corrections[0].path == "spec.spec.devices.requests[0].exactly.count"
    assert "this is what a claim made from template t gets" in claim.notes


@pytest.mark.parametrize(
    ("entry", "because"),
    [
        (
            PodClaim("gpu", None, "tmplate"),
            "template ns/tmplate, which the pod names, does not exist; did you mean template?",
        ),
        (PodClaim("gpu", "gone", None), "claim ns/gone, which the pod names, does not exist"),
    ],
)
def test_a_claim_or_template_that_is_not_there_blocks(scene: Any, entry: PodClaim, because: str) -> None:
    situation = scene.situation(
        scene.slice("n1", scene.device("a")), templates=(_template("template", scene.request()),)
    )
    (claim,) = explain.explain_pod(situation, scene.pod(entry)).claims
    assert (claim.verdict, claim.code) == (Verdict.BLOCKED, Code.CLAIM_NOT_GENERATED)
    assert "; ".join(claim.because) == because


def test_templates_that_may_not_be_read_leave_the_answer_open(scene: Any) -> None:
    situation = scene.situation(missing={"ResourceClaimTemplate": "forbidden"})
    (claim,) = explain.explain_pod(situation, scene.pod(PodClaim("gpu", None, "t"))).claims
    assert (claim.verdict, claim.code) == (Verdict.UNKNOWN, Code.NOT_READABLE)


def test_a_claim_made_from_a_template_is_to_be_changed_there(scene: Any) -> None:
    claim = scene.claim(scene.request(count=2))
    situation = scene.situation(
        scene.slice("n1", scene.device("a")), claims=[claim], pods=(scene.pod(PodClaim("gpu", "c", "t")),)
    )
    notes = explain.explain_claim(situation, claim).notes
    assert "the claim was made from template t: change it there, then make pod ns/p anew" in notes


def test_a_pod_that_went_past_the_scheduler_is_noticed(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=[scene.claim()])
    (claim,) = explain.explain_pod(situation, scene.pod("c", node="n1")).claims
    assert "pod ns/p was put on node n1 past the scheduler, so nothing allocates its claims" in claim.notes


def test_scheduling_gates_are_named(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=[scene.claim()])
    (claim,) = explain.explain_pod(situation, scene.pod("c", gates=("quota",))).claims
    assert "pod ns/p is held back by its scheduling gates: quota" in claim.notes


def test_the_scheduler_is_heard_from_events_where_the_pod_says_nothing(scene: Any) -> None:
    told = [
        explain.Refusal(("ns", "p"), "first", "2026-01-01T00:00:01Z"),
        explain.Refusal(("ns", "p"), "last", "2026-01-01T00:00:03Z"),
        explain.Refusal(("ns", "other"), "else", "2026-01-01T00:00:09Z"),
    ]
    situation = scene.situation(
        scene.slice("n1", scene.device("a")), claims=[scene.claim()], refusals=tuple(told), pods=(scene.pod("c"),)
    )
    assert explain.explain_claim(situation, scene.claim()).evidence.scheduler_message == "last"


def test_an_allocation_on_a_device_that_is_gone_or_tainted_is_noted(scene: Any) -> None:
    held = scene.held("n1/a", "n1/b", name="c")
    situation = scene.situation(scene.slice("n1", scene.device("a", "gpu.example.com/xid")), claims=[held])
    notes = explain.explain_claim(situation, held).notes
    assert "gpu.example.com/n1/b is not published any more" in notes
    assert "gpu.example.com/n1/a is tainted gpu.example.com/xid:NoSchedule" in notes
    assert any("reserved for nobody" in note for note in notes)


def test_a_manifest_takes_the_place_of_what_has_its_name(scene: Any) -> None:
    old = scene.held("n1/a", name="c")
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=[old])
    after = explain.with_manifest(situation, [scene.claim()], [], [scene.pod("c")], {})
    assert [claim.status.allocation for claim in after.claims] == [None]
    assert explain.explain_pod(after, after.pods[0]).claims[0].verdict is Verdict.FITS
