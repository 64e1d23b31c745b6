"""Objects of resource.k8s.io/v1 as clients write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make_claim() -> Make:
    def make(name: str = "claim", **exactly: Any) -> dict[str, Any]:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.gpupool.dev", **exactly}}
        return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}

    return make


@pytest.fixture
def make_slice() -> Make:
    def make(name: str = "slice", node: str = "node-a", **device: Any) -> dict[str, Any]:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}, **device}]
        spec = {"driver": "gpu.gpupool.dev", "nodeName": node, "pool": pool, "devices": devices}
        return {"metadata": {"name": name}, "spec": spec}

    return make


@pytest.fixture
def make_pod() -> Make:
    def make(name: str = "pod", **meta: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, **meta}, "spec": {"containers": [{"name": "main", "image": "i"}]}}

    return make
