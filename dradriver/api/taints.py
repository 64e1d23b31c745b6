"""Device taints and the tolerations of requests (KEP-5055)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TaintEffect(StrEnum):
    """What a taint does; an effect this version does not know reads as NONE."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """How a toleration compares: the key alone, or key and value."""

    EXISTS = "Exists"
    EQUAL = "Equal"


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark on a device; `time_added` (RFC 3339) is filled in by the server when absent."""

    key: str
    effect: TaintEffect
    value: str = ""
    time_added: str | None = None


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a request accepts; an empty key with Exists accepts every taint, an empty effect every effect.

    An operator this version does not know stays a plain string and accepts nothing.
    """

    key: str = ""
    operator: str = TolerationOperator.EQUAL
    value: str = ""
    effect: TaintEffect | None = None
    toleration_seconds: int | None = None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether a toleration covers a taint.

    Source: dynamic-resource-allocation `resourceclaim.ToleratesTaint`.
    """
    if toleration.effect is not None and toleration.effect is not taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == TolerationOperator.EXISTS:
        return True
    if toleration.operator != TolerationOperator.EQUAL:
        return False
    return bool(toleration.key) and toleration.value == taint.value
