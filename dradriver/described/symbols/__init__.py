"""The C symbols of NVML, grouped by what they are about: one method each, named as the symbol is, versions included.

A method gets the arguments as pynvml passes them to C, fills what they point to, and answers nothing for SUCCESS or
raises Refusal with another code. The library around it has checked that NVML is started, that the GPU of the first
handle is not lost, and that no fault makes the call fail.
"""

from typing import Final

from dradriver.described.symbols.area import Area
from dradriver.described.symbols.compute_instances import ComputeInstances
from dradriver.described.symbols.enumeration import Enumeration
from dradriver.described.symbols.fabric import FabricAndPlatform
from dradriver.described.symbols.gpu_instances import GpuInstances
from dradriver.described.symbols.health import Health
from dradriver.described.symbols.identity import Identity
from dradriver.described.symbols.links import Links
from dradriver.described.symbols.memory import Memory
from dradriver.described.symbols.mig_devices import MigDevices
from dradriver.described.symbols.system import System
from dradriver.described.symbols.telemetry import Telemetry
from dradriver.described.symbols.topology import Topology

AREAS: Final[tuple[type[Area], ...]] = (
    System,
    Enumeration,
    Identity,
    Memory,
    Topology,
    Links,
    FabricAndPlatform,
    GpuInstances,
    ComputeInstances,
    MigDevices,
    Health,
    Telemetry,
)

NAMES: Final = frozenset(name for area in AREAS for name in dir(area) if name.startswith("nvml"))
"""All symbols of a library from which no description takes any."""
