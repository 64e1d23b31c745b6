"""The whole plugin over its sockets, as a kubelet meets it; the API server and the hardware are values."""

from __future__ import annotations

import http.client
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

from dradriver import api, cluster, hardware
from dradriver.cluster.requesting import Request
from dradriver.node import Plugin, Settings, SettingsError, registration
from dradriver.node import plugin as plugins
from dradriver.node.locking import NodeLock
from dradriver.node.settings import Address
from dradriver.protocol import dra_v1_pb2, dra_v1beta1_pb2, pluginregistration_pb2, services

Make = Callable[..., Any]
Wait = Callable[..., None]
VERSIONS = [(services.DRA_V1, dra_v1_pb2), (services.DRA_V1BETA1, dra_v1beta1_pb2)]


class _Nvml:
    def close(self) -> None:
        pass


def _gpus(count: int) -> hardware.Inventory:
    return hardware.Inventory(
        gpus=tuple(
            hardware.Gpu(uuid=f"GPU-{n}", nvml_index=n, pci_address=f"0000:{n:02x}:00.0", minor=n) for n in range(count)
        )
    )


class Lab:
    """One plugin with its directories, and the calls a kubelet makes."""

    def __init__(self, root: Path, server: Any) -> None:
        self.root = root
        self.server = server
        self.inventory = _gpus(4)
        self.settings = Settings(
            node_name="node-a",
            plugins_dir=root / "plugins",
            registrar_dir=root / "registry",
            cdi_dir=root / "cdi",
            state_dir=root / "state",
            dev_root=root,
        )
        (root / "dev").mkdir()
        for n in range(4):
            (root / "dev" / f"nvidia{n}").touch()
        self._running: list[tuple[Plugin, threading.Thread]] = []

    def read(self, _nvml: object, _roots: object) -> hardware.Inventory:
        return self.inventory

    def start(self, **changes: Any) -> Plugin:
        plugin = Plugin(
            replace(self.settings, **changes),
            opening_nvml=_Nvml,  # type: ignore[arg-type]  # `read` stands in for all that asks it
            opening_connection=self.server.connection,
            roots=hardware.Roots.under(self.root),
        )
        thread = threading.Thread(target=plugin.run)
        thread.start()
        self._running.append((plugin, thread))
        return plugin

    def stop(self) -> None:
        for plugin, thread in self._running:
            plugin.stop()
            thread.join(20)
            assert not thread.is_alive()
        self._running.clear()

    @property
    def registration_socket(self) -> Path:
        return self.root / "registry" / "gpu.gpupool.dev-reg.sock"

    @property
    def dra_socket(self) -> Path:
        return self.root / "plugins" / "gpu.gpupool.dev" / "dra.sock"

    def register(self, *, success: bool = True) -> pluginregistration_pb2.PluginInfo:
        with grpc.insecure_channel(f"unix:{self.registration_socket}") as channel:
            get_info = services.caller(channel, services.REGISTRATION, "GetInfo")
            info: pluginregistration_pb2.PluginInfo = get_info(pluginregistration_pb2.InfoRequest(), timeout=1)
            notify = services.caller(channel, services.REGISTRATION, "NotifyRegistrationStatus")
            status = pluginregistration_pb2.RegistrationStatus(
                plugin_registered=success, error="" if success else "unknown version"
            )
            notify(status, timeout=5)
            return info

    def call(
        self,
        method: str,
        *claims: api.ResourceClaim,
        service: Any = services.DRA_V1,
        messages: ModuleType = dra_v1_pb2,
        seconds: float = 20,
    ) -> Any:
        request = getattr(messages, f"{method}Request")(
            claims=[
                messages.Claim(uid=c.metadata.uid, name=c.metadata.name, namespace=c.metadata.namespace) for c in claims
            ]
        )
        with grpc.insecure_channel(f"unix:{self.dra_socket}") as channel:
            response = services.caller(channel, service, method)(request, timeout=seconds, wait_for_ready=True)
        assert set(response.claims) == {claim.metadata.uid for claim in claims}
        return response.claims

    def prepare(self, claim: api.ResourceClaim) -> Any:
        return self.call("NodePrepareResources", claim)[claim.metadata.uid]

    def unprepare(self, claim: api.ResourceClaim) -> Any:
        return self.call("NodeUnprepareResources", claim)[claim.metadata.uid]

    def cdi_files(self) -> set[str]:
        return {path.name for path in (self.root / "cdi").glob("*")}


