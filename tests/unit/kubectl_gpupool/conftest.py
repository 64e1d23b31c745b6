"""Command lines run in this process, and the files they read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubectl_gpupool import main

STORY = Path(__file__).parents[1] / "explain" / "story.yaml"


@dataclass(frozen=True)
class Answer:
    """What a command line did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Run a command line; words may be given in one string."""
    for name in ("KUBECONFIG", "NO_COLOR", "KUBECTL_PATH", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    def run(*words: str) -> Answer:
        capsys.readouterr()
        status = main.run([part for word in words for part in word.split()])
        captured = capsys.readouterr()
        return Answer(status, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def story() -> str:
    """The path of the story's snapshot."""
    return str(STORY)
