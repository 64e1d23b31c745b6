"""Publishing to the lab's API server over TLS, in the versions and with the gates of three Kubernetes releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dradriver import api, cluster
from dradriver.lab import apiserver, certificates, identities
from dradriver.node.apiserver import ApiServer
from dradriver.node.publishing import Publisher

Wait = Callable[..., None]
NODE = "node-a"
DRIVER = "gpu.gpupool.dev"


class Lab:
    def __init__(self, directory: Path, version: str) -> None:
        made = certificates.make_certificates(directory, datetime.now(UTC))
        self._admin, self._plugin = identities.administrator(), identities.plugin(NODE, DRIVER)
        self._server = apiserver.ApiServer(api.Kubernetes.release(version), [self._admin, self._plugin], made)
        self._server.start()
        self._directory, self._ca = directory, made.ca
        self.admin = self._connect(self._admin)
        self.admin.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self._collection = f"{cluster.discover(self.admin).prefix}/resourceslices"

    def _connect(self, identity: identities.Identity) -> cluster.Connection:
        path = self._directory / f"{identity.name}.yaml"
        identities.write_kubeconfig(path, self._server.url, self._ca, identity)
        return cluster.connect(cluster.Location(kubeconfig=str(path)))

    def as_plugin(self) -> cluster.Connection:
        return self._connect(self._plugin)

    def slices(self) -> list[dict[str, Any]]:
        return self.admin.list(self._collection)[0]

    def wipe(self) -> None:
        for item in self.slices():
            self.admin.delete(f"{self._collection}/{item['metadata']['name']}")

    def stop(self) -> None:
        self.admin.close()
        self._server.stop()


@pytest.fixture(params=["1.32", "1.34", "1.37"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, request.param)
    yield lab
    lab.stop()


@pytest.fixture
def publisher(lab: Lab) -> Iterator[Publisher]:
    server = ApiServer(lab.as_plugin)
    publisher = Publisher(server, driver=DRIVER, node=NODE, check_seconds=0.5, after_write_seconds=(0.1,))
    publisher.start()
    yield publisher
    publisher.stop()
    server.close()


def test_a_tainted_pool_of_two_slices_settles_and_comes_back_after_a_wipe(
    lab: Lab, publisher: Publisher, wait_until: Wait
) -> None:
    memory = {"memory": api.Capacity(api.Quantity.of_mib(81920))}  # comes back as 80Gi
    version = {"driverVersion": api.Version.parse("580.95.5"), "index": 1, "migCapable": True, "type": "gpu"}
    devices = [api.Device(f"gpu-{n}", attributes=version, capacity=memory) for n in range(70)]
    publisher.publish(devices)
    wait_until(lambda: publisher.settled)
    publisher.publish(devices[:69], lost=["gpu-69"])
    wait_until(lambda: publisher.settled)
    settled = {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in lab.slices()}
    assert len(settled) == 2
    publisher.publish(devices[:69], lost=["gpu-69", "gpu-unheard-of"])
    wait_until(lambda: publisher.settled)
    assert {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in lab.slices()} == settled
    lab.wipe()
    wait_until(lambda: len(lab.slices()) == 2 and publisher.settled)
    last = max(lab.slices(), key=lambda item: str(item["metadata"]["name"]))
    assert [device["name"] for device in last["spec"]["devices"]][-1] == "gpu-69"
