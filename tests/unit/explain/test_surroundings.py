"""Pods, nodes and events are read from the JSON of core/v1; what has another shape is named."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import api, explain
from dradriver.explain import PodClaim

POD = {
    "kind": "Pod",
    "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
    "spec": {
        "nodeSelector": {"zone": "a"},
        "resourceClaims": [
            {"name": "direct", "resourceClaimName": "c"},
            {"name": "made", "resourceClaimTemplateName": "t"},
            {"name": "open", "resourceClaimTemplateName": "t"},
        ],
        "tolerations": [{"operator": "Exists"}, {"key": "k", "effect": "PreferNoSchedule"}],
        "schedulingGates": [{"name": "gate"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
                    ]
                }
            }
        },
    },
    "status": {
        "phase": "Pending",
        "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made-x"}],
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}],
    },
}


def test_a_pod_is_read_with_its_claims_and_where_it_may_run() -> None:
    pod = explain.read_pod(POD)
    assert pod.claims == (
        PodClaim("direct", "c", None),
        PodClaim("made", "p-made-x", "t"),
        PodClaim("open", None, "t"),
    )
    assert (pod.node_labels, pod.gates, pod.refused) == ({"zone": "a"}, ("gate",), "no")
    assert pod.node_affinity is not None
    assert api.selects(pod.node_affinity, api.Node("n", {"zone": "b"}))
    taint = api.Taint("x", api.TaintEffect.NO_SCHEDULE)
    assert [api.tolerates(toleration, taint) for toleration in pod.tolerations] == [True, False]


def test_a_node_is_closed_by_cordon_and_by_taints_that_keep_pods_away() -> None:
    node = explain.read_node(
        {
            "metadata": {"name": "n"},
            "spec": {
                "unschedulable": True,
                "taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "PreferNoSchedule"}],
            },
        }
    )
    assert node.cordoned
    assert [taint.key for taint in node.taints] == ["a"]


@pytest.mark.parametrize("about", ["involvedObject", "regarding"])
def test_refusals_are_read_from_events_of_both_groups(about: str) -> None:
    event = {"reason": "FailedScheduling", about: {"namespace": "ns", "name": "p"}, "note": "0/1", "eventTime": "t"}
    assert explain.read_refusal(event) == explain.Refusal(("ns", "p"), "0/1", "t")
    assert explain.read_refusal({**event, "reason": "Killing"}) is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec", 7),
        ("spec.resourceClaims", "x"),
        ("spec.resourceClaims", [7]),
        ("spec.nodeSelector", []),
        ("spec.nodeName", {}),
        ("status.conditions", [None]),
        ("spec.affinity", 1),
    ],
)
def test_a_field_of_the_wrong_shape_is_named(path: str, value: object) -> None:
    data: dict[str, Any] = {"kind": "Pod", "metadata": {"namespace": "ns", "name": "p"}}
    place = data
    *parents, last = path.split(".")
    for key in parents:
        place = place.setdefault(key, {})
    place[last] = value
    with pytest.raises(explain.SurroundingsError, match=f"^Pod ns/p: {path.split('.', maxsplit=1)[0]}"):
        explain.read_pod(data)
