"""Errors of memory: none, in the words that each generation of GPUs has for it."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any

from dradriver.described.arguments import fill, pointed, put
from dradriver.described.codes import Code, Refusal
from dradriver.described.model import Ecc, Support
from dradriver.described.symbols.area import Area


class Health(Area):
    """ECC counters, retired pages up to Turing, remapped rows from Ampere on."""

    def nvmlDeviceGetTotalEccErrors(self, device: Any, error: Any, counter: Any, count: Any) -> None:
        del error, counter
        if self.machine.whole(device).model.ecc is not Ecc.ENABLED:
            raise Refusal(Code.NOT_SUPPORTED)
        put(count, 0)

    def nvmlDeviceGetRetiredPages(self, device: Any, cause: Any, count: Any, pages: Any) -> None:
        del cause, pages
        self._need(device, Support.RETIRED_PAGES)
        put(count, 0)

    def nvmlDeviceGetRetiredPagesPendingStatus(self, device: Any, pending: Any) -> None:
        self._need(device, Support.RETIRED_PAGES)
        put(pending, 0)

    def nvmlDeviceGetRemappedRows(
        self, device: Any, correctable: Any, uncorrectable: Any, pending: Any, failed: Any
    ) -> None:
        self._need(device, Support.REMAPPED_ROWS)
        for answer in (correctable, uncorrectable, pending, failed):
            put(answer, 0)

    def nvmlDeviceGetRowRemapperHistogram(self, device: Any, histogram: Any) -> None:
        self._need(device, Support.REMAPPED_ROWS)
        fill(pointed(histogram), max=1024, high=0, partial=0, low=0, none=0)

    def _need(self, device: Any, support: Support) -> None:
        if support not in self.machine.whole(device).model.supports:
            raise Refusal(Code.NOT_SUPPORTED)
