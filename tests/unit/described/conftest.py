"""pynvml on described hardware: the real module, with our object in the place of its library."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from dradriver import described


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a description and gives its path; driver and CUDA need not be said."""

    def write(text: str, name: str = "node.yaml") -> Path:
        file = tmp_path / name
        head = "" if text.startswith("driver:") else "driver: 580.95.05\ncuda: 13.0\n"
        file.write_text(head + text, encoding="utf-8")
        return file

    return write


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[described.Description], Path]]:
    """Starts pynvml on a description; gives the state directory."""
    state = tmp_path / "state"

    def start(description: described.Description) -> Path:
        _detach()
        pynvml.nvmlLib = described.Library(description, state)
        pynvml.nvmlInit()
        return state

    yield start
    _detach()


@pytest.fixture
def node(write: Callable[..., Path], start: Callable[..., Path]) -> Callable[[str], Path]:
    """Starts pynvml on a description given as text; gives the state directory."""
    return lambda text: start(described.load(write(text)))


@pytest.fixture
def code() -> Callable[..., int]:
    """The code by which a call of pynvml fails."""

    def code(call: Callable[..., object], *arguments: object) -> int:
        with pytest.raises(pynvml.NVMLError) as failed:
            call(*arguments)
        return int(failed.value.value)

    return code


def _detach() -> None:
    if pynvml.nvmlLib is not None:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()
