"""What a GPU of a model is: the figures its library answers, and the MIG profiles it can make.

Model documents are flat, so that one GPU of a node may say any figure otherwise. `estimated` lists the figures of a
model that no public capture confirms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Final

from dradriver.described.documents import Fields
from dradriver.described.errors import choices, shown

_MAX_LINKS: Final = 36  # NVML_NVLINK_MAX_LINKS of nvml.h 13.3


class Brand(Enum):
    """nvmlBrandType_t, by the words of nvidia-smi."""

    TESLA = "Tesla"
    QUADRO = "Quadro"
    GEFORCE = "GeForce"
    NVIDIA_RTX = "NVIDIA RTX"
    NVIDIA = "NVIDIA"

    @property
    def number(self) -> int:
        """The number in nvml.h."""
        return {"Tesla": 2, "Quadro": 1, "GeForce": 5, "NVIDIA RTX": 13, "NVIDIA": 14}[self.value]


class Architecture(IntEnum):
    """nvmlDeviceArchitecture_t."""

    Kepler = 2
    Maxwell = 3
    Pascal = 4
    Volta = 5
    Turing = 6
    Ampere = 7
    Ada = 8
    Hopper = 9
    Blackwell = 10


class Ecc(StrEnum):
    """Error correction of the GPU's memory."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    UNSUPPORTED = "unsupported"


class Addressing(IntEnum):
    """nvmlDeviceAddressingModeType_t."""

    none = 0
    hmm = 1
    ats = 2


class Support(StrEnum):
    """Queries that only some models answer."""

    RETIRED_PAGES = "retired_pages"
    REMAPPED_ROWS = "remapped_rows"
    FABRIC = "fabric"
    PLATFORM = "platform"
    C2C = "c2c"


_LINK_VERSIONS: Final = {"1.0": 1, "2.0": 2, "2.2": 3, "3.0": 4, "3.1": 5, "4.0": 6, "5.0": 7}
"""NVML_NVLINK_VERSION_*."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of GPU instance. `index` and `id` are NVML's two name spaces; `size` is in the model's memory units."""

    name: str
    index: int
    id: int
    slices: int
    size: int
    starts: tuple[int, ...]
    instances: int
    memory_mib: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int

    @property
    def graphics(self) -> bool:
        """Whether its instances can draw."""
        return self.name.endswith("+gfx")


@dataclass(frozen=True, slots=True)
class Partitions:
    """How a GPU can be cut into MIG instances; `units` is the whole of its memory in placement units."""

    units: int
    profiles: tuple[Profile, ...]

    @property
    def slices(self) -> int:
        """Compute slices of the whole GPU: as many MIG devices it can have."""
        return max(profile.slices for profile in self.profiles)

    def by_id(self, identity: int) -> Profile | None:
        """The profile of an id (not of an index)."""
        return next((profile for profile in self.profiles if profile.id == identity), None)

    def by_index(self, index: int) -> Profile | None:
        """The profile of an index (not of an id)."""
        return next((profile for profile in self.profiles if profile.index == index), None)

    def instance_ids(self, size: int) -> range:
        """Ids the kernel gives to instances of a size: 0 to the whole, 1-2 to halves, 3-6, 7-14 (kmigmgr of RM)."""
        parts = self.units // size
        return range(parts - 1, 2 * parts - 1)


@dataclass(frozen=True, slots=True)
class Model:
    """The figures of one GPU; None is what its library answers with NOT_SUPPORTED."""

    name: str
    brand: Brand
    architecture: Architecture
    compute_capability: tuple[int, int]
    pci_id: int
    subsystem_id: int
    pci_class: int
    memory_mib: int | None
    reserved_mib: int
    memory_bus_bits: int | None
    bar1_mib: int | None
    multiprocessors: int
    cores: int
    power_limit_w: int | None
    pcie_generation: int
    pcie_width: int
    nvlinks: int
    nvlink_version: int
    ecc: Ecc
    addressing_mode: Addressing | None
    supports: frozenset[Support]
    partitions: Partitions | None


