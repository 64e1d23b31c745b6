"""Reading MIG: which GPU instances a GPU can make and which it has.

GPU instances are listed first and MIG devices are matched to them by instance ids. A MIG device's index says nothing:
indices have holes, go stale when another process destroys an instance, and do not show a GPU instance that has no
compute instance though it takes its slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Final, TypeAlias

from dradriver.hardware.answers import Engines, InstanceInfo, ProfileInfo, Share
from dradriver.hardware.inventory import MigInstance, MigProfile, MigState, Orphan
from dradriver.hardware.nvml import PROFILES, Handle, Nvml
from dradriver.hardware.querying import Questions

# nvml.h, NVML_GPU_INSTANCE_PROFILE_*: what sets a profile apart from the plain one of as many slices. The profile of
# one slice with double memory (REV2) is told by the gigabytes in its name.
_SUFFIXES: Final = {
    7: "+me",
    8: "+me",
    10: "+gfx",
    11: "+gfx",
    12: "+gfx",
    13: "-me",
    14: "-me",
    15: "+me.all",
    16: "+me.all",
    17: "+gfx",
}

_Devices: TypeAlias = Mapping[tuple[int, int], Handle]
"""MIG devices by the ids of their GPU instance and compute instance."""


def read_mig(nvml: Nvml, gpu: Handle, memory_mib: int | None, questions: Questions) -> MigState:
    """MIG on one GPU; sentences about what is odd are noted."""
    enabled, after_reset = questions.ask(nvml.mig_mode, gpu) or (_has_room(nvml, gpu, questions),) * 2
    known = {index: info for index in PROFILES if (info := questions.ask(nvml.profile, gpu, index))}
    profiles = tuple(
        MigProfile(
            info.name or _profile_name(info, index, memory_mib),
            index,
            info.id,
            info.slices,
            info.memory_mib,
            questions.ask(nvml.placements, gpu, info.id) or (),
            **asdict(info.engines),
        )
        for index, info in known.items()
    )
    instances: list[MigInstance] = []
    orphans: list[Orphan] = []
    if enabled:
        devices = _devices(nvml, gpu, questions)
        for handle, found in _gpu_instances(nvml, gpu, known, questions):
            profile = next((each for each in profiles if each.id == found.profile_id), None)
            if profile is None:
                questions.note(f"GPU instance {found.id} is of unlisted profile {found.profile_id}; left out")
                continue
            of_this = _instances(nvml, questions, devices, (handle, found), profile)
            instances += of_this
            if not of_this:
                orphans.append(Orphan(found.id, profile.name, found.placement))
    state = MigState(bool(profiles), enabled, enabled != after_reset, profiles, tuple(instances), tuple(orphans))
    for oddity in _oddities(state):
        questions.note(oddity)
    return state


def _has_room(nvml: Nvml, gpu: Handle, questions: Questions) -> bool:
    """Whether MIG is on, as far as can be told where the mode is not: without it there is no room for MIG devices."""
    return bool(questions.ask(nvml.mig_devices, gpu))


def _gpu_instances(
    nvml: Nvml, gpu: Handle, known: Mapping[int, ProfileInfo], questions: Questions
) -> list[tuple[Handle, InstanceInfo]]:
    found: dict[int, tuple[Handle, InstanceInfo]] = {}
    for info in known.values():
        for handle in questions.ask(nvml.gpu_instances, gpu, info.id, info.instances) or ():
            instance = questions.ask(nvml.gpu_instance_info, handle)
            if instance is not None:
                found[instance.id] = (handle, instance)
    return sorted(found.values(), key=lambda pair: (pair[1].placement.start, pair[1].id))


def _devices(nvml: Nvml, gpu: Handle, questions: Questions) -> _Devices:
    devices: dict[tuple[int, int], Handle] = {}
    for index in questions.ask(nvml.mig_devices, gpu) or ():
        device = questions.ask(nvml.mig_device, gpu, index)
        if device is None:
            continue
        gpu_instance = questions.ask(nvml.gpu_instance_id, device)
        compute_instance = questions.ask(nvml.compute_instance_id, device)
        if gpu_instance is not None and compute_instance is not None:
            devices[gpu_instance, compute_instance] = device
    return devices


def _instances(
    nvml: Nvml, questions: Questions, devices: _Devices, of: tuple[Handle, InstanceInfo], profile: MigProfile
) -> list[MigInstance]:
    handle, found = of
    instances = []
    for (gpu_instance, compute_instance), device in sorted(devices.items()):
        if gpu_instance != found.id:
            continue
        compute = questions.ask(nvml.compute_instance_info, handle, compute_instance)
        if compute is None:  # a stale MIG device: another process destroyed it
            continue
        uuid = questions.ask(nvml.uuid, device)
        if uuid is None:
            questions.note(f"MIG device of GPU instance {found.id} does not tell its UUID; left out")
            continue
        share = questions.ask(nvml.share, device)
        # Two instances of one profile may differ in memory, so the instance is asked before the profile is believed.
        memory_mib = questions.ask(nvml.memory_mib, device) or (share.memory_mib if share else profile.memory_mib)
        slices = compute.placement.size
        whole = slices >= profile.slices
        instances.append(
            MigInstance(
                uuid,
                found.id,
                compute_instance,
                profile.name if whole else f"{slices}c.{profile.name}",
                found.placement,
                memory_mib,
                **_engines(share, profile if whole else None),
                whole=whole,
                compute_start=compute.placement.start,
                compute_slices=slices,
            )
        )
    return instances


def _engines(share: Share | None, profile: MigProfile | None) -> dict[str, int | None]:
    """What a MIG device says it has, else what its profile has where the device is all of a GPU instance."""
    told = share.engines if share else profile
    return {field.name: getattr(told, field.name, None) for field in fields(Engines)}


def _profile_name(info: ProfileInfo, index: int, memory_mib: int | None) -> str:
    """What nvidia-smi prints: the profile's share of the GPU's gigabytes in eighths, rounded half up."""
    gigabytes = -(-info.memory_mib // 1024)
    if memory_mib:
        eighths = -(-8 * info.memory_mib // memory_mib)
        gigabytes = (eighths * -(-memory_mib // 1024) + 4) // 8
    return f"{info.slices}g.{gigabytes}gb{_SUFFIXES.get(index, '')}"


def _oddities(state: MigState) -> list[str]:
    problems = []
    if state.pending:
        now, then = ("on", "off") if state.enabled else ("off", "on")
        problems.append(
            f"MIG mode is {now} and will be {then} after the next reset: no MIG device is published until they agree; "
            "stop what holds the GPU (nvidia-persistenced, DCGM, a display) and reset it"
        )
    elif state.enabled and not state.instances:
        problems.append(
            "MIG mode is on and there is no MIG instance that this process can read: nothing of this GPU is published; "
            "create instances, turn MIG mode off, or run this process privileged"
        )
    problems += [
        f"GPU instance {orphan.gpu_instance} ({orphan.profile} at {orphan.placement.start}) has no usable compute "
        "instance and keeps its slices; destroy it or create one in it"
        for orphan in state.orphans
    ]
    return problems
