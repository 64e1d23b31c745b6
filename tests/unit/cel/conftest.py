"""A described GPU to evaluate on: the device for which the answers in recorded.jsonl were taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dradriver import api, cel

DRIVER = "gpu.gpupool.dev"


@pytest.fixture(scope="session")
def kubernetes() -> api.Kubernetes:
    return api.Kubernetes.release("1.37")


@pytest.fixture(scope="session")
def gpu() -> api.Device:
    versions = tuple(map(api.Version.parse, ("1.2.3", "2.0.0")))
    return api.Device(
        "gpu-3",
        attributes={
            "productName": "NVIDIA H100 80GB HBM3",
            "architecture": "Hopper",
            "nominalMemoryGB": 80,
            "index": 3,
            "migCapable": True,
            "migEnabled": False,
            "driverVersion": api.Version.parse("550.90.7"),
            "other.example/model": "x",
            "resource.kubernetes.io/pcieRoot": "pci0000:00",
            "list": ("a", "b"),
            "ints": (1, 2, 3),
            "versions": versions,
        },
        capacity={
            "memory": api.Capacity(api.Quantity.parse("81559Mi")),
            "multiprocessors": api.Capacity(api.Quantity.parse("132")),
            "other.example/x": api.Capacity(api.Quantity.parse("1500m")),
        },
    )


@pytest.fixture
def evaluate(kubernetes: api.Kubernetes, gpu: api.Device) -> Callable[[str], bool]:
    return lambda text: cel.compile_expression(text, kubernetes, stored=True).evaluate(DRIVER, gpu)


@pytest.fixture
def trace(kubernetes: api.Kubernetes, gpu: api.Device) -> Callable[[str], cel.Trace]:
    return lambda text: cel.compile_expression(text, kubernetes, stored=True).trace(DRIVER, gpu)


@pytest.fixture
def refusal(kubernetes: api.Kubernetes) -> Callable[[str], cel.CompileError]:
    def refuse(text: str) -> cel.CompileError:
        with pytest.raises(cel.CompileError) as caught:
            cel.compile_expression(text, kubernetes)
        return caught.value

    return refuse
