"""Terminals, pipes and kubectl: real processes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from kubectl_gpupool.options import Flags
from kubectl_gpupool.signs import Signs
from kubectl_gpupool.tables import table

PROGRAMS = Path(sys.executable).parent
GPUPOOL = PROGRAMS / "kubectl-gpupool"
KUBECTL = PROGRAMS / "kubectl"


def _environment(**more: str) -> dict[str, str]:
    path = f"{PROGRAMS}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return {"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "TERM": "xterm", **more}


def _on_a_terminal(words: list[str], columns: int, **more: str) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([GPUPOOL, *words], stdout=theirs, stderr=theirs, env=_environment(**more))
    os.close(theirs)
    read = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal closed with its process
            break
        if not part:
            break
        read += part
    os.close(ours)
    assert process.wait(timeout=30) == 0, read
    return read.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("view", "columns"),
    [(["inspect"], 80), (["inspect"], 120), (["inspect", "--tree"], 80), (["inspect", "-o", "wide"], 120)],
)
def test_tables_fit_a_terminal(story: str, view: list[str], columns: int) -> None:
    lines = _on_a_terminal([*view, "--from", story], columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) == len(_piped([*view, "--from", story]).splitlines())


def test_nothing_is_cut_in_a_pipe(story: str) -> None:
    assert "…" not in _piped(["inspect", "-o", "wide", "--from", story], COLUMNS="20")


def test_colour_is_for_terminals_alone(story: str) -> None:
    words = ["explain", "claim", "story/six-hopper-80gb", "--from", story]
    assert "\x1b[33mpending:\x1b[0m" in _on_a_terminal(words, 120)
    assert "\x1b" not in _piped(words)
    assert "\x1b" in _piped([*words, "--color=always"])
    for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in _on_a_terminal(words, 120, **quiet)
    assert "\x1b" not in _on_a_terminal([*words, "--color", "never"], 120)


def test_a_locale_without_utf_8_gets_ascii(story: str) -> None:
    out = _piped(["inspect", "--tree", "--from", story], PYTHONIOENCODING="ascii")
    assert "|-- gpu-0" in out
    assert out.isascii()


def test_colours_leave_the_text_as_it_is(story: str) -> None:
    words = ["explain", "claim", "story/hopper-80gi", "--from", story]
    assert re.sub(r"\x1b\[\d*m", "", _piped([*words, "--color=always"])) == _piped(words)


def test_a_reader_that_leaves_early_is_no_failure(story: str) -> None:
    process = subprocess.Popen(
        [GPUPOOL, "inspect", "-o", "json", "--from", story],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    assert process.stdout
    assert process.stderr
    process.stdout.read(1)
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=30) in (0, 141)


@pytest.mark.skipif(not KUBECTL.exists(), reason="the kubectl wheel is not installed")
def test_kubectl_runs_it_and_passes_words_output_and_status(story: str) -> None:
    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [KUBECTL, "gpupool", *words], capture_output=True, text=True, env=_environment(), timeout=30, check=False
        )

    words = ["explain", "claim", "-n", "story", "six-hopper-80gb", "--from", story]
    assert kubectl(*words).stdout == _piped(words)
    assert kubectl(*words, "--exit-status").returncode == 3
    assert kubectl("inspect", "--bogus").returncode == 1
    completed = subprocess.run(
        [KUBECTL, "__complete", "gpupool", "ins"],
        capture_output=True,
        text=True,
        env=_environment(),
        timeout=30,
        check=True,
    )
    assert completed.stdout.startswith("inspect\t")


def test_the_widest_cells_lose_their_middle_first() -> None:
    row = ("short", "a-very-long-name-with-a-middle-that-can-go")
    assert table(("A", "B"), [row], Signs(width=32)).splitlines()[1] == "short   a-very-long..that-can-go"
    assert table(("A", "B"), [row], Signs()).splitlines()[1].endswith(row[1])


def test_signs_follow_the_flags() -> None:
    assert Signs.of(Flags(ascii=True)).branch == "|-- "
    assert Signs.of(Flags(color="always")).colour
    assert not Signs.of(Flags()).colour


def _piped(words: list[str], **more: str) -> str:
    done = subprocess.run(
        [GPUPOOL, *words], capture_output=True, text=True, env=_environment(**more), timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
