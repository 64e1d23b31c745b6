"""Reading the MIG instances that a described GPU begins with, checked as the driver would check their creation."""

from __future__ import annotations

from enum import StrEnum

from dradriver.described.documents import Fields
from dradriver.described.errors import choices, shown
from dradriver.described.model import Partitions, Profile
from dradriver.described.partitioning import (
    ComputeInstance,
    GpuInstance,
    Partitioning,
    compute_profiles,
    whole_profile,
)


class Mode(StrEnum):
    """MIG mode."""

    ENABLED = "enabled"
    DISABLED = "disabled"


def partitioning(gpu: Fields, partitions: Partitions | None) -> Partitioning:
    """The key `mig` of a GPU: `{mode, pending, instances}`, or the list of instances alone. Raises DescriptionError."""
    given = gpu.raw("mig")
    if given is None:
        return Partitioning()
    if partitions is None:
        raise gpu.error("mig", "this model has no MIG", "leave it out, or name a model that has")
    fields = Fields({"instances": given} if isinstance(given, list) else given, gpu.file, f"{gpu.path}.mig")
    mode = fields.one_of("mode", Mode, Mode.ENABLED)
    pending = fields.one_of("pending", Mode, mode)
    reader = _Reader(partitions)
    for each in fields.sections("instances", default=()):
        reader.add(each)
    fields.done()
    if mode is Mode.DISABLED and reader.instances:
        raise fields.error("instances", "there are some with MIG mode disabled", "leave them out, or enable the mode")
    return Partitioning(mode is Mode.ENABLED, pending is Mode.ENABLED, tuple(reader.instances))


class _Reader:
    """Instances so far: each new one must fit beside them."""

    def __init__(self, partitions: Partitions) -> None:
        self.instances: list[GpuInstance] = []
        self._partitions = partitions
        self._serial = 0
        self._indices: set[int] = set()

    def add(self, fields: Fields) -> None:
        profile = self._profile(fields)
        start = self._start(fields, profile)
        self.instances.append(
            GpuInstance(
                serial=self._next(),
                id=self._id(fields, profile),
                profile=profile.id,
                start=start,
                memory_mib=fields.number("memory_mib", None, least=1),
                compute=self._compute(fields, profile),
            )
        )
        fields.done()

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _profile(self, fields: Fields) -> Profile:
        name = fields.text("profile")
        known = {profile.name: profile for profile in self._partitions.profiles}
        if name not in known:
            raise fields.error("profile", f"{shown(name)} is no profile of this model", choices(name, known))
        profile = known[name]
        if sum(instance.profile == profile.id for instance in self.instances) >= profile.instances:
            raise fields.error("profile", f"more than {profile.instances} of {name}", "take some out")
        used = [each for i in self.instances if (each := self._partitions.by_id(i.profile))]
        if sum(each.slices for each in (*used, profile)) > self._partitions.slices:
            raise fields.error(
                "profile", f"{name} passes the {self._partitions.slices} compute slices", "take some out"
            )
        return profile

    def _start(self, fields: Fields, profile: Profile) -> int:
        start = fields.number("start")
        if start not in profile.starts:
            remedy = f"one of {', '.join(map(str, profile.starts))}"
            raise fields.error("start", f"{profile.name} cannot start at {start}", remedy)
        for other in self.instances:
            theirs = self._partitions.by_id(other.profile)
            if theirs and start < other.start + theirs.size and other.start < start + profile.size:
                problem = f"{profile.name} at {start} overlaps {theirs.name} at {other.start}"
                raise fields.error("start", problem, "move or remove one")
        return start

    def _id(self, fields: Fields, profile: Profile) -> int:
        ids = self._partitions.instance_ids(profile.size)
        taken = {instance.id for instance in self.instances}
        identity = fields.number("id", next((each for each in ids if each not in taken), ids.start))
        if identity not in ids or identity in taken:
            free = [str(each) for each in ids if each not in taken]
            raise fields.error("id", f"{identity} is taken or not for {profile.name}", f"one of {', '.join(free)}")
        return identity

    def _compute(self, fields: Fields, profile: Profile) -> tuple[ComputeInstance, ...]:
        whole = whole_profile(profile)
        if "compute" not in fields:
            index = fields.number("device_index", None, most=self._partitions.slices - 1)
            return (ComputeInstance(self._next(), 0, self._index(fields, index), whole.id, 0, whole.slices),)
        found: list[ComputeInstance] = []
        for each in fields.sections("compute"):
            slices = each.number("slices", least=1)
            kinds = {kind.slices: kind for kind in compute_profiles(profile).values()}
            if slices not in kinds:
                problem = f"{profile.name} has no compute instance of {slices} slices"
                raise each.error("slices", problem, f"one of {', '.join(map(str, kinds))}")
            start = each.number("start", most=profile.slices - slices)
            if any(start < other.start + other.size and other.start < start + slices for other in found):
                raise each.error("start", f"{start} overlaps another compute instance", "move or remove one")
            index = each.number("device_index", None, most=self._partitions.slices - 1)
            at = self._index(each, index)
            found.append(ComputeInstance(self._next(), len(found), at, kinds[slices].id, start, slices))
            each.done()
        return tuple(found)

    def _index(self, fields: Fields, wanted: int | None) -> int:
        """The index of the MIG device: as wanted (so that there can be holes), else the lowest free."""
        if wanted in self._indices:
            raise fields.error("device_index", f"{wanted} is taken", "give each MIG device its own")
        index = next(i for i in range(64) if i not in self._indices) if wanted is None else wanted
        self._indices.add(index)
        return index