@pytest.fixture
def lab(short_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    lab = Lab(short_path, server)
    monkeypatch.setattr(hardware, "read", lab.read)
    yield lab
    lab.stop()


@pytest.fixture
def running(lab: Lab, wait_until: Wait) -> Lab:
    plugin = lab.start()
    wait_until(lambda: plugin.status().settled)
    return lab


def test_it_registers_with_v1_first_and_is_ready_once_slices_are_published(lab: Lab, wait_until: Wait) -> None:
    plugin = lab.start()
    wait_until(lab.registration_socket.is_socket)
    assert not plugin.status().ready
    info = lab.register()
    assert (info.type, info.name, info.endpoint) == ("DRAPlugin", "gpu.gpupool.dev", str(lab.dra_socket))
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    wait_until(lambda: plugin.status().ready)
    assert [device.name for value in lab.server.slices() for device in value.devices] == [f"gpu-{n}" for n in range(4)]


def test_a_refused_registration_shows_and_the_socket_is_made_anew(
    lab: Lab, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        registration.Registration.__init__,
        "__kwdefaults__",
        {**registration.Registration.__init__.__kwdefaults__, "first_wait": 0.1, "check_seconds": 0.02},
    )
    plugin = lab.start()
    wait_until(lab.registration_socket.is_socket)
    lab.register(success=False)
    assert any("unknown version" in problem for problem in plugin.status().problems)
    first = _identity(lab.registration_socket)
    wait_until(lambda: _identity(lab.registration_socket) not in (first, None))
    wait_until(lambda: _try_register(lab))
    lab.registration_socket.unlink()
    wait_until(lab.registration_socket.is_socket)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file this is, None while there is none; inode numbers alone are used again at once."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


def _try_register(lab: Lab) -> bool:
    try:
        lab.register()
    except grpc.RpcError:  # between two sockets
        return False
    return True


@pytest.mark.parametrize(("service", "messages"), VERSIONS)
def test_a_claim_is_prepared_and_unprepared(
    running: Lab, make_claim: Make, service: services.Service, messages: ModuleType
) -> None:
    claim = make_claim("train", "gpu-1", "gpu-2")
    running.server.put_claim(claim)
    for _ in range(2):
        prepared = running.call("NodePrepareResources", claim, service=service, messages=messages)[claim.metadata.uid]
        assert prepared.error == ""
        assert [
            (list(d.request_names), d.pool_name, d.device_name, list(d.cdi_device_ids)) for d in prepared.devices
        ] == [(["r"], "node-a", name, [f"k8s.gpu.gpupool.dev/claim=uid-train-{name}"]) for name in ("gpu-1", "gpu-2")]
        assert running.cdi_files() == {"k8s.gpu.gpupool.dev-claim_uid-train.json"}
    for _ in range(2):
        gone = running.call("NodeUnprepareResources", claim, service=service, messages=messages)[claim.metadata.uid]
        assert gone.error == ""
        assert running.cdi_files() == set()


def test_every_claim_gets_its_own_answer(running: Lab, make_claim: Make) -> None:
    good, bad, absent, replaced = (
        make_claim("good", "gpu-0"),
        make_claim("bad", "gpu-9"),
        make_claim("absent", "gpu-1"),
        make_claim("re", "gpu-2"),
    )
    for claim in (good, bad, replace(replaced, metadata=replace(replaced.metadata, uid=api.UID("newer")))):
        running.server.put_claim(claim)
    answers = running.call("NodePrepareResources", good, bad, absent, replaced)
    assert answers[good.metadata.uid].error == ""
    assert "device gpu-9" in answers[bad.metadata.uid].error
    assert "claim team/absent" in answers[absent.metadata.uid].error
    assert "was replaced" in answers[replaced.metadata.uid].error
    assert running.cdi_files() == {"k8s.gpu.gpupool.dev-claim_uid-good.json"}


def test_an_error_nobody_foresaw_is_that_claims_alone(running: Lab, make_claim: Make) -> None:
    good, bad = make_claim("good", "gpu-0"), make_claim("bad", "gpu-1")
    for claim in (good, bad):
        running.server.put_claim(claim)

    def break_bad(request: Request) -> None:
        if request.path.endswith("/bad"):
            raise ZeroDivisionError("a bug")

    running.server.refuse = break_bad
    answers = running.call("NodePrepareResources", bad, good)
    assert answers[good.metadata.uid].error == ""
    assert "ZeroDivisionError: a bug" in answers[bad.metadata.uid].error


def test_a_device_another_claim_holds_is_refused_until_that_is_unprepared(running: Lab, make_claim: Make) -> None:
    first, second = make_claim("first", "gpu-0"), make_claim("second", "gpu-0")
    for claim in (first, second):
        running.server.put_claim(claim)
    assert running.prepare(first).error == ""
    assert "held by claim team/first" in running.prepare(second).error
    running.unprepare(first)
    assert running.prepare(second).error == ""


def test_unprepare_needs_no_claim_no_server_and_no_gpu(running: Lab, make_claim: Make) -> None:
    claim = make_claim("train", "gpu-0")
    running.server.put_claim(claim)
    running.prepare(claim)

    def down(_request: Request) -> None:
        raise cluster.UnreachableError("down")

    running.server.refuse = down
    running.inventory = hardware.Inventory()
    assert "down" in running.prepare(make_claim("other", "gpu-1")).error
    assert running.unprepare(claim).error == ""
    assert running.cdi_files() == set()


def test_a_gpu_that_appeared_since_the_last_look_is_found_at_prepare(running: Lab, make_claim: Make) -> None:
    running.inventory = _gpus(4)
    claim = make_claim("train", "gpu-4")
    running.server.put_claim(claim)
    (running.root / "dev" / "nvidia4").touch()
    assert "gpu-4" in running.prepare(claim).error
    running.inventory = _gpus(5)
    assert running.prepare(claim).error == ""


@pytest.mark.usefixtures("running")
def test_prepared_claims_survive_a_restart_and_slices_stay(lab: Lab, make_claim: Make) -> None:
    claim = make_claim("train", "gpu-0")
    lab.server.put_claim(claim)
    lab.prepare(claim)
    uids = [value.metadata.uid for value in lab.server.slices()]
    lab.stop()
    assert not lab.registration_socket.exists()
    assert not lab.dra_socket.exists()
    lab.start()
    assert "held by claim" in _prepared_with(lab, make_claim("other", "gpu-0")).error
    assert lab.prepare(claim).error == ""
    assert [value.metadata.uid for value in lab.server.slices()] == uids


def _prepared_with(lab: Lab, claim: api.ResourceClaim) -> Any:
    lab.server.put_claim(claim)
    return lab.prepare(claim)


def test_stale_sockets_of_a_killed_plugin_are_replaced(lab: Lab, wait_until: Wait) -> None:
    for path in (lab.registration_socket, lab.dra_socket):
        path.parent.mkdir(parents=True)
        path.touch()
    lab.start()
    wait_until(lab.registration_socket.is_socket)
    assert lab.register().name == "gpu.gpupool.dev"


@pytest.mark.usefixtures("running")
def test_a_claim_whose_release_was_never_recorded_is_released_when_the_server_says_it_is_gone(
    lab: Lab, make_claim: Make, wait_until: Wait
) -> None:
    gone, still = make_claim("gone", "gpu-0"), make_claim("still", "gpu-1")
    for claim in (gone, still):
        lab.server.put_claim(claim)
        lab.prepare(claim)
    lab.stop()
    for path in (lab.root / "cdi").iterdir():
        path.unlink()
    lab.server.objects.pop("/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/gone")
    plugin = lab.start()
    wait_until(lambda: plugin.status().prepared == 1)
    wait_until(lambda: lab.cdi_files() == {"k8s.gpu.gpupool.dev-claim_uid-still.json"})
    assert _prepared_with(lab, make_claim("new", "gpu-0")).error == ""


@pytest.mark.usefixtures("running")
def test_a_held_gpu_that_is_lost_stays_published_with_a_taint(lab: Lab, make_claim: Make, wait_until: Wait) -> None:
    claim = make_claim("train", "gpu-3")
    lab.server.put_claim(claim)
    lab.prepare(claim)
    lab.stop()
    lab.inventory = _gpus(3)
    plugin = lab.start()
    wait_until(lambda: plugin.status().settled)
    (made,) = lab.server.slices()
    assert [(d.name, [t.key for t in d.taints]) for d in made.devices][3] == ("gpu-3", ["gpu.gpupool.dev/lost"])
    assert lab.prepare(claim).error == ""


def test_two_instances_share_the_state_during_an_update(lab: Lab, make_claim: Make, wait_until: Wait) -> None:
    old = lab.start(pod_uid="6f0c2d1e-0000-4000-8000-000000000001")
    new = lab.start(pod_uid="6f0c2d1e-0000-4000-8000-000000000002")
    wait_until(lambda: old.status().settled and new.status().settled)
    claim = make_claim("train", "gpu-0")
    lab.server.put_claim(claim)
    uid = claim.metadata.uid
    old.prepare(uid, "team", "train", lambda: True)
    assert new.prepare(uid, "team", "train", lambda: True).uid == uid
    assert len(list((lab.root / "registry").glob("*.sock"))) == 2
    assert len(lab.server.slices()) == 1


def _get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_registration_is_answered_while_prepare_waits_for_the_lock(running: Lab, make_claim: Make) -> None:
    running.server.put_claim(claim := make_claim("train", "gpu-0"))
    waiting = threading.Thread(target=running.prepare, args=(claim,))
    with NodeLock(running.dra_socket.with_name("serialize.lock")).held(1):
        waiting.start()
        assert running.register().name == "gpu.gpupool.dev"
        assert running.cdi_files() == set()
    waiting.join(10)
    assert running.cdi_files() == {"k8s.gpu.gpupool.dev-claim_uid-train.json"}


def test_a_call_the_kubelet_gave_up_prepares_nothing(lab: Lab, make_claim: Make, wait_until: Wait) -> None:
    plugin = lab.start()
    wait_until(lambda: plugin.status().settled)
    lab.server.put_claim(claim := make_claim("train", "gpu-0"))
    with (
        NodeLock(lab.dra_socket.with_name("serialize.lock")).held(1),
        pytest.raises(grpc.RpcError, match="DEADLINE_EXCEEDED"),
    ):
        lab.call("NodePrepareResources", claim, seconds=0.3)
    wait_until(plugin._tally.counts)
    assert set(plugin._tally.counts()) == {("prepare", "error")}
    assert plugin.status().prepared == 0
    assert lab.cdi_files() == set()


def test_a_start_that_fails_leaves_the_sockets_of_a_running_plugin_alone(running: Lab) -> None:
    second = Plugin(
        replace(running.settings, state_dir=running.dra_socket / "state"),
        opening_nvml=_Nvml,  # type: ignore[arg-type]  # not reached
        opening_connection=running.server.connection,
        roots=hardware.Roots.under(running.root),
    )
    with pytest.raises(SettingsError):
        second.run()
    assert running.dra_socket.is_socket()
    assert running.registration_socket.is_socket()


def test_a_driver_that_hangs_holds_up_neither_unprepare_nor_the_end(
    running: Lab, make_claim: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "SCAN_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(plugins, "GRACE_SECONDS", 0.1)
    held, unknown = make_claim("held", "gpu-0"), make_claim("unknown", "gpu-9")
    for claim in (held, unknown):
        running.server.put_claim(claim)
    assert running.prepare(held).error == ""
    hangs, ends = threading.Event(), threading.Event()

    def hang(_nvml: object, _roots: object) -> hardware.Inventory:
        hangs.set()
        ends.wait(30)
        return hardware.Inventory()

    monkeypatch.setattr(hardware, "read", hang)
    for _ in range(3):
        assert "gpu-9" in running.prepare(unknown).error
    assert hangs.is_set()
    assert running.prepare(held).error == ""
    assert running.unprepare(held).error == ""
    running.stop()
    ends.set()


def test_what_can_be_no_claim_is_refused_and_needs_no_release(running: Lab, make_claim: Make) -> None:
    for strange in ({"uid": "../x"}, {"uid": "a\0b"}, {"name": "../.."}, {"namespace": "a/b"}, {"name": ""}):
        claim = make_claim("train", "gpu-0")
        claim = replace(claim, metadata=replace(claim.metadata, **strange))
        assert "can be no claim" in running.prepare(claim).error
        assert running.unprepare(claim).error == ""
    assert not any("resourceclaims" in request for request in running.server.requests)


def test_probes_tell_what_is_missing(lab: Lab, wait_until: Wait) -> None:
    plugin = lab.start(health=Address("127.0.0.1", port := _free_port()))
    wait_until(lambda: plugin.status().settled)
    assert _get(port, "/livez") == (200, "ok\n")
    assert _get(port, "/readyz") == (503, "not ready\nregistration: the kubelet has not called yet\n")
    lab.register()
    assert _get(port, "/readyz") == (200, "ok\n")
    assert _get(port, "/metrics")[0] == 404


def test_metrics_have_the_devices_and_the_kubelets_calls(lab: Lab, make_claim: Make, wait_until: Wait) -> None:
    address = Address("127.0.0.1", _free_port())
    plugin = lab.start(health=address, metrics=address)
    wait_until(lambda: plugin.status().settled)
    lab.server.put_claim(claim := make_claim("train", "gpu-0"))
    lab.prepare(claim)
    lab.prepare(make_claim("absent", "gpu-1"))
    _, page = _get(address.port, "/metrics")
    (sample,) = (line for line in page.splitlines() if line.startswith("gpupool_device_claims{") and "gpu-0" in line)
    for label in ('driver="gpu.gpupool.dev"', 'pool="node-a"', 'device="gpu-0"', 'uuid="GPU-0"'):
        assert label in sample
    assert sample.endswith(" 1.0")
    for outcome in ("success", "error"):
        labels = f'driver="gpu.gpupool.dev",method="prepare",outcome="{outcome}"'
        assert f"gpupool_kubelet_call_seconds_count{{{labels}}} 1.0" in page
    assert 'gpupool_slices_settled{driver="gpu.gpupool.dev"} 1.0' in page


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_port_that_is_taken_ends_the_start_with_the_reason(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        plugin = Plugin(
            replace(lab.settings, health=Address("127.0.0.1", port)),
            opening_nvml=_Nvml,  # type: ignore[arg-type]  # not reached
            opening_connection=lab.server.connection,
            roots=hardware.Roots.under(lab.root),
        )
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}: Address already in use"):
            plugin.run()
    assert not lab.dra_socket.exists()


def test_a_state_directory_that_cannot_be_made_ends_the_start_with_the_reason(lab: Lab) -> None:
    lab.root.joinpath("state").touch()
    plugin = Plugin(
        lab.settings,
        opening_nvml=_Nvml,  # type: ignore[arg-type]  # not reached
        opening_connection=lab.server.connection,
        roots=hardware.Roots.under(lab.root),
    )
    with pytest.raises(SettingsError, match=f"directory {os.fspath(lab.root)}/state cannot be made"):
        plugin.run()
