"""NVLink domains of real machines: any GPUs taken from one domain are fully connected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dradriver import api, described, hardware
from dradriver.hardware import Gpu, Inventory, Link, LinkPeer, MigInstance, MigState, Placement, Roots

ALL8 = [0, 1, 2, 3, 4, 5, 6, 7]
SWITCHES = ["0000:c3:00.0", "0000:c4:00.0", "0000:c5:00.0", "0000:c6:00.0"]

# Worked out from the printed matrices: domains, then for each GPU how many others it reaches and by how many links.
EXPECTED: dict[str, tuple[list[list[int]], list[int], list[int]]] = {
    # Two boards of four, each fully connected; between them only the pairs 0-4, 1-5, 2-6, 3-7.
    "dgx1-v100-hybrid-cube-mesh": ([[0, 1, 2, 3], [4, 5, 6, 7]], [4] * 8, [6] * 8),
    "dgx-a100-40gb": ([ALL8], [7] * 8, [12] * 8),
    "a800-8gpu": ([ALL8], [7] * 8, [8] * 8),
    "a100-4gpu-direct-nv4": ([[0, 1, 2, 3]], [3] * 4, [12] * 4),
    "dgx-h100": ([ALL8], [7] * 8, [18] * 8),
    "hgx-h100-8gpu-2numa": ([ALL8], [7] * 8, [18] * 8),
    "hgx-h100-8gpu-4numa": ([ALL8], [7] * 8, [18] * 8),
    "hgx-h100-pairs-on-switch": ([ALL8], [7] * 8, [18] * 8),
    "h100-4gpu-direct-nv6": ([[0, 1, 2, 3]], [3] * 4, [18] * 4),
    "hgx-h200-8gpu": ([ALL8], [7] * 8, [18] * 8),
    "hgx-b200-8gpu": ([ALL8], [7] * 8, [18] * 8),
    "hgx-b200-with-nics-a": ([ALL8], [7] * 8, [18] * 8),
    "hgx-b200-one-gpu-off-fabric": (
        [[0, 1, 3, 4, 5, 6, 7]],
        [6, 6, 0, 6, 6, 6, 6, 6],
        [18, 18, 0, 18, 18, 18, 18, 18],
    ),
    "dgx2-16-v100": ([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]], [15] * 16, [6] * 16),
    "a100-80gb-pcie-bridged-pairs": ([[0, 1], [2, 3]], [1] * 4, [12] * 4),
    "h100-pcie-8gpu-bridged": ([[0, 5], [1, 2], [3, 4], [6, 7]], [1] * 8, [12] * 8),
    "h100-nvl-8gpu-pairs": ([[0, 1], [2, 3], [4, 5], [6, 7]], [1] * 8, [12] * 8),
    "pcie-4gpu-degraded-bridge": ([[0, 1], [2, 3]], [1] * 4, [12, 12, 10, 10]),
    "mixed-a100-sxm-and-pcie": ([[0, 1]], [1, 1, 0, 0], [12, 12, 0, 0]),
    "l40s-4gpu": ([], [0] * 4, [0] * 4),
    "rtx4090-8gpu": ([], [0] * 8, [0] * 8),
    "rtx5090-2gpu": ([], [0] * 2, [0] * 2),
    "gb200-compute-tray": ([[0, 1, 2, 3]], [3] * 4, [18] * 4),
    "gh200-2gpu": ([[0, 1]], [1] * 2, [18] * 2),
}


@dataclass(frozen=True)
class Machine:
    """A printed matrix: NVLinks between GPUs, and what they lead to."""

    name: str
    wiring: str
    cells: list[list[str]]

    @property
    def nvlinks(self) -> list[list[int]]:
        """Links by GPU and peer."""
        return [[int(cell) if cell.isdecimal() else 0 for cell in row] for row in self.cells]

    def inventory(self, places: Sequence[int] | None = None) -> Inventory:
        """As NVML would tell it, with GPU k of the matrix at PCI bus `places[k]`; the UUID keeps k."""
        places = range(len(self.nvlinks)) if places is None else places
        addresses = [f"0000:{0x10 + place:02x}:00.0" for place in places]
        gpus = [
            Gpu(
                uuid=f"GPU-{k}",
                nvml_index=len(places) - place,
                pci_address=addresses[k],
                links=self._links(k, addresses),
            )
            for k, place in enumerate(places)
        ]
        return Inventory(tuple(sorted(gpus, key=lambda gpu: gpu.pci_address or "")))

    def description(self, order: Sequence[int], places: Sequence[int], modules: Sequence[int]) -> dict[str, object]:
        """As a described node: its GPUs in NVML's order, each with its place on the bus and on the board."""
        spelled = [[_spelled(cell) for cell in row] for row in self.cells]
        links: dict[str, object] = {"matrix": [[spelled[k][peer] for peer in order] for k in order]}
        if self.wiring in {"switched", "hidden"}:
            links["switches"] = SWITCHES if self.wiring == "switched" else "hidden"
        count = max(max(row) if self.wiring in {"switched", "hidden"} else sum(row) for row in self.nvlinks)
        gpus = [
            {
                "model": "h100-sxm5-80gb",
                "nvlinks": count,
                "uuid": f"GPU-00000000-0000-0000-0000-{k:012x}",
                "pci_address": f"0000:{0x10 + places[k]:02x}:00.0",
                "module_id": modules[k] + 1,
            }
            for k in order
        ]
        return {"driver": "580.95.05", "cuda": "13.0", "gpus": gpus, "links": links}

    def _links(self, k: int, addresses: list[str]) -> tuple[Link, ...]:
        if self.wiring == "direct":
            ends = [(LinkPeer.GPU, addresses[peer]) for peer, count in enumerate(self.nvlinks[k]) for _ in range(count)]
        else:
            width = max(self.nvlinks[k], default=0)
            ends = [(LinkPeer.SWITCH, SWITCHES[n % 4] if self.wiring == "switched" else None) for n in range(width)]
        up = [Link(number, active=True, peer=peer, remote=remote) for number, (peer, remote) in enumerate(ends)]
        down = [Link(number, active=False) for number in range(len(up), max(map(max, self.nvlinks)))]
        return (*up, *down)


