"""Flags, environment and socket paths, and one clear line for what cannot be run with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dradriver import main, node
from dradriver.node import sockets
from dradriver.node.settings import Address

UID = "6f0c2d1e-1111-4222-8333-444455556666"


def test_defaults_are_the_kubelets_places() -> None:
    settings = node.parse(["--node-name", "n1"], {})
    assert settings.driver_name == "gpu.gpupool.dev"
    assert settings.plugin_dir == Path("/var/lib/kubelet/plugins/gpu.gpupool.dev")
    assert settings.state_dir == settings.plugin_dir
    assert (settings.cdi_dir, settings.dev_root, settings.nvml) == (Path("/var/run/cdi"), Path("/"), "system")
    assert (settings.health, settings.metrics) == (None, None)


def test_flags_win_over_environment_and_own_names_over_everyones() -> None:
    environment = {"NODE_NAME": "theirs", "GPUPOOL_NODE_NAME": "ours", "GPUPOOL_CDI_DIR": "/cdi", "POD_UID": UID}
    settings = node.parse(["--cdi-dir", "/flag"], environment)
    assert (settings.node_name, settings.cdi_dir, settings.pod_uid) == ("ours", Path("/flag"), UID)


def test_every_flag_has_its_variable() -> None:
    environment = {
        "NODE_NAME": "n1",
        "KUBECONFIG": "/k",
        "GPUPOOL_DRIVER_NAME": "d.example",
        "GPUPOOL_PLUGINS_DIR": "/p",
        "GPUPOOL_REGISTRAR_DIR": "/r",
        "GPUPOOL_STATE_DIR": "/s",
        "GPUPOOL_DRIVER_ROOT": "/dr",
        "GPUPOOL_DEV_ROOT": "/dv",
        "GPUPOOL_NVML": "node.yaml",
        "GPUPOOL_METRICS_PORT": "8080",
        "GPUPOOL_HEALTH_PORT": "127.0.0.1:8081",
        "GPUPOOL_V": "2",
    }
    settings = node.parse([], environment)
    assert (settings.kubeconfig, settings.driver_name, settings.nvml) == ("/k", "d.example", "node.yaml")
    assert [settings.plugins_dir, settings.registrar_dir, settings.state_dir] == [Path("/p"), Path("/r"), Path("/s")]
    assert [settings.driver_root, settings.dev_root] == [Path("/dr"), Path("/dv")]
    assert (settings.metrics, settings.health) == (Address("", 8080), Address("127.0.0.1", 8081))
    assert settings.verbosity == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--node-name '' is no node's name; set it, or NODE_NAME"),
        (["--node-name", "n1", "--driver-name", "GPU.example"], "--driver-name 'GPU.example' is not a lower-case"),
        (["--node-name", "n1", "--pod-uid", "../x"], "--pod-uid '../x' is no UID; set it, or POD_UID"),
        (["--node-name", "n1", "--health-port", "99999"], "--health-port '99999' is not [HOST:]PORT"),
        (["--node-name", "n1", "--colour"], "unrecognized arguments: --colour; see gpupool-node --help"),
    ],
)
def test_what_cannot_be_run_with_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(node.SettingsError, match=re.escape(message)):
        node.parse(arguments, {})


def test_sockets_have_the_names_other_tools_look_for() -> None:
    directory = Path("/var/lib/kubelet/plugins_registry")
    assert sockets.registration_path(directory, "gpu.gpupool.dev", "").name == "gpu.gpupool.dev-reg.sock"
    assert sockets.registration_path(directory, "gpu.gpupool.dev", UID).name == f"gpu.gpupool.dev-{UID}-reg.sock"
    assert sockets.service_path(directory, "gpu.gpupool.dev", "").name == "dra.sock"
    assert sockets.service_path(directory, "gpu.gpupool.dev", UID).name == f"dra-{UID}.sock"


@pytest.mark.parametrize(("length", "name"), [(107, f"d.example-{UID}-reg.sock"), (108, "d.example-")])
def test_a_path_of_107_bytes_is_kept_and_one_of_108_is_shortened(length: int, name: str) -> None:
    whole = f"d.example-{UID}-reg.sock"
    directory = Path("/" + "x" * (length - len(whole) - 2))
    path = sockets.registration_path(directory, "d.example", UID)
    assert path.name.startswith(name)
    assert len(os.fsencode(path)) <= 107
    assert (path.name == whole) == (length == 107)


def test_shortened_names_are_those_of_the_go_helper() -> None:
    # sha256 of the UID, its first 8 bytes; sha256 of driver NUL UID, its first 16 bytes; base64url, unpadded.
    directory = Path("/" + "x" * 60)
    assert sockets.registration_path(directory, "d.example", UID).name == "d.example-aaEq2IjyYN0-reg.sock"
    long = f"{'a' * 50}.example"
    assert sockets.registration_path(directory, long, UID).name == "dra-3WCoW4G4w8gON3qo9JvzmQ-reg.sock"


def test_a_driver_name_too_long_for_any_socket_is_one_line_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = f"{'a' * 55}.example"
    place = tmp_path / ("x" * 60)
    status = main.main(["--node-name", "n1", "--driver-name", driver, "--plugins-dir", str(place)], {})
    told = capsys.readouterr().err
    assert status == 1
    assert told.count("\n") == 1
    assert "a Unix socket's path may have 107" in told
    assert driver in told


def test_without_grpc_the_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['grpc'] = None; from dradriver.main import main; sys.exit(main(['--node-name', 'n']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert done.stderr == "gpupool-node: package grpc is missing: pip install 'gpupool[node]'\n"


def test_importing_the_entry_module_loads_nothing_heavy() -> None:
    code = (
        "import sys, dradriver.main; print([m for m in ('grpc', 'kubernetes', 'pynvml', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "[]\n"
