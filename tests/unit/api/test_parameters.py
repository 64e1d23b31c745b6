"""Opaque parameters are read strictly, and say where they are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import api
from dradriver.api import parameters
from dradriver.api.parameters import GpuConfig, MigConfig, ShareConfig, Sharing, SharingStrategy, TimeSliceInterval


def _of(kind: str, sharing: Any = None, **more: Any) -> dict[str, Any]:
    data = {"apiVersion": "gpu.gpupool.dev/v1alpha1", "kind": kind} | more
    return data if sharing is None else data | {"sharing": sharing}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (_of("GpuConfig"), GpuConfig()),
        (_of("GpuConfig", {}), GpuConfig()),
        (_of("MigConfig", {"strategy": "Exclusive"}), MigConfig()),
        (_of("ShareConfig"), ShareConfig()),
        (
            _of("GpuConfig", {"strategy": "TimeSlicing"}),
            GpuConfig(Sharing(SharingStrategy.TIME_SLICING, TimeSliceInterval.DEFAULT)),
        ),
        (
            _of("GpuConfig", {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}),
            GpuConfig(Sharing(SharingStrategy.TIME_SLICING, TimeSliceInterval.LONG)),
        ),
        (
            _of("MigConfig", {"strategy": "MPS", "mps": {"activeThreadPercentage": 50, "memoryLimit": "10Gi"}}),
            MigConfig(
                Sharing(SharingStrategy.MPS, active_thread_percentage=50, memory_limit=api.Quantity.parse("10Gi"))
            ),
        ),
    ],
)
def test_parameters_are_read(data: dict[str, Any], expected: parameters.Parameters) -> None:
    assert parameters.parse(data) == expected


@pytest.mark.parametrize(
    ("data", "path", "words"),
    [
        ({"kind": "GpuConfig"}, "apiVersion", "is missing"),
        ({"apiVersion": "gpu.nvidia.com/v1", "kind": "GpuConfig"}, "apiVersion", "'gpu.nvidia.com/v1'"),
        (_of("GPUConfig"), "kind", "GpuConfig or MigConfig or ShareConfig"),
        (_of("GpuConfig", "MPS"), "sharing", "must be an object, got 'MPS'"),
        (_of("GpuConfig", {"strategie": "MPS"}), "sharing.strategie", "known here are mps, strategy, timeSlicing"),
        (_of("GpuConfig", {"strategy": "mps"}), "sharing.strategy", "Exclusive or TimeSlicing or MPS, got 'mps'"),
        (_of("GpuConfig", {"strategy": []}), "sharing.strategy", "got []"),
        (_of("MigConfig", {"strategy": "TimeSlicing"}), "sharing.strategy", "Exclusive or MPS"),
        (_of("GpuConfig", {"strategy": "MPS", "timeSlicing": {}}), "sharing.timeSlicing", "does not belong"),
        (_of("GpuConfig", {"mps": {}}), "sharing.mps", "does not belong"),
        (
            _of("GpuConfig", {"strategy": "TimeSlicing", "timeSlicing": {"interval": "30ms"}}),
            "sharing.timeSlicing.interval",
            "Default or Short or Medium or Long, got '30ms'",
        ),
        (
            _of("GpuConfig", {"strategy": "MPS", "mps": {"threads": 1}}),
            "sharing.mps.threads",
            "activeThreadPercentage, memoryLimit",
        ),
        *(
            (
                _of("GpuConfig", {"strategy": "MPS", "mps": {"activeThreadPercentage": value}}),
                "sharing.mps.activeThreadPercentage",
                f"from 1 to 100, got {value!r}",
            )
            for value in (0, 101, -1, True, "50", 50.0)
        ),
        *(
            (
                _of("GpuConfig", {"strategy": "MPS", "mps": {"memoryLimit": value}}),
                "sharing.mps.memoryLimit",
                repr(value),
            )
            for value in ("10GB", "0", "-1Gi", 10)
        ),
        (_of("ShareConfig", level=3), "level", "unknown field"),
        (_of("ShareConfig", {}), "sharing", "unknown field"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(data: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(api.ParametersError) as caught:
        parameters.parse(data)
    assert caught.value.path == path
    assert words in str(caught.value)


def test_unknown_fields_do_not_stop_taking_something_back() -> None:
    data = _of("GpuConfig", {"strategy": "MPS", "mps": {"threads": 1}, "new": {}}, more=1)
    assert parameters.parse(data, strict=False) == GpuConfig(Sharing(SharingStrategy.MPS))
    assert parameters.parse(_of("ShareConfig", level=3), strict=False) == ShareConfig()
