"""`gpupool-node` as a process on described hardware, and its one line for what it cannot run with."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dradriver import main

Wait = Callable[..., None]
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: lab, user: {}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
current-context: lab
"""


def _arguments(root: Path, nvml: str = "l4-4") -> list[str]:
    kubeconfig = root / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    directories = ("plugins", "registrar", "cdi", "state")
    return [
        *("--node-name", "n1", "--kubeconfig", str(kubeconfig), "--nvml", nvml, "--dev-root", str(root / "root")),
        *(text for name in directories for text in (f"--{name}-dir", str(root / name))),
    ]


@pytest.fixture
def start(short_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dradriver.main", *_arguments(short_path)]
        started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_it_serves_while_the_server_is_away_and_leaves_no_socket_on_sigterm(
    start: Callable[[], subprocess.Popen[str]], short_path: Path, wait_until: Wait
) -> None:
    sockets = [
        short_path / "registrar" / "gpu.gpupool.dev-reg.sock",
        short_path / "plugins" / "gpu.gpupool.dev" / "dra.sock",
    ]
    killed = start()
    wait_until(lambda: all(path.is_socket() for path in sockets), 30)
    killed.send_signal(signal.SIGKILL)
    killed.wait(10)
    assert all(path.is_socket() for path in sockets)
    process = start()
    assert process.stderr is not None
    told = next(line for line in process.stderr if "cannot publish" in line)
    assert "127.0.0.1:1" in told
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert not any(path.exists() for path in sockets)
    assert (short_path / "root" / "dev" / "nvidia0").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--nvml", "hgx-h100-80gb"], "hgx-h100-80gb: no description of this name; did you mean hgx-h100?"),
        (["--dev-root", "/"], "give --dev-root a directory of its own"),
        (
            ["--dev-root", "/proc/self/nowhere"],
            "/proc/self/nowhere: No such file or directory; give a directory that can be written",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], told: str
) -> None:
    assert main.main([*_arguments(tmp_path), *change], {}) == 1
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith("gpupool-node: ")
    assert error.count("\n") == 1
