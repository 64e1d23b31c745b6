"""The NVLink fabric beyond the node, and the place in the rack."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

import uuid
from typing import Any, Final

from dradriver.described.arguments import fill, fill_bytes, pointed, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Fabric, FabricHealth
from dradriver.described.model import Support
from dradriver.described.symbols.area import Area

# nvmlGpuFabricInfo_v2_t.healthMask: two bits each (0 not supported, 1 true, 2 false) for degraded bandwidth, route
# recovery, unhealthy routes and access time-out, then four bits of configuration (1 none wrong).
_HEALTHY_MASK: Final = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8
_UNHEALTHY_MASK: Final = 1 | 2 << 2 | 1 << 4 | 2 << 6 | 1 << 8
_MASKS: Final = {FabricHealth.not_supported: 0, FabricHealth.healthy: _HEALTHY_MASK}


class FabricAndPlatform(Area):
    """What Hopper and newer tell of their fabric, and Blackwell of its rack."""

    def nvmlDeviceGetGpuFabricInfo(self, device: Any, info: Any) -> None:
        self._fill(pointed(info), self._fabric(device))

    def nvmlDeviceGetGpuFabricInfoV(self, device: Any, info: Any) -> None:
        struct = versioned(info, 2, 3)
        self._fill(struct, self._fabric(device))

    def nvmlDeviceGetGpuFabricInfo_v4(self, device: Any, info: Any) -> None:
        struct, fabric = pointed(info), self._fabric(device)
        self._fill(struct, fabric)
        struct.numCliques = 1
        fill(struct.cliques[0], type=0, id=fabric.clique)

    def nvmlDeviceGetC2cModeInfoV(self, device: Any, info: Any) -> None:
        model = self.machine.whole(device).model
        if Support.C2C not in model.supports:
            raise Refusal(Code.NOT_SUPPORTED)
        fill(pointed(info), isC2cEnabled=1)

    def nvmlDeviceGetPlatformInfo(self, device: Any, info: Any) -> None:
        struct, gpu = versioned(info, 1, 2), self.machine.whole(device)
        if Support.PLATFORM not in gpu.model.supports:
            raise Refusal(Code.NOT_SUPPORTED)
        place = gpu.platform
        fill_bytes(struct, "ibGuid", uuid.UUID(gpu.uuid.removeprefix("GPU-")).bytes)
        serial = "rackGuid" if hasattr(struct, "rackGuid") else "chassisSerialNumber"
        fill_bytes(struct, serial, place.chassis_serial.encode())
        for names, value in (
            (("slotNumber", "chassisPhysicalSlotNumber"), place.slot),
            (("trayIndex", "computeSlotIndex"), place.tray),
            (("hostId", "nodeIndex"), place.host),
            (("peerType",), place.peer_type),
            (("moduleId",), gpu.module_id),
        ):
            fill(struct, **dict.fromkeys(names, bytes([value])))

    def _fabric(self, device: Any) -> Fabric:
        gpu = self.machine.whole(device)
        if Support.FABRIC not in gpu.model.supports:
            raise Refusal(Code.NOT_SUPPORTED)
        return self.machine.condition(gpu).fabric or gpu.fabric

    @staticmethod
    def _fill(struct: Any, fabric: Fabric) -> None:
        fill_bytes(struct, "clusterUuid", fabric.cluster)
        fill(
            struct,
            status=fabric.status,
            cliqueId=fabric.clique,
            state=fabric.state,
            healthMask=_MASKS.get(fabric.health, _UNHEALTHY_MASK),
            healthSummary=fabric.health,
        )
