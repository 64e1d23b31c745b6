"""Laws of explanations, over random small clusters and claims."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dradriver import allocator, api, explain
from dradriver.explain import NodeState, Verdict

NODES = ("n1", "n2")


@st.composite
def questions(draw: st.DrawFn, scene: Any) -> tuple[explain.Situation, list[api.ResourceClaim]]:
    """A situation with up to eight devices on two nodes, and one or two claims of a pod."""
    slices, names = [], []
    for node in NODES:
        devices = []
        for number in range(draw(st.integers(0, 4))):
            attributes = {"kind": draw(st.sampled_from(["a", "b"])), "size": draw(st.integers(1, 3))}
            if draw(st.booleans()):
                attributes["domain"] = draw(st.integers(0, 1))
            taints = ["gpu.example.com/ecc"] if draw(st.integers(0, 5)) == 0 else []
            devices.append(scene.device(f"d{number}", *taints, **attributes))
            names.append(f"{node}/d{number}")
        slices.append(scene.slice(node, *devices, count=draw(st.sampled_from([1, 1, 1, 1, 2]))))
    taken = draw(st.lists(st.sampled_from(names), unique=True, max_size=4)) if names else []
    claims = [scene.held(device, name=f"held-{n % 2}-{n}", pod=f"q{n}") for n, device in enumerate(taken)]
    nodes = {node: NodeState(node, cordoned=draw(st.integers(0, 4)) == 0) for node in NODES}
    wanted = [draw(_claims(scene, name)) for name in draw(st.sampled_from([["c"], ["c"], ["c", "d"]]))]
    return scene.situation(*slices, claims=[*claims, *wanted], nodes=nodes), wanted


@st.composite
def _claims(draw: st.DrawFn, scene: Any, name: str) -> api.ResourceClaim:
    tests = [scene.where("kind", "a"), scene.where("size", 2), scene.where("domain", 1), scene.where("siz", 2)]
    joined = st.lists(st.sampled_from(tests), min_size=1, max_size=2, unique=True).map(" && ".join)
    requests = []
    for number in range(draw(st.integers(1, 2))):
        expressions = draw(st.lists(joined, max_size=1))
        request = scene.request(f"r{number}", *expressions, count=draw(st.integers(1, 4)))
        if draw(st.integers(0, 5)) == 0:
            request = scene.request(f"r{number}", *expressions, count=0, allocation_mode="All")
        requests.append(request)
    return scene.claim(*requests, name=name, match=draw(st.sampled_from(["", "", "domain"])))  # type: ignore[no-any-return]


def _explained(situation: explain.Situation, claims: list[api.ResourceClaim], scene: Any) -> explain.PodExplanation:
    return explain.explain_pod(situation, scene.pod(*(claim.metadata.name for claim in claims)))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_device_is_in_exactly_one_bucket(scene: Any, data: st.DataObject) -> None:
    situation, claims = data.draw(questions(scene))
    for explanation in _explained(situation, claims, scene).claims:
        for buckets in (explanation.devices, *(request.buckets for request in explanation.requests)):
            assert sorted(d for b in buckets for d in b.devices) == sorted(situation.cluster.devices)
            assert all(bucket.count for bucket in buckets)
            order = [list(allocator.Reason).index(bucket.reason) for bucket in buckets]
            assert order == sorted(order)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_verdict_is_fits_exactly_where_the_allocator_allocates_and_no_selector_errs(
    scene: Any, data: st.DataObject
) -> None:
    situation, claims = data.draw(questions(scene))
    cordoned = {node.name for node in situation.nodes if node.cordoned}
    outcomes = [
        allocator.allocate(situation.cluster, api.Node(node), claims)
        for node in situation.cluster.nodes
        if node not in cordoned
    ]
    fits = any(isinstance(o, allocator.Allocated) for o in outcomes) and not any(
        isinstance(o, allocator.Failed) for o in outcomes
    )
    for explanation in _explained(situation, claims, scene).claims:
        assert (explanation.verdict is Verdict.FITS) is fits
        assert (explanation.code is None) is fits


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_correction_makes_the_claims_fit(scene: Any, data: st.DataObject) -> None:
    situation, claims = data.draw(questions(scene))
    for position, explanation in enumerate(_explained(situation, claims, scene).claims):
        assert len(explanation.corrections) <= 3
        for correction in explanation.corrections:
            changed = [*claims[:position], correction.changed or claims[position], *claims[position + 1 :]]
            ended = set(correction.ended)
            index = situation.cluster.without_claims(
                lambda claim, ended=ended: f"{claim.metadata.namespace}/{claim.metadata.name}" in ended
            )
            opened = correction.path.removeprefix("kubectl uncordon ")
            nodes = [n.name for n in situation.nodes if n.name == opened or not n.cordoned]
            outcomes = [allocator.allocate(index, api.Node(node), changed) for node in nodes]
            assert any(isinstance(outcome, allocator.Allocated) for outcome in outcomes), correction


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_pending_fits_an_empty_cluster_and_impossible_does_not(scene: Any, data: st.DataObject) -> None:
    situation, claims = data.draw(questions(scene))
    empty = situation.cluster.repaired().emptied()
    fits = any(
        isinstance(allocator.allocate(empty, api.Node(node), claims), allocator.Allocated)
        for node in situation.cluster.nodes
    )
    for explanation in _explained(situation, claims, scene).claims:
        if explanation.verdict is Verdict.PENDING:
            assert fits
        if explanation.verdict is Verdict.IMPOSSIBLE:
            assert not fits
