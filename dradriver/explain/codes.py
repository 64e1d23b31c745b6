"""Codes of answers: stable, one for each cause that leads a person to another remedy.

GP1xx configuration, GP2xx capacity, GP3xx topology and constraints, GP4xx health of drivers and nodes, GP5xx policy.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What stands in the way, most specific first."""

    CLASS_MISSING = "GP101"
    EXPRESSION_REFUSED = "GP102"
    TOO_MANY_DEVICES = "GP103"
    SELECTED_BY_NONE = "GP104"
    SELECTOR_ERRS = "GP105"
    CLAIM_NOT_GENERATED = "GP106"
    REQUEST_REFUSED = "GP107"
    HELD_BY_OTHERS = "GP201"
    NOT_ENOUGH_HARDWARE = "GP202"
    PARTS_HELD_BY_OTHERS = "GP203"
    NO_SUCH_GROUP = "GP301"
    GROUP_HELD_BY_OTHERS = "GP302"
    NOT_TOGETHER = "GP303"
    NODES_LEFT_OUT = "GP304"
    POOL_IN_FLUX = "GP401"
    DEVICE_TAINTED = "GP402"
    NODE_CLOSED = "GP403"
    NO_DEVICES_PUBLISHED = "GP404"
    POOL_INVALID = "GP405"
    NOT_READABLE = "GP501"
    SEARCH_TOO_LONG = "GP502"


TITLES = {
    Code.CLASS_MISSING: "no such device class",
    Code.EXPRESSION_REFUSED: "CEL does not compile",
    Code.TOO_MANY_DEVICES: "more than 32 devices",
    Code.SELECTED_BY_NONE: "no device selected",
    Code.SELECTOR_ERRS: "a selector fails",
    Code.CLAIM_NOT_GENERATED: "no such claim",
    Code.REQUEST_REFUSED: "request refused",
    Code.HELD_BY_OTHERS: "held by other claims",
    Code.NOT_ENOUGH_HARDWARE: "too few on any node",
    Code.PARTS_HELD_BY_OTHERS: "parts held by other claims",
    Code.NO_SUCH_GROUP: "no such group",
    Code.GROUP_HELD_BY_OTHERS: "group held by other claims",
    Code.NOT_TOGETHER: "not all at once",
    Code.NODES_LEFT_OUT: "nodes left out by the pod",
    Code.POOL_IN_FLUX: "a pool is being published",
    Code.DEVICE_TAINTED: "devices tainted",
    Code.NODE_CLOSED: "nodes closed",
    Code.NO_DEVICES_PUBLISHED: "no devices published",
    Code.POOL_INVALID: "a pool is invalid",
    Code.NOT_READABLE: "facts are missing",
    Code.SEARCH_TOO_LONG: "search given up",
}
"""A few words for each code, to stand behind it."""
