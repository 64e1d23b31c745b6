"""NVLink domains: sets of GPUs of which any subset is fully connected by NVLink.

Links decide and nothing else: neither the model nor the order on the PCI bus, on the board or in NVML. A GPU in MIG
mode has no peers, since MIG turns peer-to-peer traffic off.
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx

from dradriver.hardware.inventory import Gpu, Inventory, LinkPeer


def peers(inventory: Inventory) -> nx.Graph[int]:
    """Which GPUs reach each other by NVLink, as positions in `inventory.gpus`; `links` of an edge says by how many."""
    graph: nx.Graph[int] = nx.Graph()
    usable = {position: gpu for position, gpu in enumerate(inventory.gpus) if not gpu.mig.enabled}
    graph.add_nodes_from(usable)
    for one, other in combinations(usable, 2):
        links = _links_between(usable[one], usable[other])
        if links:
            graph.add_edge(one, other, links=links)
    return graph


def domains(inventory: Inventory) -> tuple[tuple[str, ...], ...]:
    """GPU UUIDs by NVLink domain, each of at least two GPUs, disjoint, in PCI order; links decide, nothing else.

    Where not everything that is connected is fully connected (a hybrid cube mesh), the largest fully connected group
    is cut out first; of equally large ones that with most links inside, then that which cuts fewest links.
    """
    graph = peers(inventory)
    found = []
    while graph.number_of_edges():
        best = min((tuple(sorted(group)) for group in nx.find_cliques(graph)), key=lambda g: _rank(graph, g))
        found.append(best)
        graph.remove_nodes_from(best)
    return tuple(tuple(inventory.gpus[position].uuid for position in group) for group in sorted(found))


def _rank(graph: nx.Graph[int], group: tuple[int, ...]) -> tuple[int, int, int, tuple[int, ...]]:
    inside = int(graph.subgraph(group).size(weight="links"))
    ends = sum(int(degree) for _, degree in graph.degree(group, weight="links"))
    return -len(group), -inside, ends - 2 * inside, group


def _links_between(one: Gpu, other: Gpu) -> int:
    """Active NVLinks by which two GPUs reach each other, directly or through the node's switches."""
    switched = min(_links_to_switches(one), _links_to_switches(other))
    return switched or min(_links_to(one, other), _links_to(other, one))


def _links_to_switches(gpu: Gpu) -> int:
    return sum(link.active and link.peer is LinkPeer.SWITCH for link in gpu.links)


def _links_to(gpu: Gpu, peer: Gpu) -> int:
    return sum(link.active and link.remote == peer.pci_address for link in gpu.links if link.remote is not None)