def _spelled(cell: str) -> str:
    return "X" if cell == "." else f"NV{cell}" if cell.isdecimal() else cell.upper()


def machines() -> Iterator[Machine]:
    text = (Path(__file__).parent / "topologies.txt").read_text(encoding="ascii")
    blocks = "\n".join(line for line in text.splitlines() if not line.startswith("#")).split("[")[1:]
    for block in blocks:
        head, *rows = block.strip().splitlines()
        name, wiring = head.rstrip("]").split()
        yield Machine(name, wiring, [row.split() for row in rows])


MACHINES = {machine.name: machine for machine in machines()}
GROUPS = {name: {frozenset(f"GPU-{k}" for k in group) for group in groups} for name, (groups, _, _) in EXPECTED.items()}


def devices(inventory: Inventory, numbers: Sequence[int] | None = None, pool: str = "node-a") -> list[api.Device]:
    named = {gpu.uuid: n for gpu, n in zip(inventory.gpus, numbers or range(99), strict=False)}
    return [offer.device for offer in hardware.offer(inventory, named, pool=pool, roots=Roots(proc=Path("/nowhere")))]


def test_every_transcribed_machine_has_its_domains_written_out() -> None:
    assert list(MACHINES) == list(EXPECTED)
    assert len(MACHINES) == 24


@pytest.mark.parametrize("name", EXPECTED)
def test_domains_peers_and_links_of_a_real_machine(name: str) -> None:
    groups, peers, links = EXPECTED[name]
    inventory = MACHINES[name].inventory()
    assert hardware.domains(inventory) == tuple(tuple(f"GPU-{k}" for k in group) for group in groups)
    published = devices(inventory)
    assert [device.attributes["nvlinkPeers"] for device in published] == peers
    assert [device.attributes["nvlinkLinks"] for device in published] == links
    lowest = {k: f"node-a.nvl{group[0]}" for group in groups for k in group}
    assert {k: v for k, d in enumerate(published) if (v := d.attributes.get("nvlinkDomain"))} == lowest


