"""The files that go with the GPUs: device nodes, the driver's files under proc, the PCI bus under sys.

Device nodes are character nodes where this process may make them, and empty files elsewhere. Majors follow the
driver's fixed 195; what has a major that moves between boots gets one that Linux keeps for local use
(Documentation/admin-guide/devices.txt: 120 to 127), so that no other driver's device is ever opened.
What an earlier description left under the same root is taken away, and nothing else.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from dradriver.described.description import Description
from dradriver.described.errors import DescriptionError
from dradriver.described.gpu import Gpu

_RECORD: Final = ".described"
_FIXED_MAJOR: Final = 195
_UVM_MAJOR: Final = 120
_CAPS_MAJOR: Final = 121
_NVIDIA_VENDOR: Final = 0x10DE

# kernel-open/nvidia/nv-caps.c: 15 GPU instances of 8 compute instances for each of 32 GPUs
_GPU_INSTANCES: Final = 15
_COMPUTE_INSTANCES: Final = 8
_CAPS_PER_INSTANCE: Final = 1 + _COMPUTE_INSTANCES
_CAPS_PER_GPU: Final = _GPU_INSTANCES * _CAPS_PER_INSTANCE
_FIRST_INSTANCE_CAP: Final = 3


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class _Link:
    path: str
    target: str


@dataclass(frozen=True, slots=True)
class _Node:
    path: str
    major: int
    minor: int


_Entry: TypeAlias = _File | _Link | _Node


def materialise(description: Description, root: Path) -> None:
    """Make root/dev, root/proc and root/sys as the described node has them. Doing it again changes nothing.

    Raises:
        DescriptionError: where the directory cannot be written.
    """
    entries = (*_dev(description), *_proc(description), *_sys(description))
    paths = sorted(entry.path for entry in entries)
    record = root / _RECORD
    try:
        if root.resolve() == Path(root.anchor or "/"):
            raise DescriptionError(str(root), "", "the root of this machine", "give a directory of its own")
        root.mkdir(parents=True, exist_ok=True)
        before = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
        # Recorded before they are made, so that a process that dies half-way leaves nothing unrecorded.
        _replace(record, "\n".join(sorted({*before, *paths})) + "\n")
        for path in sorted(set(before) - set(paths)):
            _remove(root, path)
        for entry in entries:
            _make(root / entry.path, entry)
        _replace(record, "\n".join(paths) + "\n")
    except OSError as error:
        remedy = "give a directory that can be written"
        raise DescriptionError(str(error.filename or root), "", error.strerror or str(error), remedy) from error


def gpu_instance_cap(minor: int, gpu_instance: int) -> int:
    """Minor number of the capability of a GPU instance, by the minor number of its GPU."""
    return _FIRST_INSTANCE_CAP + _CAPS_PER_GPU * minor + _CAPS_PER_INSTANCE * gpu_instance


def compute_instance_cap(minor: int, gpu_instance: int, compute_instance: int) -> int:
    """Minor number of the capability of a compute instance."""
    return gpu_instance_cap(minor, gpu_instance) + 1 + compute_instance


def _dev(description: Description) -> Iterator[_Entry]:
    yield _Node("dev/nvidiactl", _FIXED_MAJOR, 255)
    yield _Node("dev/nvidia-modeset", _FIXED_MAJOR, 254)
    yield _Node("dev/nvidia-uvm", _UVM_MAJOR, 0)
    yield _Node("dev/nvidia-uvm-tools", _UVM_MAJOR, 1)
    for gpu in description.listed:
        yield _Node(f"dev/nvidia{gpu.minor}", _FIXED_MAJOR, gpu.minor)
        for _, cap in _capabilities(gpu):
            yield _Node(f"dev/nvidia-caps/nvidia-cap{cap}", _CAPS_MAJOR, cap)
    if _mig_capable(description):
        yield _Node("dev/nvidia-caps/nvidia-cap1", _CAPS_MAJOR, 1)
        yield _Node("dev/nvidia-caps/nvidia-cap2", _CAPS_MAJOR, 2)


def _proc(description: Description) -> Iterator[_Entry]:
    version = description.driver
    yield _File(
        "proc/driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n",
    )
    files = [("fabric-imex-mgmt", 0)]
    if _mig_capable(description):
        files += [("mig/config", 1), ("mig/monitor", 2)]
        table = "config 1\nmonitor 2\n" + "".join(_table(gpu) for gpu in description.listed if gpu.model.partitions)
        yield _File("proc/driver/nvidia-caps/mig-minors", table)
    files += [(path, cap) for gpu in description.listed for path, cap in _capabilities(gpu)]
    for path, cap in files:
        text = f"DeviceFileMinor: {cap}\nDeviceFileMode: {0o444}\nDeviceFileModify: 1\n"
        yield _File(f"proc/driver/nvidia/capabilities/{path}", text)


def _sys(description: Description) -> Iterator[_Entry]:
    for gpu in description.gpus:
        place = _pci_path(gpu)
        yield _File(f"{place}/vendor", f"{_NVIDIA_VENDOR:#06x}\n")
        yield _File(f"{place}/device", f"{gpu.model.pci_id >> 16:#06x}\n")
        yield _File(f"{place}/class", f"{gpu.model.pci_class:#08x}\n")
        yield _File(f"{place}/numa_node", f"{-1 if gpu.numa_node is None else gpu.numa_node}\n")
        yield _relative(f"sys/bus/pci/devices/{gpu.pci_address}", place)
        driver = f"sys/bus/pci/drivers/{gpu.kernel_driver}"
        yield _relative(f"{driver}/{gpu.pci_address}", place)
        yield _relative(f"{place}/driver", driver)


def _capabilities(gpu: Gpu) -> Iterator[tuple[str, int]]:
    """Files and minor numbers of the instances a GPU begins with."""
    for instance, compute in gpu.partitioning.devices():
        path = f"gpu{gpu.minor}/mig/gi{instance.id}/ci{compute.id}/access"
        yield path, compute_instance_cap(gpu.minor, instance.id, compute.id)
    for instance in gpu.partitioning.instances:
        yield f"gpu{gpu.minor}/mig/gi{instance.id}/access", gpu_instance_cap(gpu.minor, instance.id)


def _table(gpu: Gpu) -> str:
    """A GPU's lines of mig-minors: of all instances it could have, there or not."""
    lines = []
    for instance in range(_GPU_INSTANCES):
        path = f"gpu{gpu.minor}/gi{instance}"
        lines.append(f"{path}/access {gpu_instance_cap(gpu.minor, instance)}\n")
        lines += [
            f"{path}/ci{compute}/access {compute_instance_cap(gpu.minor, instance, compute)}\n"
            for compute in range(_COMPUTE_INSTANCES)
        ]
    return "".join(lines)


