"""What an idle GPU says of temperature, power, load and processes."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import fill, pointed, put, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.symbols.area import Area

_IDLE_CELSIUS: Final = 34
_IDLE_SHARE: Final = 10  # of the power limit
_DEEP_IDLE: Final = 8  # NVML_PSTATE_8
_SAMPLING_US: Final = 167_000


class Telemetry(Area):
    """Nothing runs on described hardware."""

    def nvmlDeviceGetTemperature(self, device: Any, sensor: Any, celsius: Any) -> None:
        del sensor
        self.machine.whole(device)
        put(celsius, _IDLE_CELSIUS)

    def nvmlDeviceGetTemperatureV(self, device: Any, info: Any) -> None:
        self.machine.whole(device)
        fill(versioned(info, 1), temperature=_IDLE_CELSIUS)

    def nvmlDeviceGetPowerUsage(self, device: Any, milliwatts: Any) -> None:
        put(milliwatts, self._limit(device) // _IDLE_SHARE)

    def nvmlDeviceGetPowerManagementLimit(self, device: Any, milliwatts: Any) -> None:
        put(milliwatts, self._limit(device))

    def nvmlDeviceGetPowerManagementDefaultLimit(self, device: Any, milliwatts: Any) -> None:
        put(milliwatts, self._limit(device))

    def nvmlDeviceGetEnforcedPowerLimit(self, device: Any, milliwatts: Any) -> None:
        put(milliwatts, self._limit(device))

    def nvmlDeviceGetUtilizationRates(self, device: Any, rates: Any) -> None:
        self._not_in_mig_mode(device)
        fill(pointed(rates), gpu=0, memory=0)

    def nvmlDeviceGetEncoderUtilization(self, device: Any, share: Any, period: Any) -> None:
        self._not_in_mig_mode(device)
        put(share, 0)
        put(period, _SAMPLING_US)

    def nvmlDeviceGetDecoderUtilization(self, device: Any, share: Any, period: Any) -> None:
        self.nvmlDeviceGetEncoderUtilization(device, share, period)

    def nvmlDeviceGetPerformanceState(self, device: Any, state: Any) -> None:
        self.machine.whole(device)
        put(state, _DEEP_IDLE)

    def nvmlDeviceGetComputeMode(self, device: Any, mode: Any) -> None:
        self.machine.gpu(device)
        put(mode, 0)

    def nvmlDeviceGetPersistenceMode(self, device: Any, mode: Any) -> None:
        self.machine.whole(device)
        put(mode, 1)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: Any, count: Any, processes: Any) -> None:
        del processes
        self.machine.gpu(device)
        put(count, 0)

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, device: Any, count: Any, processes: Any) -> None:
        self.nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes)

    def nvmlDeviceGetMPSComputeRunningProcesses_v3(self, device: Any, count: Any, processes: Any) -> None:
        self.nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes)

    def _limit(self, device: Any) -> int:
        watts = self.machine.whole(device).model.power_limit_w
        if watts is None:
            raise Refusal(Code.NOT_SUPPORTED)
        return watts * 1000

    def _not_in_mig_mode(self, device: Any) -> None:
        if self.machine.partitioning(self.machine.gpu(device)).enabled:
            raise Refusal(Code.NOT_SUPPORTED)  # per instance there is GPM instead
