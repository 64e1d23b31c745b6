"""Which verdict, which code, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dradriver import api, explain
from dradriver.allocator import Reason
from dradriver.explain import Code, NodeState, Verdict


@pytest.fixture
def told() -> Any:
    """Verdict, code and reasons of a claim in a situation."""

    def told(situation: explain.Situation, claim: Any, pod: Any = None) -> tuple[Verdict, Code | None, str]:
        explanation = explain.explain_claim(situation, claim, pod=pod)
        return explanation.verdict, explanation.code, "; ".join(explanation.because)

    return told


def test_a_free_device_fits(scene: Any, told: Any) -> None:
    assert told(scene.situation(scene.slice("n1", scene.device("a"))), scene.claim()) == (Verdict.FITS, None, "")


def test_a_held_device_is_waited_for(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=[scene.held("n1/a", pod="q")])
    assert told(situation, scene.claim()) == (
        Verdict.PENDING,
        Code.HELD_BY_OTHERS,
        "request r needs 1 device; of the 1 in n1 none are free; in the way: claim ns/other of pod ns/q with 1",
    )


def test_more_than_any_node_has_is_impossible(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), scene.slice("n2", scene.device("a")))
    verdict, code, because = told(situation, scene.claim(scene.request(count=2)))
    assert (verdict, code) == (Verdict.IMPOSSIBLE, Code.NOT_ENOUGH_HARDWARE)
    assert because == "request r needs 2 devices on one node; the largest node has 1 (n1 and 1 more)"


def test_a_cluster_without_devices_says_so(scene: Any, told: Any) -> None:
    verdict, code, because = told(scene.situation(labels={"n1": {}}), scene.claim())
    assert (verdict, code) == (Verdict.IMPOSSIBLE, Code.NO_DEVICES_PUBLISHED)
    assert "no driver has published a device" in because


@pytest.mark.parametrize(
    ("taint", "reason"), [("gpu.example.com/xid", Reason.UNHEALTHY), ("example.com/mine", Reason.TAINT)]
)
def test_a_tainted_device_blocks(scene: Any, told: Any, taint: str, reason: Reason) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a", taint)))
    assert told(situation, scene.claim()) == (
        Verdict.BLOCKED,
        Code.DEVICE_TAINTED,
        f"a of n1 is tainted {taint}:NoSchedule",
    )
    assert explain.explain_claim(situation, scene.claim()).devices[0].reason is reason


def test_a_cordoned_node_blocks_and_uncordoning_is_the_remedy(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), nodes={"n1": NodeState("n1", cordoned=True)})
    explanation = explain.explain_claim(situation, scene.claim())
    assert (explanation.verdict, explanation.code) == (Verdict.BLOCKED, Code.NODE_CLOSED)
    assert [correction.path for correction in explanation.corrections] == ["kubectl uncordon n1"]
    assert explanation.devices[0].reason is Reason.NODE
    assert explanation.devices[0].detail == "n1: cordoned"


def test_a_node_taint_blocks_only_pods_that_do_not_tolerate_it(scene: Any, told: Any) -> None:
    taint = api.Taint("key", api.TaintEffect.NO_SCHEDULE)
    situation = scene.situation(scene.slice("n1", scene.device("a")), nodes={"n1": NodeState("n1", taints=(taint,))})
    assert told(situation, scene.claim())[:2] == (Verdict.BLOCKED, Code.NODE_CLOSED)
    tolerant = scene.pod("c", tolerations=(api.Toleration("key", api.TolerationOperator.EXISTS),))
    assert told(situation, scene.claim(), tolerant)[0] is Verdict.FITS


def test_an_unknown_class_blocks_with_no_device_of_it(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")))
    explanation = explain.explain_claim(situation, scene.claim(scene.request(device_class="gpus")))
    assert (explanation.verdict, explanation.code) == (Verdict.BLOCKED, Code.CLASS_MISSING)
    assert [(b.reason, b.detail) for b in explanation.devices] == [(Reason.CLASS_SELECTOR, "class gpus does not exist")]
    (correction,) = explanation.corrections
    assert (correction.change, correction.path) == (
        "write gpu in place of gpus",
        "spec.devices.requests[0].exactly.deviceClassName",
    )


def test_an_expression_that_does_not_compile_blocks_with_the_part_marked(scene: Any) -> None:
    text = 'device.driver = "x"'
    situation = scene.situation(scene.slice("n1", scene.device("a")))
    explanation = explain.explain_claim(situation, scene.claim(scene.request("r", text)))
    assert (explanation.verdict, explanation.code) == (Verdict.BLOCKED, Code.EXPRESSION_REFUSED)
    (expression,) = explanation.expressions
    assert text[slice(*expression.failing)] == "="
    assert expression.error in explanation.because[0]


def test_an_expression_that_ends_too_early_is_marked_at_its_end(scene: Any) -> None:
    text = "device.driver =="
    situation = scene.situation(scene.slice("n1", scene.device("a")))
    (expression,) = explain.explain_claim(situation, scene.claim(scene.request("r", text))).expressions
    assert 0 <= expression.failing.start < expression.failing.end <= len(text)


def test_33_devices_are_too_many_however_many_there_are(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", *(scene.device(f"d{n}") for n in range(40))))
    verdict, code, because = told(situation, scene.claim(scene.request(count=33)))
    assert (verdict, code) == (Verdict.BLOCKED, Code.TOO_MANY_DEVICES)
    assert "33" in because
    assert "32" in because


def test_a_selector_that_errs_on_a_free_device_blocks_though_another_would_do(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a", x=1)), scene.slice("n2", scene.device("b")))
    verdict, code, because = told(situation, scene.claim(scene.request("r", scene.where("x", 1))))
    assert (verdict, code) == (Verdict.BLOCKED, Code.SELECTOR_ERRS)
    assert because == "a selector fails on gpu.example.com/n2/b, and the scheduler then gives up the pod"


def test_an_attribute_that_no_device_has_is_impossible(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")))
    verdict, code, because = told(situation, scene.claim(scene.request("r", scene.where("x", 1))))
    assert (verdict, code) == (Verdict.IMPOSSIBLE, Code.SELECTOR_ERRS)
    assert because.endswith("a selector fails on 1 device: no such key: x")


def test_an_incomplete_pool_leaves_the_answer_open(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a"), count=2))
    assert told(situation, scene.claim())[:2] == (Verdict.UNKNOWN, Code.POOL_IN_FLUX)


def test_an_incomplete_pool_does_not_matter_where_the_claim_fits_without_it(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a"), count=2), scene.slice("n2", scene.device("a")))
    assert told(situation, scene.claim())[0] is Verdict.FITS


def test_an_incomplete_pool_of_a_driver_the_class_refuses_does_not_matter(scene: Any, told: Any) -> None:
    foreign = scene.slice("n1", scene.device("nic"), count=2, driver="nic.example.com")
    situation = scene.situation(foreign, selectors=[f'device.driver == "{scene.driver}"'])
    assert told(situation, scene.claim())[0] is Verdict.IMPOSSIBLE


def test_two_devices_of_one_name_block(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a"), scene.device("a")))
    verdict, code, because = told(situation, scene.claim())
    assert (verdict, code) == (Verdict.BLOCKED, Code.POOL_INVALID)
    assert "duplicate device name a" in because


@pytest.mark.parametrize("kind", ["ResourceSlice", "DeviceClass", "ResourceClaim"])
def test_what_may_not_be_read_leaves_the_answer_open(scene: Any, told: Any, kind: str) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), missing={kind: "forbidden"})
    verdict, code, because = told(situation, scene.claim())
    assert (verdict, code) == (Verdict.UNKNOWN, Code.NOT_READABLE)
    assert "forbidden" in because


def test_impossible_needs_no_claims(scene: Any, told: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), missing={"ResourceClaim": "forbidden"})
    assert told(situation, scene.claim(scene.request(count=2)))[0] is Verdict.IMPOSSIBLE


def test_requests_that_compete_for_the_same_devices_are_told_apart(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a", x=1), scene.device("b", x=2)))
    claim = scene.claim(scene.request("any", scene.where("x", 1)), scene.request("one", scene.where("x", 1)))
    explanation = explain.explain_claim(situation, claim)
    assert (explanation.verdict, explanation.code) == (Verdict.IMPOSSIBLE, Code.NOT_TOGETHER)
    one = {bucket.reason: bucket.detail for bucket in explanation.requests[1].buckets}
    assert one[Reason.PICKED_FOR_OTHER_REQUEST] == "request any"


def test_a_group_that_agrees_must_be_large_enough(scene: Any, told: Any) -> None:
    devices = [scene.device(f"d{n}", board=n // 2) for n in range(4)]
    verdict, code, because = told(
        scene.situation(scene.slice("n1", *devices)), scene.claim(scene.request(count=3), match="board")
    )
    assert (verdict, code) == (Verdict.IMPOSSIBLE, Code.NO_SUCH_GROUP)
    assert because == "request r needs 3 devices that agree on board; the largest group has 2 (0 and 1 more)"


def test_nodes_that_the_pod_leaves_out_are_named(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), labels={"n1": {"zone": "a"}, "n2": {"zone": "b"}})
    pod = scene.pod("c", node_labels={"zone": "b"})
    explanation = explain.explain_claim(situation, scene.claim(), pod=pod)
    assert (explanation.verdict, explanation.code) == (Verdict.IMPOSSIBLE, Code.NODES_LEFT_OUT)
    assert explanation.because == ("only nodes that the pod leaves out could do it: n1, since the pod wants zone=b",)
    assert explanation.corrections[0].change == "let the pod run on node n1; now the pod wants zone=b"


def test_where_the_pod_of_an_allocated_claim_runs_does_not_count(scene: Any) -> None:
    held = scene.held("n1/a", name="c", pod="p")
    situation = scene.situation(
        scene.slice("n1", scene.device("a")), scene.slice("n2", scene.device("a")), claims=[held]
    )
    running = replace(situation, pods=(scene.pod("c", node="n1", phase="Running"),))
    assert [bucket.reason for bucket in explain.explain_claim(running, held).devices] == [Reason.FITS]


def test_a_kind_of_request_that_is_not_known_blocks_and_devices_are_counted_all_the_same(scene: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")))
    explanation = explain.explain_claim(situation, scene.claim(api.DeviceRequest("new")))
    assert (explanation.verdict, explanation.code) == (Verdict.BLOCKED, Code.REQUEST_REFUSED)
    assert [(b.reason, b.detail) for b in explanation.devices] == [
        (Reason.CLASS_SELECTOR, "a kind of request that is not known")
    ]


def test_options_of_one_request_do_not_compete(scene: Any) -> None:
    options = tuple(api.DeviceSubRequest(name, "gpu") for name in ("a", "b"))
    situation = scene.situation(scene.slice("n1", scene.device("d")))
    explanation = explain.explain_claim(situation, scene.claim(api.DeviceRequest("r", first_available=options)))
    assert explanation.verdict is Verdict.FITS
    assert [bucket.reason for request in explanation.requests for bucket in request.buckets] == [Reason.FITS] * 2
