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
    POOL_IN_FLUX = "GP401"
    DEVICE_TAINTED = "GP402"
    NODE_CLOSED = "GP403"
    NO_DEVICES_PUBLISHED = "GP404"
    NOT_READABLE = "GP501"
    SEARCH_TOO_LONG = "GP502"


TITLES = {
    Code.CLASS_MISSING: "the device class does not exist",
    Code.EXPRESSION_REFUSED: "a CEL expression does not compile",
    Code.TOO_MANY_DEVICES: "a claim gets at most 32 devices",
    Code.SELECTED_BY_NONE: "no device meets the selectors",
    Code.SELECTOR_ERRS: "a selector fails on a device",
    Code.CLAIM_NOT_GENERATED: "the pod's claim was not generated",
    Code.REQUEST_REFUSED: "the scheduler refuses the request",
    Code.HELD_BY_OTHERS: "other claims hold the devices",
    Code.NOT_ENOUGH_HARDWARE: "there are too few such devices on any node",
    Code.PARTS_HELD_BY_OTHERS: "other claims hold parts of the hardware these devices need",
    Code.NO_SUCH_GROUP: "no group of devices agrees on the attribute",
    Code.GROUP_HELD_BY_OTHERS: "the devices that agree on the attribute are partly held",
    Code.POOL_IN_FLUX: "a pool is being published",
    Code.DEVICE_TAINTED: "devices are tainted or unhealthy",
    Code.NODE_CLOSED: "nodes are cordoned or tainted",
    Code.NO_DEVICES_PUBLISHED: "no driver has published devices",
    Code.NOT_READABLE: "facts are missing",
    Code.SEARCH_TOO_LONG: "the search was given up",
}
"""One line for each code, without full stop."""
