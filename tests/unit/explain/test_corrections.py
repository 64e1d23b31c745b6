"""Corrections: what is proposed, in which order, with which field or command."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import api, explain


@pytest.fixture
def corrections() -> Any:
    def corrections(situation: explain.Situation, claim: Any) -> list[tuple[str, str]]:
        explained = explain.explain_claim(situation, claim)
        assert all(correction.verified for correction in explained.corrections)
        return [(correction.change, correction.path) for correction in explained.corrections]

    return corrections


EXPRESSION = "spec.devices.requests[0].exactly.selectors[0].cel.expression"


def test_a_misspelt_attribute_is_spelt_as_the_devices_do(scene: Any, corrections: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a", productName="x")))
    claim = scene.claim(scene.request("r", scene.where("productname", "x")))
    assert corrections(situation, claim) == [("write productName in place of productname", EXPRESSION)]


def test_an_attribute_that_some_devices_lack_is_guarded(scene: Any, corrections: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a"), scene.device("b", domain="x")))
    claim = scene.claim(scene.request("r", scene.where("domain", "x")))
    assert corrections(situation, claim) == [
        ('write has(device.attributes["gpu.example.com"].domain) && before it', EXPRESSION)
    ]


def test_a_number_in_quotes_loses_them(scene: Any, corrections: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a", size=4)))
    claim = scene.claim(scene.request("r", 'device.attributes["gpu.example.com"].size >= "4"'))
    assert corrections(situation, claim)[0] == ('write 4 in place of "4"', EXPRESSION)


def test_a_round_amount_of_memory_is_written_as_what_devices_have(scene: Any, corrections: Any) -> None:
    devices = [scene.device("a", memory="81559Mi", nominalMemoryGB=80)]
    claim = scene.claim(
        scene.request("r", 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0')
    )
    assert [change for change, _ in corrections(scene.situation(scene.slice("n1", *devices)), claim)] == [
        'write quantity("79Gi") in place of quantity("80Gi"): these devices have 81559Mi',
        'write device.attributes["gpu.example.com"].nominalMemoryGB >= 80',
    ]


def test_a_value_that_no_device_has_is_replaced_by_the_nearest(scene: Any, corrections: Any) -> None:
    devices = [scene.device("a", model="H100 NVL"), scene.device("b", model="L4")]
    claim = scene.claim(scene.request("r", scene.where("model", "H100NVL")))
    assert corrections(scene.situation(scene.slice("n1", *devices)), claim)[0] == (
        'write "H100 NVL" in place of "H100NVL"',
        EXPRESSION,
    )


def test_what_was_meant_comes_before_other_devices(scene: Any, corrections: Any) -> None:
    devices = [scene.device("a", model="x", memory="81559Mi"), scene.device("b", model="y", memory="90Gi")]
    text = f'{scene.where("model", "x")} && device.capacity["{scene.driver}"].memory.compareTo(quantity("80Gi")) >= 0'
    changes = [
        c for c, _ in corrections(scene.situation(scene.slice("n1", *devices)), scene.claim(scene.request("r", text)))
    ]
    assert changes[0].startswith('write quantity("79Gi")')
    assert changes[1].startswith("leave out ")


def test_fewer_devices_come_before_ending_a_claim_and_dropping_a_constraint(scene: Any, corrections: Any) -> None:
    devices = [scene.device(f"d{n}", board=1 if n < 3 else 2) for n in range(5)]
    situation = scene.situation(scene.slice("n1", *devices), claims=[scene.held("n1/d0", pod="q")])
    claim = scene.claim(scene.request(count=3), match="board")
    assert corrections(situation, claim) == [
        ("ask for 2 in place of 3", "spec.devices.requests[0].exactly.count"),
        ("wait for or end pod ns/q (claim ns/other)", "kubectl delete pod -n ns q"),
        ("drop the constraint on gpu.example.com/board", "spec.devices.constraints[0]"),
    ]


def test_a_claim_that_no_pod_uses_is_deleted_itself(scene: Any, corrections: Any) -> None:
    situation = scene.situation(scene.slice("n1", scene.device("a")), claims=[scene.held("n1/a")])
    assert corrections(situation, scene.claim()) == [
        ("wait for or end claim ns/other, which no pod uses", "kubectl delete resourceclaim -n ns other")
    ]


def test_where_no_claim_alone_is_enough_the_fewest_that_are_end_together(scene: Any) -> None:
    held = [scene.held(f"n1/d{n}", name=f"h{n}", pod=f"q{n}") for n in range(3)]
    situation = scene.situation(scene.slice("n1", *(scene.device(f"d{n}") for n in range(3))), claims=held)
    (correction,) = explain.explain_claim(situation, scene.claim(scene.request(count=2))).corrections
    assert len(correction.ended) == 2
    assert correction.path.count("kubectl delete pod -n ns ") == 2


def test_paths_follow_the_version_in_which_the_claim_was_written(scene: Any) -> None:
    claim = scene.claim(scene.request("r", scene.where("kind", "b"), count=2))
    versions = {("ResourceClaim", "ns", "c"): api.wire.ApiVersion.V1BETA1}
    situation = scene.situation(scene.slice("n1", scene.device("a", kind="a")), versions=versions)
    explanation = explain.explain_claim(situation, claim)
    assert explanation.expressions[0].where == "spec.devices.requests[0].selectors[0].cel.expression"
