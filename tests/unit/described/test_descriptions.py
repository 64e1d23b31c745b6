"""Descriptions: what ships, what identifies GPUs, and what is said of a malformed one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dradriver import described

ONE = "gpus: [{model: a100-sxm4-40gb, pci_address: 0000:07:00.0, %s}]\n"


def test_the_six_nodes_of_the_story_ship() -> None:
    assert described.shipped() == ("a100-mig", "dgx-a100", "gb200-tray", "h100-nvl-4", "hgx-h100", "l4-4")


@pytest.mark.parametrize("name", described.shipped())
def test_a_shipped_description_is_named_as_it_is_called(name: str) -> None:
    description = described.load(name)
    assert (description.name, description.node) == (name, name)
    assert len({gpu.pci_address for gpu in description.gpus}) == len(description.gpus)


def test_two_nodes_of_one_description_have_different_gpus_and_each_always_the_same() -> None:
    def uuids(node: str) -> list[str]:
        return [gpu.uuid for gpu in described.load("dgx-a100", node=node).gpus]

    assert uuids("one") == uuids("one")
    assert len({*uuids("one"), *uuids("two")}) == 16


def test_trays_of_one_rack_share_their_fabric() -> None:
    one, two = (described.load("gb200-tray", node=node) for node in ("tray-1", "tray-2"))
    assert one.gpus[0].fabric == two.gpus[3].fabric
    assert one.gpus[0].uuid != two.gpus[0].uuid


def test_a_path_is_a_description_of_the_name_of_its_file(write: Callable[..., Path]) -> None:
    description = described.load(write("gpus: {count: 2, model: l4}", "two-l4.yaml"))
    assert description.name == "two-l4"
    assert [gpu.numa_node for gpu in description.gpus] == [0, 1]


def test_a_model_can_be_a_file_beside_the_description(write: Callable[..., Path]) -> None:
    write(
        "name: NVIDIA X1\narchitecture: Blackwell\ncompute_capability: 10.0\npci_id: 0x2FFF10DE\n"
        "multiprocessors: 200\ncores: 25600\nmemory_mib: 300000\ndriver: 1\n".replace("driver: 1\n", ""),
        "x1.txt",
    )
    model = write("", "x1.yaml")
    model.write_text((model.parent / "x1.txt").read_text().removeprefix("driver: 580.95.05\ncuda: 13.0\n"))
    (gpu,) = described.load(write("gpus: {count: 1, model: x1.yaml}")).gpus
    assert (gpu.model.name, gpu.model.memory_mib, gpu.model.partitions) == ("NVIDIA X1", 300000, None)


def test_a_value_that_aliases_make_huge_is_told_in_one_line(write: Callable[..., Path]) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(described.DescriptionError, match=r"gpus.count: \[.* is not a whole number") as caught:
        described.load(write("\n".join([*levels, "gpus: {count: *a8, model: l4}"])))
    assert len(str(caught.value)) < 300


def test_scalars_are_those_of_yaml_1_2(write: Callable[..., Path]) -> None:
    description = described.load(
        write("driver: 550.90.07\ncuda: 12.10\ngpus: [{model: l4, pci_address: 0000:17:00.0}]")
    )
    assert description.cuda == (12, 10)
    assert description.gpus[0].pci_address == "0000:17:00.0"


def test_a_node_can_have_no_gpu(write: Callable[..., Path]) -> None:
    assert described.load(write("gpus: []")).gpus == ()


@pytest.mark.parametrize(
    ("text", "path", "problem", "remedy"),
    [
        ("gpus: [", "line 3, column 8", "not YAML", "correct it"),
        ("- a", "line 3, column 1", "not YAML", "correct it"),
        ("driver: 580.95.05\ngpus: []", "cuda", "missing", "such as 12.4"),
        ("gpus: {count: 1, model: l4}\ngpus: []", "line 4, column 1", "the key 'gpus' is twice", "correct it"),
        ("gpus: {count: 1, model: l4}\ngpu: 1", "gpu", "unknown key 'gpu'", "did you mean gpus?"),
        ("gpus: 8", "gpus", "8 is not a list", "lines that begin with"),
        ("gpus: {count: many, model: l4}", "gpus.count", "'many' is not a whole number", "write such a number"),
        ("gpus: {count: 33, model: l4}", "gpus.count", "33 is not a whole number from 0 to 32", "write such"),
        ("gpus: {count: 1}", "gpus.model", "missing", "the name of a model"),
        ("gpus: {count: 1, model: h100-sxm-80gb}", "gpus.model", "'h100-sxm-80gb' is no model", "h100-sxm5-80gb"),
        ("gpus: [{model: l4}]", "gpus[0].pci_address", "missing", "such as 0000:1b:00.0"),
        ("gpus: [{model: l4, pci_address: 1b:00.0}]", "gpus[0].pci_address", "'1b:00.0' is not a PCI", "such as"),
        (ONE % "memory_mb: 1", "gpus[0].memory_mb", "unknown key", "did you mean memory_mib"),
        (ONE % "memory_mib: lots", "gpus[0].memory_mib", "'lots' is not a whole number", "write such a number"),
        (ONE % "memory_mib: true", "gpus[0].memory_mib", "True is not a whole number", "write such a number"),
        (ONE % "lost: maybe", "gpus[0].lost", "'maybe' is neither true nor false", "write true or false"),
        (ONE % "ecc: on", "gpus[0].ecc", "'on' is not known", "enabled"),
        (ONE % "architecture: Amper", "gpus[0].architecture", "'Amper' is not known", "did you mean Ampere"),
        (ONE % "compute_capability: 9", "gpus[0].compute_capability", "'9' is not a compute", "such as 9.0"),
        (ONE % "supports: [fabrik]", "gpus[0].supports[0]", "'fabrik' is not known", "did you mean fabric"),
        (ONE % "nvlink_version: 4.5", "gpus[0].nvlink_version", "'4.5' is not known", "4.0"),
        (ONE % "uuid: GPU-1", "gpus[0].uuid", "'GPU-1' is not a GPU UUID", "8-4-4-4-12"),
        (ONE % "cpus: 0..3", "gpus[0].cpus", "'0..3' is not CPUs", "0-55,112-167"),
        (ONE % "minor: 32", "gpus[0].minor", "32 is not a whole number from 0 to 31", "write such a number"),
        (ONE % "links_down: some", "gpus[0].links_down", "'some' is not a list", "write [a, b]"),
        (
            ONE % "calls: {nvmlDeviceGetNam: UNKNOWN}",
            "gpus[0].calls.nvmlDeviceGetNam",
            "is no symbol",
            "nvmlDeviceGetName",
        ),
        (ONE % "calls: {nvmlDeviceGetName: BROKEN}", "gpus[0].calls.nvmlDeviceGetName", "'BROKEN'", "IN_USE"),
        (ONE % "fabric: {cluster_uuid: abc}", "gpus[0].fabric.cluster_uuid", "'abc' is no UUID", "8-4-4-4-12"),
        (ONE % "fabric: {stat: completed}", "gpus[0].fabric.stat", "unknown key", "did you mean state"),
        (ONE % "platform: {slot: 300}", "gpus[0].platform.slot", "300 is not a whole number", "write such"),
        (ONE % "mig: [{profile: 3g.40gb, start: 0}]", "gpus[0].mig.instances[0].profile", "'3g.40gb'", "3g.20gb"),
        (ONE % "mig: [{profile: 3g.20gb, start: 2}]", "gpus[0].mig.instances[0].start", "cannot start at 2", "0, 4"),
        (ONE % "mig: {mode: of}", "gpus[0].mig.mode", "'of' is not known", "disabled"),
        (
            ONE % "mig: [{profile: 3g.20gb, start: 0}, {profile: 1g.5gb, start: 3}]",
            "gpus[0].mig.instances[1].start",
            "1g.5gb at 3 overlaps 3g.20gb at 0",
            "move or remove",
        ),
        (
            ONE % "mig: [{profile: 1g.5gb+me, start: 0}, {profile: 1g.5gb+me, start: 3}]",
            "gpus[0].mig.instances[1].profile",
            "more than 1 of 1g.5gb+me",
            "take some out",
        ),
        (
            ONE % "mig: [{profile: 4g.20gb, start: 0}, {profile: 2g.10gb, start: 4}, {profile: 1g.10gb, start: 6}, "
            "{profile: 1g.5gb, start: 6}]",
            "gpus[0].mig.instances[3].profile",
            "1g.5gb passes the 7 compute slices",
            "take some out",
        ),
        (
            ONE % "mig: [{profile: 3g.20gb, start: 0, id: 7}]",
            "gpus[0].mig.instances[0].id",
            "7 is taken or not for 3g.20gb",
            "one of 1, 2",
        ),
        (
            ONE % "mig: [{profile: 3g.20gb, start: 0, compute: [{slices: 4, start: 0}]}]",
            "gpus[0].mig.instances[0].compute[0].slices",
            "no compute instance of 4 slices",
            "one of 1, 2, 3",
        ),
        (
            ONE % "mig: {mode: disabled, instances: [{profile: 3g.20gb, start: 0}]}",
            "gpus[0].mig.instances",
            "with MIG mode disabled",
            "leave them out",
        ),
        ("gpus: [{model: l4, pci_address: 0000:07:00.0, mig: []}]", "gpus[0].mig", "this model has no MIG", "leave it"),
        (
            "each: {model: l4, pci_address: 0000:07:00.0}\ngpus: [{}, {}]",
            "gpus[1].pci_address",
            "'0000:07:00.0' is also that of gpus[0]",
            "give each its own",
        ),
        (
            "each: {model: l4}\ngpus: [{pci_address: 0000:07:00.0, minor: 1}, {pci_address: 0000:08:00.0}]",
            "gpus[1].minor",
            "1 is also that of gpus[0]",
            "give each its own",
        ),
        (
            "gpus: {count: 2, model: l4}\nlinks: {pairs: [[0, 2]]}",
            "links.pairs[0]",
            "is no pair of GPUs",
            "two of 0 to 1",
        ),
        (
            "gpus: {count: 3, model: h100-nvl}\nlinks: {pairs: [[0, 1], [1, 2]]}",
            "links.pairs[1]",
            "bridges a GPU again",
            "each GPU in one pair",
        ),
        (
            "gpus: {count: 2, model: h100-nvl}\nlinks: {matrix: [[X, NV12], [SYS, X]]}",
            "links.matrix[0][1]",
            "'NV12' faces 'SYS'",
            "the same on both sides",
        ),
        (
            "gpus: {count: 2, model: h100-nvl}\nlinks: {matrix: [[X, NV13], [NV13, X]]}",
            "links.matrix[0]",
            "13 links at 0000:11:00.0, whose model has 12",
            "raise nvlinks",
        ),
        ("gpus: {count: 2, model: l4}\nlinks: {matrix: [[X]]}", "links.matrix[0]", "has not 2 cells", "for each GPU"),
        ("gpus: {count: 2, model: l4}\nlinks: {matrix: [[X, PXI], [PXI, X]]}", "links.matrix[0][1]", "'PXI'", "PIX"),
        ("gpus: {count: 1, model: b200}\nlinks: {switches: none}", "links.switches", "'none' is no list", "hidden"),
        (
            "gpus: {count: 1, model: b200}\nlinks: {switches: [0000:01:00.0], spread: [9, 9]}",
            "links.spread",
            "[9, 9] is not for 1 switches",
            "a number for each switch",
        ),
        ("gpus: []\nsymbols: {absent: [nvmlInit]}", "symbols.absent[0]", "'nvmlInit' is no symbol", "nvmlInit_v2"),
    ],
)
def test_a_mistake_is_told_with_file_key_value_and_remedy(
    text: str, path: str, problem: str, remedy: str, write: Callable[..., Path]
) -> None:
    file = write(text)
    with pytest.raises(described.DescriptionError) as told:
        described.load(file)
    message = str(told.value)
    assert message.startswith(f"{file}: {path}: ")
    assert problem in message
    assert remedy in message.rpartition("; ")[2]
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hgx-h10", "hgx-h10: no description of this name; did you mean hgx-h100"),
        ("/nowhere/node.yaml", "/nowhere/node.yaml: No such file or directory; give the path"),
        ("nowhere.yaml", "nowhere.yaml: No such file or directory; give the path"),
    ],
)
def test_a_description_that_is_not_there_is_told(name: str, message: str) -> None:
    with pytest.raises(described.DescriptionError) as told:
        described.load(name)
    assert str(told.value).startswith(message)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(described.DescriptionError, match="not UTF-8 text"):
        described.load(file)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.touch()
    with pytest.raises(described.DescriptionError, match="None is not a mapping"):
        described.load(file)


@pytest.mark.parametrize(
    "value", ["[" * 3000, "{a: " * 3000, "gpus: &a [*a]", "? [1]\n: 2", "1: 2", "gpus: !!python/x 1"]
)
def test_strange_documents_are_told_too(value: str, tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(f"driver: 580.95.05\ncuda: 13.0\n{value}\n")
    with pytest.raises(described.DescriptionError):
        described.load(file)
