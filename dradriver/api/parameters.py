"""Opaque parameters of gpupool's driver: `gpu.gpupool.dev/v1alpha1` GpuConfig, MigConfig, ShareConfig.

GpuConfig holds `sharing: {strategy: Exclusive|TimeSlicing|MPS, timeSlicing: {interval: Default|Short|Medium|Long},
mps: {activeThreadPercentage, memoryLimit}}`, MigConfig the same without time-slicing, ShareConfig nothing yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from dradriver.api.errors import ParametersError, QuantityError
from dradriver.api.quantity import Quantity

API_VERSION: Final = "gpu.gpupool.dev/v1alpha1"
_WHOLE: Final = 100


class SharingStrategy(StrEnum):
    """How several processes share a device."""

    EXCLUSIVE = "Exclusive"
    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"


class TimeSliceInterval(StrEnum):
    """The length of a time slice, in the driver's own words."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a device is shared; the fields beside `strategy` belong to one strategy each."""

    strategy: SharingStrategy = SharingStrategy.EXCLUSIVE
    interval: TimeSliceInterval | None = None
    active_thread_percentage: int | None = None
    memory_limit: Quantity | None = None


@dataclass(frozen=True, slots=True)
class GpuConfig:
    """Parameters of a whole GPU."""

    sharing: Sharing = field(default_factory=Sharing)


@dataclass(frozen=True, slots=True)
class MigConfig:
    """Parameters of a MIG instance; there is no time-slicing inside one."""

    sharing: Sharing = field(default_factory=Sharing)


@dataclass(frozen=True, slots=True)
class ShareConfig:
    """Parameters of a share of a GPU; none yet."""


Parameters: TypeAlias = GpuConfig | MigConfig | ShareConfig

_STRATEGIES: Final = {
    "GpuConfig": tuple(SharingStrategy),
    "MigConfig": (SharingStrategy.EXCLUSIVE, SharingStrategy.MPS),
}
KINDS: Final = (*_STRATEGIES, "ShareConfig")
"""The kinds of parameters this driver takes."""


def parse(parameters: Mapping[str, Any], *, strict: bool = True) -> Parameters:
    """Read opaque parameters of one of KINDS. Raises ParametersError with the path of what is wrong.

    Args:
        parameters: the JSON object as the claim or class carries it.
        strict: refuse unknown fields. Not when something prepared is taken back: what another version of the driver
            accepted must not stop that.
    """
    root = _Reader(parameters, "", strict=strict)
    root.choice("apiVersion", (API_VERSION,))
    kind = root.choice("kind", KINDS)
    if kind == "ShareConfig":
        root.close()
        return ShareConfig()
    sharing = _sharing(root.child("sharing"), _STRATEGIES[kind])
    root.close()
    return GpuConfig(sharing) if kind == "GpuConfig" else MigConfig(sharing)


def _sharing(reader: _Reader | None, strategies: tuple[SharingStrategy, ...]) -> Sharing:
    if reader is None:
        return Sharing()
    strategy = SharingStrategy(reader.choice("strategy", strategies, default=SharingStrategy.EXCLUSIVE))
    slicing = reader.child("timeSlicing", needs=strategy is SharingStrategy.TIME_SLICING)
    mps = reader.child("mps", needs=strategy is SharingStrategy.MPS)
    reader.close()
    interval = TimeSliceInterval.DEFAULT if strategy is SharingStrategy.TIME_SLICING else None
    if slicing is not None:
        interval = TimeSliceInterval(slicing.choice("interval", tuple(TimeSliceInterval), default="Default"))
        slicing.close()
    if mps is None:
        return Sharing(strategy, interval)
    percentage, memory = mps.percentage("activeThreadPercentage"), mps.amount("memoryLimit")
    mps.close()
    return Sharing(strategy, interval, percentage, memory)


class _Reader:
    """One JSON object of the parameters, at a path; `close` refuses the fields nobody asked for."""

    def __init__(self, data: Any, path: str, *, strict: bool) -> None:
        if not isinstance(data, Mapping):
            raise ParametersError(path or "parameters", f"must be an object, got {data!r:.80}")
        self._data = data
        self._path = path
        self._strict = strict
        self._known: set[str] = set()

    def child(self, key: str, *, needs: bool = True) -> _Reader | None:
        """The object under a key, if any; a key that the chosen strategy does not use (`needs`) is refused."""
        data = self._take(key)
        if data is None:
            return None
        if not needs:
            raise self._wrong(key, f"does not belong to the chosen strategy: remove it or set {self._at('strategy')}")
        return _Reader(data, self._at(key), strict=self._strict)

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """A text that must be one of the choices."""
        data = self._take(key)
        if data is None and default is not None:
            return default
        if data not in choices:
            raise self._wrong(
                key, f"must be {' or '.join(choices)}, {'is missing' if data is None else f'got {data!r:.80}'}"
            )
        return str(data)

    def percentage(self, key: str) -> int | None:
        """A whole number from 1 to 100, if any."""
        data = self._take(key)
        if data is not None and (type(data) is not int or not 1 <= data <= _WHOLE):
            raise self._wrong(key, f"must be a whole number from 1 to {_WHOLE}, got {data!r:.80}")
        return data

    def amount(self, key: str) -> Quantity | None:
        """A quantity above zero, if any."""
        data = self._take(key)
        if data is None:
            return None
        try:
            amount = Quantity.parse(data) if isinstance(data, str) else None
        except QuantityError as error:
            raise self._wrong(key, str(error)) from error
        if amount is None or amount.value <= 0:
            raise self._wrong(key, f"must be a quantity above zero, such as 10Gi, got {data!r:.80}")
        return amount

    def close(self) -> None:
        """Refuse unknown fields, when strict."""
        unknown = sorted(set(self._data) - self._known, key=str) if self._strict else []
        if unknown:
            raise self._wrong(str(unknown[0]), f"unknown field: known here are {', '.join(sorted(self._known))}")

    def _take(self, key: str) -> Any:
        self._known.add(key)
        return self._data.get(key)

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def _wrong(self, key: str, message: str) -> ParametersError:
        return ParametersError(self._at(key), message)