def parse(fields: Fields) -> Model:
    """A model from its keys in a document. Raises DescriptionError."""
    for i, figure in enumerate(fields.items("estimated", default=())):
        if figure not in Model.__dataclass_fields__:
            raise fields.error(f"estimated[{i}]", f"{shown(figure)} is no figure", choices(str(figure), _figures()))
    capability = fields.text("compute_capability", pattern=r"\d+\.\d", like="a compute capability such as 9.0")
    major, _, minor = capability.partition(".")
    links = fields.number("nvlinks", 0, most=_MAX_LINKS)
    return Model(
        name=fields.text("name", pattern=".{1,95}", like="a name of at most 95 characters"),
        brand=fields.one_of("brand", Brand, Brand.NVIDIA),
        architecture=fields.one_of("architecture", Architecture),
        compute_capability=(int(major), int(minor)),
        pci_id=fields.number("pci_id", most=0xFFFFFFFF),
        subsystem_id=fields.number("subsystem_id", 0x000010DE, most=0xFFFFFFFF),
        pci_class=fields.number("pci_class", 0x030200, most=0xFFFFFF),
        memory_mib=fields.number("memory_mib", None, least=1),
        reserved_mib=fields.number("reserved_mib", 0),
        memory_bus_bits=fields.number("memory_bus_bits", None, least=1),
        bar1_mib=fields.number("bar1_mib", None, least=1),
        multiprocessors=fields.number("multiprocessors", least=1),
        cores=fields.number("cores", least=1),
        power_limit_w=fields.number("power_limit_w", None, least=1),
        pcie_generation=fields.number("pcie_generation", 4, least=1, most=7),
        pcie_width=fields.number("pcie_width", 16, least=1, most=16),
        nvlinks=links,
        nvlink_version=_link_version(fields, links),
        ecc=fields.one_of("ecc", Ecc, Ecc.UNSUPPORTED),
        addressing_mode=fields.one_of("addressing_mode", Addressing, None),
        supports=fields.many_of("supports", Support),
        partitions=_partitions(fields.section("partitions")) if "partitions" in fields else None,
    )


def _figures() -> list[str]:
    return list(Model.__dataclass_fields__)


def _link_version(fields: Fields, links: int) -> int:
    version = fields.text("nvlink_version", None, like="an NVLink version such as 4.0")
    if version is None:
        if links:
            raise fields.error("nvlink_version", "missing beside nvlinks", f"write one of {', '.join(_LINK_VERSIONS)}")
        return 0
    if version not in _LINK_VERSIONS:
        raise fields.error("nvlink_version", f"{shown(version)} is not known", choices(version, _LINK_VERSIONS))
    return _LINK_VERSIONS[version]


def _partitions(fields: Fields) -> Partitions:
    units = fields.number("units", least=1, most=64)
    table = fields.section("profiles")
    profiles = tuple(_profile(table.section(name), name, units) for name in table.keys())  # noqa: SIM118 - no mapping
    fields.done()
    if not profiles:
        raise table.error("", "no profiles", "write at least one, or leave partitions out")
    for key in ("index", "id"):
        seen: Mapping[int, list[str]] = {getattr(profile, key): [] for profile in profiles}
        for profile in profiles:
            seen[getattr(profile, key)].append(profile.name)
        for value, names in seen.items():
            if len(names) > 1:
                raise table.error(f"{names[1]}.{key}", f"{value} is also that of {names[0]}", "give each its own")
    return Partitions(units, profiles)


def _profile(fields: Fields, name: str, units: int) -> Profile:
    fields.flag("estimated", default=False)
    size = fields.number("size", least=1, most=units)
    starts = fields.numbers("starts")
    for i, start in enumerate(starts):
        if start + size > units:
            raise fields.error(f"starts[{i}]", f"{start} and a size of {size} pass the end at {units}", "lower it")
    profile = Profile(
        name=fields.text("name", name),
        index=fields.number("index", most=17),
        id=fields.number("id", most=0xFFFF),
        slices=fields.number("slices", least=1, most=8),
        size=size,
        starts=starts,
        instances=fields.number("instances", least=1, most=8),
        memory_mib=fields.number("memory_mib", least=1),
        multiprocessors=fields.number("multiprocessors", least=1),
        copy_engines=fields.number("copy_engines"),
        decoders=fields.number("decoders"),
        encoders=fields.number("encoders"),
        jpeg_engines=fields.number("jpeg_engines"),
        ofa_engines=fields.number("ofa_engines"),
    )
    fields.done()
    return profile