def _mig_capable(description: Description) -> bool:
    return any(gpu.model.partitions for gpu in description.listed)


def _pci_path(gpu: Gpu) -> str:
    """The device's place in the tree: root complex, root port, the switch it shares with others, itself."""
    switch = f"{gpu.pcie_switch}/" if gpu.pcie_switch else ""
    port = 1 if switch else gpu.position + 1
    return f"sys/devices/pci{gpu.pcie_root}/{gpu.pcie_root}:{port:02x}.0/{switch}{gpu.pci_address}"


def _relative(path: str, target: str) -> _Link:
    return _Link(path, os.path.relpath(target, PurePosixPath(path).parent))


def _make(path: Path, entry: _Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match entry:
        case _File(_, text):
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                _replace(path, text)
        case _Link(_, target):
            if not path.is_symlink() or str(path.readlink()) != target:
                path.unlink(missing_ok=True)
                path.symlink_to(target)
        case _Node(_, major, minor):
            _make_node(path, os.makedev(major, minor))


def _make_node(path: Path, device: int) -> None:
    if path.exists() and (stat.S_ISREG(path.stat().st_mode) or path.stat().st_rdev == device):
        return
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, device)
    except OSError:  # not root, or not allowed even so: in a container, on a file system without devices
        path.touch()
    path.chmod(0o666)


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _remove(root: Path, path: str) -> None:
    """Take away what an earlier description made, and directories that are empty then."""
    gone = root / path
    if root.resolve() not in gone.parent.resolve().parents:
        return
    gone.unlink(missing_ok=True)
    for parent in gone.parents:
        if parent == root or not parent.exists() or any(parent.iterdir()):
            return
        parent.rmdir()