@pytest.mark.parametrize("name", EXPECTED)
@settings(max_examples=20)
@given(data=st.data())
def test_order_on_the_bus_and_in_nvml_decides_nothing(name: str, data: st.DataObject) -> None:
    machine = MACHINES[name]
    places = data.draw(st.permutations(range(len(machine.nvlinks))))
    assert {frozenset(group) for group in hardware.domains(machine.inventory(places))} == GROUPS[name]


def ascending(size: int) -> list[int]:
    return list(range(size))


def descending(size: int) -> list[int]:
    return ascending(size)[::-1]


def scattered(size: int) -> list[int]:
    return ascending(size)[1::2] + ascending(size)[::2]


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("order", [ascending, descending, scattered])
def test_domains_read_from_a_described_machine(name: str, order: Callable[[int], list[int]], tmp_path: Path) -> None:
    machine = MACHINES[name]
    size = len(machine.cells)
    file = tmp_path / "node.yaml"
    file.write_text(json.dumps(machine.description(order(size), order(size)[::-1], scattered(size))))
    nvml = hardware.Nvml(library=described.Library(described.load(file), tmp_path / "state"))
    try:
        inventory = hardware.read(nvml, Roots.under(tmp_path))
    finally:
        nvml.close()
    found = {frozenset(f"GPU-{int(uuid[-12:], 16)}" for uuid in group) for group in hardware.domains(inventory)}
    assert found == GROUPS[name]
    links = {int(gpu.uuid[-12:], 16): sum(link.active for link in gpu.links) for gpu in inventory.gpus}
    assert [links[k] for k in range(size)] == EXPECTED[name][2]


def test_domains_and_their_members_come_in_pci_order() -> None:
    inventory = MACHINES["h100-pcie-8gpu-bridged"].inventory([7, 6, 5, 4, 3, 2, 1, 0])
    assert hardware.domains(inventory) == (
        ("GPU-7", "GPU-6"),
        ("GPU-5", "GPU-0"),
        ("GPU-4", "GPU-3"),
        ("GPU-2", "GPU-1"),
    )


def in_mig_mode(inventory: Inventory, *uuids: str, pending: bool = False) -> Inventory:
    instance = MigInstance("MIG-1", 1, 0, "1g.10gb", Placement(0, 1), 9984)
    mode = MigState(capable=True, enabled=True, pending=pending, instances=(instance,))
    return replace(
        inventory, gpus=tuple(replace(gpu, mig=mode) if gpu.uuid in uuids else gpu for gpu in inventory.gpus)
    )


def test_a_gpu_in_mig_mode_leaves_its_domain_and_its_peers_count_it_no_more() -> None:
    inventory = in_mig_mode(MACHINES["dgx-h100"].inventory(), "GPU-0", "GPU-3")
    assert hardware.domains(inventory) == (tuple(f"GPU-{k}" for k in (1, 2, 4, 5, 6, 7)),)
    whole = [device for device in devices(inventory) if device.attributes["type"] == "gpu"]
    assert {device.attributes["nvlinkDomain"] for device in whole} == {"node-a.nvl1"}
    assert {device.attributes["nvlinkPeers"] for device in whole} == {5}


def test_the_partner_of_a_bridged_gpu_in_mig_mode_has_no_domain() -> None:
    inventory = in_mig_mode(MACHINES["h100-nvl-8gpu-pairs"].inventory(), "GPU-1")
    assert hardware.domains(inventory) == (("GPU-2", "GPU-3"), ("GPU-4", "GPU-5"), ("GPU-6", "GPU-7"))


def test_a_mesh_with_a_gpu_in_mig_mode_is_cut_anew() -> None:
    # Without GPU 0 its board is the triangle 1-2-3; GPU 4 loses its only link to that board.
    inventory = in_mig_mode(MACHINES["dgx1-v100-hybrid-cube-mesh"].inventory(), "GPU-0")
    assert hardware.domains(inventory) == (("GPU-1", "GPU-2", "GPU-3"), ("GPU-4", "GPU-5", "GPU-6", "GPU-7"))


