"""Faults while the plugin runs: `faults.yaml` in the state directory, read again whenever it changes.

    calls: {nvmlSystemGetDriverVersion: LIB_RM_VERSION_MISMATCH}
    gpus:
      3: {lost: true}                                             # by position, UUID or PCI address
      0000:1b:00.0: {links_down: [0, 1], fabric: {state: in_progress}}
      GPU-...: {calls: {nvmlDeviceGetMemoryInfo: UNKNOWN}}

Faults stand on top of what the description says (`lost: false` and `SUCCESS` put right what it breaks). A file that
is wrong is told once and changes nothing; at the start it is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dradriver.described import conditions, documents
from dradriver.described.codes import Code
from dradriver.described.description import Description
from dradriver.described.documents import Fields
from dradriver.described.errors import DescriptionError, choices, shown
from dradriver.described.gpu import Condition, Gpu
from dradriver.described.store import Stamp, stamp

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Faults:
    """What a file of faults says; GPUs by position."""

    calls: Mapping[str, Code] = field(default_factory=dict)
    gpus: Mapping[int, Condition] = field(default_factory=dict)


class FaultFile:
    """The file of faults of one node."""

    def __init__(self, description: Description, directory: Path) -> None:
        self._description = description
        self._file = directory / "faults.yaml"
        self._seen = stamp(self._file)
        self._faults = self._read(self._seen)

    def condition(self, gpu: Gpu) -> Condition:
        """What is wrong with a GPU now."""
        above = self._now().gpus.get(gpu.position)
        return gpu.condition.under(above) if above else gpu.condition

    def answer(self, symbol: str) -> Code | None:
        """What a symbol answers whatever it is asked about; None where it works."""
        code = self._now().calls.get(symbol, self._description.calls.get(symbol))
        return None if code is Code.SUCCESS else code

    def _now(self) -> Faults:
        seen = stamp(self._file)
        if seen != self._seen:
            self._seen = seen
            try:
                self._faults = self._read(seen)
            except DescriptionError as error:
                _log.warning("faults not changed: %s", error)
        return self._faults

    def _read(self, seen: Stamp | None) -> Faults:
        document = None if seen is None else documents.read(self._file)
        return Faults() if document is None else parse(Fields(document, str(self._file)), self._description)


def parse(fields: Fields, description: Description) -> Faults:
    """The keys of a file of faults. Raises DescriptionError."""
    calls = conditions.calls(fields)
    names = {str(name): gpu for gpu in description.gpus for name in (gpu.position, gpu.uuid, gpu.pci_address)}
    found: dict[int, Condition] = {}
    table = fields.section("gpus", optional=True)
    for name in table.keys():  # noqa: SIM118 - Fields is no mapping
        if name not in names:
            raise table.error(name, f"{shown(name)} is no GPU of {description.name}", choices(name, names))
        gpu, section = names[name], table.section(name)
        condition = conditions.condition(section)
        if "fabric" in section:
            condition = replace(condition, fabric=conditions.fabric(section.section("fabric"), gpu.model, gpu.links))
        section.done()
        found[gpu.position] = found.get(gpu.position, Condition()).under(condition)
    fields.done()
    return Faults(calls, found)
