"""What people read, compared with files. UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
TROUBLES = Path(__file__).parent / "troubles.yaml"

VIEWS = {
    "inspect": "inspect",
    "inspect-wide": "inspect -o wide",
    "inspect-name": "inspect h100-nvl-4 l4-4 -o name",
    "inspect-tree": "inspect --tree",
    "explain-allocated": "explain pod story/train",
    "explain-two-requests": "explain pod story/serve",
    "explain-pending": "explain claim story/six-hopper-80gb",
    "explain-impossible": "explain claim story/eight-h100-nvl",
    "explain-80gi": "explain claim -n story hopper-80gi",
    "explain-manifest": f"explain -f {TROUBLES}",
}


@pytest.mark.parametrize("signs", ["utf8", "ascii"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_as_it_was(run: Any, story: str, view: str, signs: str) -> None:
    answer = run(VIEWS[view], f"--from {story}", "--ascii" if signs == "ascii" else "")
    assert (answer.status, answer.err) == (0, "")
    golden = GOLDEN / f"{view}.{signs}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(answer.out, encoding="utf-8")
    assert answer.out == golden.read_text(encoding="utf-8")
    assert signs == "utf8" or answer.out.isascii()


@pytest.mark.parametrize("view", sorted(VIEWS.keys() - {"inspect-wide"}))
def test_what_we_write_ourselves_needs_no_more_than_100_columns(run: Any, story: str, view: str) -> None:
    answer = run(VIEWS[view], f"--from {story}")
    # Expressions are as their writers wrote them, and messages of the scheduler are its own.
    ours = [line for line in answer.out.splitlines() if "device." not in line and "scheduler says" not in line]
    assert [line for line in ours if len(line) > 100] == []
