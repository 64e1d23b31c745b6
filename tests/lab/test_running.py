"""`kubectl gpupool lab up|status|down` as processes, and what is left of labs that were killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dradriver import lab
from dradriver.lab import places

Ask = Callable[..., Any]

DESCRIPTION = "l4-4"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory for a lab, which is down and gone afterwards."""
    path = tmp_path / "lab"
    yield path
    lab.down(lab.Home(path))


def run(action: str, home: Path, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [Path(sys.executable).with_name("kubectl-gpupool"), "lab", action, "--directory", str(home), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def report(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("status", home, "-o", "json"))
    return found


def processes(home: Path) -> list[int]:
    """Everything that runs with this lab's directory in its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(home).encode() in words:
                found.append(int(entry.name))
    return found


def sockets(home: Path) -> Path:
    return Path(json.loads((home / "plan.json").read_text())["sockets"])


def test_a_lab_comes_up_tells_how_it_is_and_goes_without_a_trace(home: Path) -> None:
    said = run("up", home, "--nodes", f"{DESCRIPTION},second={DESCRIPTION}")
    assert "node l4-4: 4 devices" in said
    assert "node second: 4 devices" in said
    assert f"export KUBECONFIG={home}/kubeconfig" in said
    assert stat.S_IMODE(home.stat().st_mode) == stat.S_IMODE(sockets(home).stat().st_mode) == 0o700
    short = sockets(home)
    assert "Kubernetes 1.37, nodes l4-4, second" in run("status", home)
    assert run("status", home, "-o", "kubeconfig").strip() == str(home / "kubeconfig")
    assert [node["name"] for node in report(home)["nodes"]] == ["l4-4", "second"]
    assert "a lab is running already" in run("up", home, "--nodes", DESCRIPTION, status=1)
    assert len(processes(home)) == 3, "a refused second start leaves the first alone"
    assert "the lab is down" in run("down", home)
    assert not processes(home)
    assert not home.exists()
    assert not short.exists()


def test_where_no_lab_runs_that_is_said(home: Path) -> None:
    assert "no lab is running" in run("status", home, status=1)
    assert "no lab was running" in run("down", home)
    assert not home.exists()


@pytest.mark.parametrize("what", ["tree", "supervisor"])
def test_a_lab_that_was_killed_is_cleared_away(home: Path, eventually: Ask, what: str) -> None:
    run("up", home, "--nodes", DESCRIPTION)
    for again in ("up", "down"):
        pid, old = report(home)["pid"], sockets(home)
        (os.killpg if what == "tree" else os.kill)(pid, signal.SIGKILL)
        eventually(lambda: not lab.status(lab.Home(home)).running)
        assert "no lab is running" in run("status", home, status=1)
        if again == "up":
            run("up", home, "--nodes", DESCRIPTION)
            assert report(home)["pid"] != pid
            assert len(processes(home)) == 2
        else:
            run("down", home)
        assert not old.exists()
    assert not processes(home)
    assert not home.exists()


def test_a_plugin_that_was_killed_is_started_again(home: Path, eventually: Ask) -> None:
    run("up", home, "--nodes", DESCRIPTION)
    pid = report(home)["nodes"][0]["plugin"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: report(home)["nodes"][0]["plugin"] not in (pid, None))
    assert "plugin ended, starting it again node=l4-4 status=-9" in (home / "lab.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "no-such-node"], "no-such-node"),
        (["--nodes", "UPPER_case=l4-4"], "cannot name a node"),
        (["--nodes", DESCRIPTION, "--kubernetes", "1.99"], "choose one of 1.32"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(home: Path, arguments: list[str], message: str) -> None:
    assert message in run("up", home, *arguments, status=1)
    assert not home.exists()


def test_a_malformed_description_is_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("gpus: 3\n")
    assert "bad.yaml" in run("up", home, "--nodes", str(tmp_path / "bad.yaml"), status=1)
    assert not home.exists()


def test_a_plugin_that_cannot_run_ends_the_start_with_its_last_word(home: Path, tmp_path: Path) -> None:
    """The description is good when the lab reads it and gone when the plugin does."""
    source = tmp_path / "node.yaml"
    source.write_text(shipped(DESCRIPTION))
    nodes = lab.plan_nodes([str(source)])
    source.unlink()
    with pytest.raises(lab.LabError, match=r"the plugin of node .* does not run: gpupool-node: .*node\.yaml"):
        lab.up(lab.Home(home), nodes, "1.37", lambda _: None)
    assert not processes(home)
    assert not home.exists()


def shipped(name: str) -> str:
    import dradriver.described  # noqa: PLC0415 - only its place is of interest

    (found,) = Path(dradriver.described.__file__).parent.rglob(f"{name}.yaml")
    return found.read_text()


def test_a_directory_with_things_of_others_is_left_alone(home: Path) -> None:
    (home / "nodes").mkdir(parents=True)
    (home / "nodes" / "thesis.txt").write_text("years of work")
    assert "files that no lab made" in run("up", home, "--nodes", DESCRIPTION, status=1)
    assert "no lab was running" in run("down", home)
    assert (home / "nodes" / "thesis.txt").read_text() == "years of work"
    shutil.rmtree(home)


def test_a_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = run("up", tmp_path / "file" / "lab", status=1)
    assert said.startswith(f"error: cannot use {tmp_path}/file/lab: Not a directory; choose another --directory")


def test_of_two_starts_at_once_one_is_refused(home: Path) -> None:
    nodes = lab.plan_nodes([DESCRIPTION])
    first = lab.Home(home)
    home.mkdir()
    lock = first.lock()
    assert lock is not None
    try:
        with pytest.raises(lab.LabError, match="running already"):
            lab.up(lab.Home(home), nodes, "1.37", lambda _: None)
        with pytest.raises(lab.LabError, match="try again in a moment"):
            lab.down(lab.Home(home))
    finally:
        os.close(lock)


def test_a_lock_whose_file_was_removed_meanwhile_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    at = places.Home(tmp_path)
    lock = at.lock()
    assert lock is not None
    at.remove()
    tmp_path.mkdir(exist_ok=True)
    new = at.lock()
    assert new is not None
    assert at.is_locked()
    os.close(lock)
    assert at.is_locked()
    os.close(new)
    assert not at.is_locked()
