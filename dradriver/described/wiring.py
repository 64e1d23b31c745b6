"""How the GPUs of a node are wired: which NVLinks lead where, and how far apart GPUs are on PCIe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from dradriver.described.documents import Fields
from dradriver.described.errors import choices, shown
from dradriver.described.gpu import Link, Peer

ADDRESS: Final = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
LIKE_ADDRESS: Final = "a PCI address such as 0000:1b:00.0"
_HIDDEN: Final = "hidden"
_NVLINKS: Final = re.compile(r"NV(\d+)")


class Level(IntEnum):
    """nvmlGpuTopologyLevel_t, by the letters of `nvidia-smi topo -m`."""

    X = 0
    PIX = 10
    PXB = 20
    PHB = 30
    NODE = 40
    SYS = 50


@dataclass(frozen=True, slots=True)
class Seat:
    """Where one GPU sits, and how many NVLinks it has."""

    address: str
    root: str
    switch: str | None
    numa_node: int | None
    links: int


@dataclass(frozen=True, slots=True)
class Wiring:
    """For each GPU its links by number, and its level to each other GPU."""

    links: tuple[tuple[Link | None, ...], ...]
    levels: tuple[tuple[Level, ...], ...]


def wire(fields: Fields, seats: Sequence[Seat]) -> Wiring:
    """The wiring by the key `links` of a description: switches, pairs or a matrix. Raises DescriptionError."""
    matrix = _matrix(fields, len(seats))
    switches = _switches(fields)
    pairs = fields.items("pairs", default=())
    if pairs and (matrix or switches):
        raise fields.error("pairs", "stands beside matrix or switches", "use one way to tell the links")
    if switches:
        reached = [_most(row) for row in matrix] if matrix else [seat.links for seat in seats]
        spread = fields.numbers("spread", default=())
        links = [
            _switched(fields, seat, i, _spread(fields, spread, reached[i], len(switches)), switches)
            for i, seat in enumerate(seats)
        ]
    else:
        counts = [[_nvlinks(cell) for cell in row] for row in matrix] if matrix else _paired(fields, pairs, seats)
        links = [_direct(fields, seats, i, row) for i, row in enumerate(counts)]
    fields.done()
    levels = tuple(
        tuple(_level(seats[i], seats[j], matrix[i][j] if matrix else "") for j in range(len(seats)))
        for i in range(len(seats))
    )
    return Wiring(tuple(tuple(row) for row in links), levels)


def _matrix(fields: Fields, size: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for i, row in enumerate(fields.items("matrix", default=())):
        if not isinstance(row, list) or len(row) != size:
            raise fields.error(f"matrix[{i}]", f"{shown(row)} has not {size} cells", "write a cell for each GPU")
        for j, cell in enumerate(row):
            if not isinstance(cell, str) or not (_NVLINKS.fullmatch(cell) or cell in Level.__members__):
                known = [*Level.__members__, "NV18"]
                raise fields.error(f"matrix[{i}][{j}]", f"{shown(cell)} is not known", choices(str(cell), known))
        rows.append(row)
    if rows and len(rows) != size:
        raise fields.error("matrix", f"{len(rows)} rows for {size} GPUs", "write a row for each GPU")
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if (cell == "X") != (i == j) or cell != rows[j][i]:
                problem = f"{shown(cell)} faces {shown(rows[j][i])}"
                raise fields.error(
                    f"matrix[{i}][{j}]", problem, "write X on the diagonal, the same on both sides of it"
                )
    return rows


def _switches(fields: Fields) -> list[str | None]:
    found = fields.raw("switches")
    if found is None:
        return []
    if found == _HIDDEN:
        return [None]
    if not isinstance(found, list) or not found:
        raise fields.error("switches", f"{shown(found)} is no list", f"list PCI addresses, or write {_HIDDEN}")
    for i, address in enumerate(found):
        if not isinstance(address, str) or not re.fullmatch(ADDRESS, address):
            raise fields.error(f"switches[{i}]", f"{shown(address)} is not {LIKE_ADDRESS}", "write one in lower case")
    return found


def _spread(fields: Fields, spread: tuple[int, ...], links: int, switches: int) -> list[int]:
    if not links:  # off the fabric
        return [0] * switches
    if not spread:
        return [links // switches + (i < links % switches) for i in range(switches)]
    if len(spread) != switches:
        raise fields.error(
            "spread", f"{shown(list(spread))} is not for {switches} switches", "a number for each switch"
        )
    return list(spread)


def _switched(
    fields: Fields, seat: Seat, position: int, spread: list[int], switches: list[str | None]
) -> list[Link | None]:
    """Links to switches; which switch gets more of them differs from GPU to GPU, as on real boards."""
    turn = position % len(switches)
    order = switches[turn:] + switches[:turn]
    links: list[Link | None] = [Link(Peer.SWITCH, to) for to, n in zip(order, spread, strict=True) for _ in range(n)]
    return _padded(fields, "spread", links, seat)


def _paired(fields: Fields, pairs: tuple[object, ...], seats: Sequence[Seat]) -> list[list[int]]:
    counts = [[0] * len(seats) for _ in seats]
    for i, pair in enumerate(pairs):
        valid = isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, int) for n in pair)  # noqa: PLR2004 - a pair
        if not isinstance(pair, list) or not valid or not all(0 <= n < len(seats) for n in pair) or pair[0] == pair[1]:
            raise fields.error(f"pairs[{i}]", f"{shown(pair)} is no pair of GPUs", f"two of 0 to {len(seats) - 1}")
        one, other = pair
        if any(counts[one]) or any(counts[other]):
            raise fields.error(f"pairs[{i}]", f"{shown(pair)} bridges a GPU again", "put each GPU in one pair")
        counts[one][other] = counts[other][one] = min(seats[one].links, seats[other].links)
    return counts


def _direct(fields: Fields, seats: Sequence[Seat], position: int, counts: list[int]) -> list[Link | None]:
    links: list[Link | None] = [
        Link(Peer.GPU, seats[other].address) for other, count in enumerate(counts) for _ in range(count)
    ]
    return _padded(fields, f"matrix[{position}]", links, seats[position])


def _padded(fields: Fields, key: str, links: list[Link | None], seat: Seat) -> list[Link | None]:
    if len(links) > seat.links:
        problem = f"{len(links)} links at {seat.address}, whose model has {seat.links}"
        raise fields.error(key, problem, "lower the number, or raise nvlinks of that GPU")
    return links + [None] * (seat.links - len(links))


def _nvlinks(cell: str) -> int:
    found = _NVLINKS.fullmatch(cell)
    return int(found[1]) if found else 0


def _most(row: list[str]) -> int:
    return max(_nvlinks(cell) for cell in row)


def _level(one: Seat, other: Seat, cell: str) -> Level:
    if cell in Level.__members__:
        return Level[cell]
    if one is other:
        return Level.X
    if one.switch is not None and one.switch == other.switch:
        return Level.PIX
    if one.root == other.root:
        return Level.PHB
    return Level.NODE if one.numa_node == other.numa_node else Level.SYS
