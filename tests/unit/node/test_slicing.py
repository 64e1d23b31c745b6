"""The fewest writes that make a pool's slices right, and generations that readers can rely on."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dradriver import api
from dradriver.node import slicing
from dradriver.node.slicing import Changes

OWNER = api.OwnerReference("v1", "Node", "node-a", api.UID("node-uid"), controller=True)
IDENTITY = slicing.Identity("gpu.gpupool.dev", "node-a", "node-a", OWNER)


def _devices(count: int, **attributes: api.AttributeValue) -> list[api.Device]:
    return [api.Device(f"gpu-{n}", attributes={"index": n, **attributes}) for n in range(count)]


def _changes(devices: list[api.Device], existing: list[api.ResourceSlice], floor: int = 0) -> Changes:
    return slicing.changes(IDENTITY, devices, existing, accepted={}, floor=floor)


def _apply(existing: list[api.ResourceSlice], changes: Changes) -> list[api.ResourceSlice]:
    gone = {value.metadata.name for value in (*changes.deletes, *changes.updates)}
    created = [
        replace(value, metadata=replace(value.metadata, name=f"{value.metadata.generate_name}x{value.pool.generation}"))
        for value in changes.creates
    ]
    return [value for value in existing if value.metadata.name not in gone] + list(changes.updates) + created


def test_a_pool_without_devices_is_one_empty_slice() -> None:
    (made,) = _changes([], []).creates
    assert made.devices == ()
    assert made.pool == api.Pool("node-a", 1, 1)


def test_slices_are_cut_at_64_devices_and_named_in_order() -> None:
    made = _changes(_devices(130), []).creates
    assert [len(value.devices) for value in made] == [64, 64, 2]
    assert [value.metadata.generate_name for value in made] == [f"0000{n}-gpu.gpupool.dev-node-a-" for n in range(3)]
    assert {value.pool for value in made} == {api.Pool("node-a", 1, 3)}
    assert all(value.metadata.owner_references == (OWNER,) and value.node_name == "node-a" for value in made)


def test_what_is_right_is_left_alone() -> None:
    devices = _devices(70)
    existing = _apply([], _changes(devices, []))
    assert not _changes(devices, existing)


def test_one_changed_slice_is_written_in_place() -> None:
    existing = _apply([], _changes(_devices(70), []))
    changed = _devices(70)
    changed[69] = replace(changed[69], attributes={"index": 70})
    changes = _changes(changed, existing)
    assert (changes.deletes, changes.creates) == ((), ())
    assert [value.pool.generation for value in changes.updates] == [1]


def test_two_changed_slices_raise_the_generation_of_all() -> None:
    existing = _apply([], _changes(_devices(130), []))
    changed = _devices(130)
    changed[0] = changed[64] = replace(changed[0], attributes={})
    changes = _changes(changed, existing)
    assert [value.pool.generation for value in changes.updates] == [2, 2, 2]


def test_a_deleted_slice_is_made_again_in_a_new_generation() -> None:
    devices = _devices(70)
    existing = _apply([], _changes(devices, []))
    changes = _changes(devices, existing[:1])
    assert [value.pool.generation for value in (*changes.updates, *changes.creates)] == [2, 2]
    (made,) = _changes(_devices(1), [], floor=5).creates
    assert made.pool.generation == 6


def test_a_pass_that_was_cut_short_is_finished_in_place() -> None:
    devices = _devices(130)
    existing = _apply([], _changes(devices, []))
    half = [replace(existing[0], pool=api.Pool("node-a", 2, 3)), *existing[1:]]
    changes = _changes(devices, half)
    assert (changes.deletes, changes.creates) == ((), ())
    assert [value.pool.generation for value in changes.updates] == [3, 3, 3]


def test_slices_too_many_older_or_of_other_pools_are_deleted() -> None:
    devices = _devices(1)
    (right,) = _apply([], _changes(devices, [], floor=6))
    older = replace(right, pool=api.Pool("node-a", 6, 1), metadata=replace(right.metadata, name="00000-older"))
    foreign = replace(right, pool=api.Pool("old-name", 9, 1), metadata=replace(right.metadata, name="00000-pool"))
    unnamed = replace(right, metadata=replace(right.metadata, name="node-a-gpu-x7"))
    changes = _changes(devices, [right, older, foreign, unnamed])
    assert {value.metadata.name for value in changes.deletes} == {"00000-older", "00000-pool", "node-a-gpu-x7"}
    assert [value.pool.generation for value in changes.updates] == [8]


def test_quantities_and_times_are_compared_by_value() -> None:
    def device(memory: str, time_added: str | None) -> api.Device:
        taint = api.Taint("gpu.gpupool.dev/lost", api.TaintEffect.NO_SCHEDULE, time_added=time_added)
        capacity = {"memory": api.Capacity(api.Quantity.parse(memory))}
        return api.Device("gpu-0", capacity=capacity, taints=(taint,))

    existing = _apply([], _changes([device("80Gi", "2026-12-01T00:00:00Z")], []))
    assert not _changes([device("81920Mi", None)], existing)
    changes = _changes([device("40Gi", None)], existing)
    assert changes.updates[0].devices[0].taints[0].time_added == "2026-12-01T00:00:00Z"


def test_a_number_is_not_the_truth_value_it_equals() -> None:
    existing = _apply([], _changes(_devices(1, migCapable=True), []))
    assert _changes(_devices(1, migCapable=1), existing)


def test_order_of_devices_matters() -> None:
    existing = _apply([], _changes(_devices(2), []))
    assert _changes(_devices(2)[::-1], existing).updates


def test_another_owner_is_put_right() -> None:
    existing = _apply([], _changes(_devices(1), []))
    orphan = replace(existing[0], metadata=replace(existing[0].metadata, owner_references=()))
    assert _changes(_devices(1), [orphan]).updates[0].metadata.owner_references == (OWNER,)


def test_dropped_fields_are_named_by_their_gate() -> None:
    taint = api.Taint("k/lost", api.TaintEffect.NO_SCHEDULE)
    sent = _changes([api.Device("gpu-0", taints=(taint,))], []).creates[0]
    got = replace(sent, devices=(api.Device("gpu-0"),))
    assert slicing.missing_gates(sent, got) == ("DRADeviceTaints",)
    assert slicing.missing_gates(sent, sent) == ()
    assert slicing.missing_gates(got, replace(got, devices=())) == ("unknown",)
    accepted = {slicing.fingerprint(sent): slicing.fingerprint(got)}
    stored = _apply([], Changes(creates=(got,)))
    assert not slicing.changes(IDENTITY, sent.devices, stored, accepted=accepted)


counts = st.integers(0, 200)


@given(st.lists(st.tuples(counts, st.sets(st.integers(0, 4))), min_size=1, max_size=5))
def test_after_any_history_one_pass_makes_the_pool_complete(history: list[tuple[int, set[int]]]) -> None:
    existing: list[api.ResourceSlice] = []
    newest = 0
    for count, deleted in history:
        existing = [value for n, value in enumerate(existing) if n not in deleted]
        existing = _apply(existing, _changes(_devices(count), existing, newest))
        generations = {value.pool.generation for value in existing}
        assert len(generations) == 1, "one generation"
        assert {value.pool.resource_slice_count for value in existing} == {len(existing)}
        ordered = sorted(existing, key=lambda value: value.metadata.name)
        assert [device.name for value in ordered for device in value.devices] == [f"gpu-{n}" for n in range(count)]
        assert generations.pop() >= newest
        newest = max(value.pool.generation for value in existing)
        assert not _changes(_devices(count), existing, newest)
