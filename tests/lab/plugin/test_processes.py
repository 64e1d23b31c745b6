"""What a kubelet sees of the plugin while people, disks and other processes do their worst to it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

GPUS = [f"gpu-{n}" for n in range(4)]
NOBODYS_FILE = {"metadata": {"uid": "gone", "name": "gone", "namespace": "default"}}


def test_a_second_instance_takes_over_and_the_end_of_the_first_takes_nothing_from_it(running: Any) -> None:
    first = running.processes[0]
    before = running.socket.stat().st_ctime_ns
    running.start()
    running.wait(lambda: running.log.count("serving") == 2)
    assert running.socket.stat().st_ctime_ns != before
    first.terminate()
    assert first.wait(20) == 0
    assert running.registration.is_socket()
    assert running.prepare(running.add_claim("train", "gpu-0"), seconds=5) == ""


def test_two_instances_of_an_update_share_what_is_prepared(running: Any) -> None:
    uid = "6f0c2d1e-1111-4222-8333-444455556666"
    running.start("--pod-uid", uid)
    theirs = running.socket.with_name(f"dra-{uid}.sock")
    running.wait(theirs.is_socket)
    claim, other = running.add_claim("train", "gpu-0"), running.add_claim("other", "gpu-0")
    assert running.prepare(claim) == ""
    assert "held by claim default/train" in running.prepare(other, socket=theirs)
    assert running.unprepare(claim, socket=theirs) == ""
    assert running.prepare(other) == ""


def test_wiped_directories_cost_no_claim_and_come_back(running: Any) -> None:
    claim = running.add_claim("train", "gpu-0")
    assert running.prepare(claim) == ""
    for name in "scr":
        shutil.rmtree(running.root / name)
    running.prepare(running.add_claim("unknown", "gpu-9"))  # a device unknown has the node looked after at once
    running.wait(running.registration.is_socket)
    running.wait(running.journal.exists)
    assert "held by claim default/train" in running.prepare(running.add_claim("other", "gpu-0"))
    running.wait(lambda: running.cdi_files() == {claim["metadata"]["uid"]})


def test_killed_at_any_moment_nothing_is_held_twice_and_everything_can_be_released(running: Any) -> None:
    claims = [running.add_claim(f"c{n}", f"gpu-{n % 4}") for n in range(8)]

    def churn(claim: Any) -> None:
        with contextlib.suppress(Exception):  # the plugin is killed under it
            while True:
                running.prepare(claim, seconds=3)
                running.unprepare(claim, seconds=3)

    for life in range(2, 5):
        with ThreadPoolExecutor(8) as kubelet:
            for claim in claims:
                kubelet.submit(churn, claim)
            running.wait(lambda count=20 * life: running.log.count("unprepared claim") > count)
            running.processes[-1].kill()
            running.processes[-1].wait(10)
        running.start()
        running.wait(lambda life=life: running.log.count("INFO  serving") == life)
        held = [spec for spec in running.cdi_specs() for _ in spec["devices"]]
        assert len({str(spec["devices"]) for spec in held}) == len(held)
        assert [running.unprepare(claim) for claim in claims] == [""] * 8
        assert running.cdi_files() == set()


def test_a_disk_that_takes_no_byte_more_refuses_prepare_and_lets_unprepare_through(running: Any) -> None:
    held, late = running.add_claim("held", "gpu-0"), running.add_claim("late", "gpu-1")
    assert running.prepare(held) == ""
    running.limit_files(0)
    assert f"journal {running.journal} cannot take a record" in running.prepare(late)
    assert running.unprepare(held) == ""
    assert running.cdi_files() == set()
    running.limit_files(None)
    assert running.prepare(late) == ""


def test_unprepare_does_not_wait_behind_prepares_that_wait_for_a_server(node: Any) -> None:
    claims = [node.add_claim(f"c{n}", "gpu-0") for n in range(12)]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = node.kubeconfig.with_name("silent")
        port = silent.getsockname()[1]
        lines = node.kubeconfig.read_text().splitlines()
        address.write_text(
            "\n".join(
                f"{line.partition('server:')[0]}server: https://127.0.0.1:{port}" if "server:" in line else line
                for line in lines
            )
        )
        node.start("--kubeconfig", str(address))
        node.wait(node.socket.is_socket)
        with ThreadPoolExecutor(12) as kubelet:
            waiting = [kubelet.submit(node.prepare, claim) for claim in claims]
            assert node.unprepare(NOBODYS_FILE, seconds=4) == ""
            assert all("has not answered" in call.result() for call in waiting)


def test_a_stop_during_prepares_keeps_what_was_answered(running: Any) -> None:
    claims = [running.add_claim(f"c{n}", f"gpu-{n % 4}", admin=True) for n in range(20)]

    def prepare(claim: Any) -> str:
        try:
            return str(running.prepare(claim, seconds=10))
        except Exception:  # noqa: BLE001 - not answered
            return "not answered"

    with ThreadPoolExecutor(20) as kubelet:
        calls = {claim["metadata"]["uid"]: kubelet.submit(prepare, claim) for claim in claims}
        running.wait(lambda: "prepared claim" in running.log)
        running.processes[0].terminate()
        assert running.processes[0].wait(20) == 0
    assert {uid for uid, call in calls.items() if call.result() == ""} <= running.cdi_files()


def test_a_stopped_process_answers_when_it_goes_on(running: Any) -> None:
    running.processes[0].send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as kubelet:
        call = kubelet.submit(running.prepare, running.add_claim("train", "gpu-0"))
        running.processes[0].send_signal(signal.SIGCONT)
        assert call.result(20) == ""


@pytest.mark.parametrize(
    ("name", "flag"), [("s", "--state-dir"), ("c", "--cdi-dir"), ("p", "--plugins-dir"), ("r", "r/gpu.gpupool.dev-reg")]
)
def test_a_file_where_a_directory_should_be_is_one_line(node: Any, name: str, flag: str) -> None:
    node.root.joinpath(name).touch()
    assert node.start().wait(20) == 1
    (told,) = (line for line in node.log.splitlines() if line.startswith("gpupool-node: "))
    assert str(node.root / name) in told
    assert flag in told


def test_devices_come_and_go_with_the_hardware_and_those_held_stay(running: Any) -> None:
    claim = running.add_claim("train", "gpu-1")
    assert running.prepare(claim) == ""
    running.fault("calls: {nvmlDeviceGetCount_v2: DRIVER_NOT_LOADED}")
    late = running.prepare(running.add_claim("late", "gpu-3x"))
    assert "the hardware could not be read: " in late
    assert "DRIVER_NOT_LOADED" in late
    running.wait(lambda: running.published() == ["gpu-1!"])
    assert running.prepare(claim) == ""
    running.fault("gpus: {2: {lost: true}}")
    assert "gpu-3y" in running.prepare(running.add_claim("later", "gpu-3y"))  # a device unknown has the node looked at
    running.wait(lambda: running.published() == ["gpu-0", "gpu-1", "gpu-3"])


@pytest.mark.parametrize("apiserver", ["1.32", "1.33", "1.37", ("1.37", {"DRADeviceTaints": False})], indirect=True)
def test_each_server_gets_slices_it_takes_and_claims_are_read_from_it(running: Any) -> None:
    claim = running.add_claim("train", "gpu-1")
    assert running.prepare(claim) == ""
    running.fault("gpus: {1: {lost: true}}")
    running.prepare(running.add_claim("other", "gpu-9"))
    running.wait(lambda: running.log.count("published slices") == 2)
    assert running.log.count("missing_gate=DRADeviceTaints") == running.published().count("gpu-1")


def test_slices_that_somebody_deletes_or_changes_are_put_right(running: Any) -> None:
    path = f"{running.prefix}/resourceslices"
    for _ in range(3):
        for item in running.slices():
            running.admin.delete(f"{path}/{item['metadata']['name']}")
        running.wait(lambda: running.published() == GPUS)
    (item,) = running.slices()
    del item["spec"]["devices"][1:]
    running.admin.replace(f"{path}/{item['metadata']['name']}", item)
    running.wait(lambda: running.published() == GPUS)
