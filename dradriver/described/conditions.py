"""Reading what is wrong with hardware: the same words in a description and in a file of faults."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from dradriver.described.codes import Code
from dradriver.described.documents import Fields
from dradriver.described.errors import choices, shown
from dradriver.described.gpu import Condition, Fabric, FabricHealth, FabricState, Link, Peer
from dradriver.described.model import Architecture, Model, Support
from dradriver.described.symbols import NAMES

ALL_LINKS = frozenset(range(64))


def condition(fields: Fields) -> Condition:
    """The keys `lost`, `calls` and `links_down`. Raises DescriptionError."""
    lost = fields.flag("lost", default=False) if "lost" in fields else None
    return Condition(lost, calls(fields), _links_down(fields))


def calls(fields: Fields) -> dict[str, Code]:
    """The key `calls`: C symbol → the code it answers. Raises DescriptionError."""
    table = fields.section("calls", optional=True)
    for symbol in table.keys():  # noqa: SIM118 - Fields is no mapping
        check_symbol(table, symbol, symbol)
    return {symbol: table.one_of(symbol, Code) for symbol in table.keys()}  # noqa: SIM118 - as above


def check_symbol(fields: Fields, key: str, symbol: str, names: Collection[str] = NAMES) -> None:
    """Raise DescriptionError for what is no C symbol of the library."""
    if symbol not in names:
        raise fields.error(key, f"{shown(symbol)} is no symbol of the described library", choices(symbol, names))


def fabric(fields: Fields, model: Model, links: tuple[Link | None, ...]) -> Fabric:
    """The keys of `fabric`; by default what one board with switches of its own reports. Raises DescriptionError."""
    switched = Support.FABRIC in model.supports and any(link and link.peer is Peer.SWITCH for link in links)
    newer = model.architecture >= Architecture.Blackwell
    text = fields.text("cluster_uuid", None)
    try:
        cluster = uuid.UUID(text).bytes if text else bytes(16)
    except ValueError as error:
        raise fields.error("cluster_uuid", f"{shown(text)} is no UUID", "write 8-4-4-4-12 hex digits") from error
    state = fields.one_of("state", FabricState, FabricState.completed if switched else FabricState.not_supported)
    health = FabricHealth.healthy if newer and state is FabricState.completed else FabricHealth.not_supported
    found = Fabric(
        state,
        fields.one_of("status", Code, Code.SUCCESS),
        cluster,
        fields.number("clique", 0, most=0xFFFFFFFF),
        fields.one_of("health", FabricHealth, health),
    )
    fields.done()
    return found


def _links_down(fields: Fields) -> frozenset[int]:
    if fields.raw("links_down") == "all":
        return ALL_LINKS
    return frozenset(fields.numbers("links_down", default=(), most=35))