def direct(*edges: tuple[int, int, int], size: int) -> Inventory:
    cells = [["sys"] * size for _ in range(size)]
    for one, other, count in edges:
        cells[one][other] = cells[other][one] = str(count)
    return Machine("drawn", "direct", cells).inventory()


def test_of_equally_large_groups_that_with_most_links_is_cut_out_first() -> None:
    assert hardware.domains(direct((0, 1, 1), (1, 2, 2), (2, 3, 1), size=4)) == (("GPU-1", "GPU-2"),)


def test_of_equally_strong_groups_that_which_cuts_fewest_links_is_cut_out_first() -> None:
    assert hardware.domains(direct((0, 2, 1), (0, 3, 1), (1, 3, 1), size=4)) == (("GPU-0", "GPU-2"), ("GPU-1", "GPU-3"))


def test_a_link_that_only_one_end_reports_connects_nothing() -> None:
    inventory = direct((0, 1, 4), size=2)
    silent = replace(inventory.gpus[1], links=())
    assert hardware.domains(replace(inventory, gpus=(inventory.gpus[0], silent))) == ()


def test_a_link_to_a_gpu_that_is_not_of_this_machine_connects_nothing() -> None:
    link = Link(0, active=True, peer=LinkPeer.GPU, remote="0000:99:00.0")
    gpus = (Gpu("GPU-0", 0, "0000:10:00.0", links=(link,)), Gpu("GPU-1", 1, "0000:11:00.0", links=(link,)))
    assert hardware.domains(Inventory(gpus)) == ()


def test_active_links_with_an_untold_end_connect_nothing() -> None:
    hidden = (Link(0, active=True), Link(1, active=True))
    assert hardware.domains(Inventory((Gpu("GPU-0", 0, None, links=hidden), Gpu("GPU-1", 1, None, links=hidden)))) == ()


def test_a_domain_is_named_after_the_lowest_number_of_its_members() -> None:
    published = devices(MACHINES["h100-pcie-8gpu-bridged"].inventory(), numbers=[7, 6, 5, 4, 3, 2, 1, 0])
    assert published[7].name == "gpu-7"
    assert published[7].attributes["nvlinkDomain"] == "node-a.nvl2"  # GPUs 0 and 5 of the bus: numbers 7 and 2


def test_a_long_pool_name_is_cut_in_domain_names_and_stays_unique() -> None:
    first, second = (f"{'very-long-name-of-a-node.' * 8}{end}" for end in ("a", "b"))
    names = {
        str(device.attributes["nvlinkDomain"])
        for pool in (first, second)
        for device in devices(MACHINES["gh200-2gpu"].inventory(), pool=pool)
    }
    assert len(names) == 2
    assert all(len(name) == len(".nvl0") + 40 for name in names)
    forty = "n" * 40
    assert devices(MACHINES["gh200-2gpu"].inventory(), pool=forty)[0].attributes["nvlinkDomain"] == f"{forty}.nvl0"


@st.composite
def drawn(draw: st.DrawFn) -> Inventory:
    size = draw(st.integers(0, 7))
    edges = [(one, other, draw(st.integers(0, 3))) for one, other in combinations(range(size), 2)]
    return direct(*edges, size=size)


@settings(max_examples=60)
@given(drawn())
def test_domains_are_disjoint_fully_connected_and_leave_nobody_who_could_pair_up(inventory: Inventory) -> None:
    by_uuid = {gpu.uuid: gpu for gpu in inventory.gpus}

    def connected(one: str, other: str) -> bool:
        return any(link.remote == by_uuid[other].pci_address for link in by_uuid[one].links)

    groups = hardware.domains(inventory)
    members = [uuid for group in groups for uuid in group]
    assert len(members) == len(set(members))
    assert all(len(group) >= 2 for group in groups)
    assert all(connected(one, other) for group in groups for one, other in combinations(group, 2))
    alone = [uuid for uuid in by_uuid if uuid not in members]
    assert not any(connected(one, other) for one, other in combinations(alone, 2))
    largest = max((len(group) for group in groups), default=0)
    assert not any(
        all(connected(one, other) for one, other in combinations(group, 2))
        for group in combinations(by_uuid, largest + 1)
        if largest
    )
