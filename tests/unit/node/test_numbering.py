"""Numbers stay with their GPUs."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dradriver import hardware
from dradriver.node import numbering
from dradriver.node.numbering import Numbered, Numbers


def _gpu(uuid: str, slot: int) -> hardware.Gpu:
    return hardware.Gpu(uuid=uuid, nvml_index=0, pci_address=f"0000:{slot:02x}:00.0")


def test_numbers_are_given_in_pci_order_and_remembered(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    assert Numbers(path).assign([_gpu("a", 1), _gpu("b", 2)], {}) == {"a": 0, "b": 1}
    assert Numbers(path).assign([_gpu("b", 2)], {}) == {"b": 1}
    assert Numbers(path).assign([_gpu("b", 2), _gpu("a", 7)], {}) == {"a": 0, "b": 1}


def test_a_new_card_takes_over_the_number_of_the_one_whose_slot_it_has() -> None:
    remembered = (Numbered(0, "a", "0000:01:00.0"), Numbered(1, "b", "0000:02:00.0"))
    now = numbering.assign([_gpu("c", 1), _gpu("b", 2)], remembered, held=())
    assert [(entry.number, entry.uuid) for entry in now] == [(0, "c"), (1, "b")]


def test_but_not_while_a_claim_holds_the_old_one() -> None:
    remembered = (Numbered(0, "a", "0000:01:00.0"),)
    now = numbering.assign([_gpu("c", 1)], remembered, held={"a"})
    assert [(entry.number, entry.uuid) for entry in now] == [(0, "a"), (1, "c")]


def test_a_file_damaged_from_outside_gives_pci_order_again(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    for spoilt in ("{]", "[]", '{"gpus": [{"number": -1, "uuid": "a", "pciAddress": null}]}'):
        path.write_text(spoilt)
        assert Numbers(path).assign([_gpu("a", 1)], {}) == {"a": 0}


def test_two_gpus_of_one_number_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    twice = [{"number": 5, "uuid": uuid, "pciAddress": None} for uuid in "ab"]
    path.write_text(json.dumps({"gpus": twice}))
    assert Numbers(path).assign([_gpu("a", 1), _gpu("b", 2)], {}) == {"a": 0, "b": 1}


def test_without_the_file_the_names_that_claims_hold_stand(tmp_path: Path) -> None:
    held = {"c": "gpu-0", "b": "gpu-4-mig-1g10gb-0"}
    numbers = Numbers(tmp_path / "numbers.json").assign([_gpu("a", 1), _gpu("b", 2), _gpu("c", 3)], held)
    assert numbers == {"a": 1, "b": 4, "c": 0}


def test_a_number_that_cannot_be_remembered_is_not_given(tmp_path: Path) -> None:
    numbers = Numbers(tmp_path / "numbers.json")
    numbers.assign([_gpu("a", 1)], {})
    tmp_path.joinpath(".numbers.json.tmp").mkdir()  # in the way of the next write
    assert numbers.assign([_gpu("a", 1), _gpu("b", 2)], {}) == {"a": 0}
    tmp_path.joinpath(".numbers.json.tmp").rmdir()
    assert numbers.assign([_gpu("a", 1), _gpu("b", 2)], {}) == {"a": 0, "b": 1}


cards = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5)), unique_by=(lambda c: c[0], lambda c: c[1]))


@given(st.lists(st.tuples(cards, st.sets(st.sampled_from("abcdef"))), max_size=6))
def test_numbers_are_unique_and_held_or_present_gpus_keep_theirs(
    lives: list[tuple[list[tuple[str, int]], set[str]]],
) -> None:
    remembered: tuple[Numbered, ...] = ()
    for present, held in lives:
        gpus = [_gpu(uuid, slot) for uuid, slot in sorted(present, key=lambda card: card[1])]
        now = numbering.assign(gpus, remembered, held)
        numbers = {entry.uuid: entry.number for entry in now}
        assert len(set(numbers.values())) == len(now) == len(numbers)
        assert {gpu.uuid for gpu in gpus} <= numbers.keys()
        for entry in remembered:
            if entry.uuid in held or any(gpu.uuid == entry.uuid for gpu in gpus):
                assert numbers[entry.uuid] == entry.number
        remembered = now
