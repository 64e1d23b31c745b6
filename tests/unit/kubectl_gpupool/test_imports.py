"""The command line needs neither the node's packages nor Unix."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Absent())
import kubectl_gpupool
for module in pkgutil.iter_modules(kubectl_gpupool.__path__):
    if module.name != "lab":
        importlib.import_module("kubectl_gpupool." + module.name)
from kubectl_gpupool import main
status = main.run(sys.argv[1:])
print(sorted(set(sys.modules) & {watched}), file=sys.stderr)
sys.exit(status)
"""
NODE = ("grpc", "google", "pynvml", "networkx", "cryptography", "prometheus_client")
UNIX = ("fcntl", "termios", "pwd", "grp", "resource", "pty", "tty", "syslog")


def _run(blocked: tuple[str, ...], watched: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(blocked=set(blocked), watched=set(watched))
    return subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_it_runs_without_the_packages_of_the_node_and_the_lab(story: str) -> None:
    done = _run(NODE, (), "explain", "claim", "story/hopper-80gi", "--from", story)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_it_imports_none_of_them_where_they_are(story: str) -> None:
    done = _run((), (*NODE, "dradriver.hardware", "dradriver.node", "dradriver.lab"), "inspect", "--from", story)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_it_runs_where_there_are_no_unix_modules(story: str) -> None:
    done = _run(UNIX, (), "inspect", "--tree", "--from", story)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_file_needs_no_client_of_a_cluster(story: str) -> None:
    done = _run((), ("kubernetes", "rich", "ssl"), "inspect", "--from", story)
    assert "kubernetes" not in done.stderr
    assert "rich" not in done.stderr
