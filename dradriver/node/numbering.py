"""The `<n>` of device names: given once, in PCI order, and remembered across restarts and reboots.

It is not NVML's index, which moves when a GPU falls off the bus. A number follows the GPU's UUID wherever the card is
put; a new card in the slot of one that is gone takes its number over, unless a claim still holds that name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dradriver import hardware
from dradriver.node import logs
from dradriver.node.disk import Disk

log = logs.Logger("numbering")


@dataclass(frozen=True, slots=True)
class Numbered:
    """One remembered number: which GPU has it, and where that was last seen."""

    number: int
    uuid: str
    pci_address: str | None


def assign(gpus: Sequence[hardware.Gpu], remembered: Sequence[Numbered], held: Collection[str]) -> tuple[Numbered, ...]:
    """Numbers for the GPUs present (in PCI order), and those to keep for GPUs that are gone.

    `held` are UUIDs of GPUs that a prepared claim holds, wholly or in part.
    """
    present = {gpu.uuid: gpu for gpu in gpus}
    by_uuid = {entry.uuid: entry for entry in remembered}
    known = [
        replace(entry, pci_address=present[entry.uuid].pci_address) if entry.uuid in present else entry
        for entry in by_uuid.values()
    ]
    for gpu in gpus:
        if gpu.uuid in by_uuid:
            continue
        predecessor = next(
            (
                entry
                for entry in known
                if entry.pci_address == gpu.pci_address is not None
                and entry.uuid not in present
                and entry.uuid not in held
            ),
            None,
        )
        if predecessor is not None:
            known.remove(predecessor)
            number = predecessor.number
        else:
            taken = {entry.number for entry in known}
            number = next(n for n in range(len(taken) + 1) if n not in taken)
        known.append(Numbered(number, gpu.uuid, gpu.pci_address))
    return tuple(sorted(known, key=lambda entry: entry.number))


class Numbers:
    """The remembered numbers, in a file of the state directory, which only the scanning thread touches."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self._path = path
        self._disk = disk or Disk()

    def assign(self, gpus: Sequence[hardware.Gpu], held: Mapping[str, str]) -> Mapping[str, int]:
        """Numbers by GPU UUID of the GPUs present; one that cannot be remembered is not given.

        `held` are UUIDs of GPUs that claims hold, each with the name of a device on it: where the file was lost, those
        names stand.
        """
        remembered = self._read()
        numbered = assign(gpus, _with_held(remembered, held), held.keys())
        if numbered != remembered:
            try:
                self._write(numbered)
            except OSError as error:
                log.problem("cannot remember device numbers", file=self._path, error=error.strerror)
                numbered = remembered
        present = {gpu.uuid for gpu in gpus}
        return {entry.uuid: entry.number for entry in numbered if entry.uuid in present}

    def _read(self) -> tuple[Numbered, ...]:
        try:
            data = json.loads(self._path.read_bytes())
            return _checked([Numbered(int(e["number"]), str(e["uuid"]), e["pciAddress"]) for e in data["gpus"]])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            # Replaced whole at each write, so this is damage from outside.
            log.problem("device numbers cannot be read, giving them anew", file=self._path, error=str(error))
            return ()

    def _write(self, numbered: Sequence[Numbered]) -> None:
        data = {"gpus": [{"number": e.number, "uuid": e.uuid, "pciAddress": e.pci_address} for e in numbered]}
        self._disk.replace(self._path, json.dumps(data, indent=1).encode())


def _checked(numbered: Sequence[Numbered]) -> tuple[Numbered, ...]:
    numbers = {entry.number for entry in numbered}
    if len(numbers) < len(numbered) or min(numbers, default=0) < 0:
        raise ValueError("a number is negative or there twice")
    return tuple(numbered)


def _with_held(remembered: Sequence[Numbered], held: Mapping[str, str]) -> tuple[Numbered, ...]:
    known = {entry.uuid: entry for entry in remembered}
    taken = {entry.number for entry in remembered}
    for uuid, name in held.items():
        number = int(name.split("-")[1])
        if uuid not in known and number not in taken:
            known[uuid] = Numbered(number, uuid, None)
            taken.add(number)
    return tuple(known.values())
