"""Building happens once, whole or not at all, and says what is missing. Go is a shell script here."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dradriver.lab.realcluster import building
from dradriver.lab.realcluster.errors import BuildError, MissingError

GO = """\
#!/bin/sh
if [ "$1" = env ]; then echo "$VERSION"; exit; fi
echo "$@" >> "$CALLS"
if [ -n "$FAILS" ]; then echo "main.go:1: $FAILS" >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
echo built > "$2"
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> building.Recipe:
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("go.mod", "main.go"):
        (sources / name).write_text("go 1.26.0\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "go").write_text(GO)
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("VERSION", "go1.26.8")
    program = building.Program("kube", ".", ("-ldflags", "-s"))
    return building.Recipe("example", sources, ("go.mod", "main.go"), (program,), ("etcd", "kubelet"))


def calls(recipe: building.Recipe) -> int:
    record = recipe.sources.parent / "calls"
    return len(record.read_text().splitlines()) if record.exists() else 0


def test_a_second_build_does_nothing(recipe: building.Recipe) -> None:
    first = building.build(recipe, lambda _: None)
    assert (first / "etcd").read_text() == (first / "kubelet").read_text() == "built\n"
    assert building.build(recipe, pytest.fail) == first
    assert calls(recipe) == 1


@pytest.mark.parametrize("change", ["source", "module", "go", "flags"])
def test_whatever_a_build_is_made_of_makes_it_another(
    recipe: building.Recipe, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = building.build(recipe, lambda _: None)
    if change == "go":
        monkeypatch.setenv("VERSION", "go1.27.0")
    elif change == "flags":
        recipe = building.Recipe("example", recipe.sources, recipe.inputs, (building.Program("kube", "."),))
    else:
        (recipe.sources / {"source": "main.go", "module": "go.mod"}[change]).write_text("go 1.26.1\n")
    assert building.build(recipe, lambda _: None) != first


def test_a_failed_build_leaves_nothing_and_says_what_go_said(
    recipe: building.Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "undefined: x")
    with pytest.raises(BuildError, match=r"main.go:1: undefined: x"):
        building.build(recipe, lambda _: None)
    assert [path.suffix for path in building.cache().iterdir()] == [".lock"]


def test_what_a_killed_build_left_is_removed(recipe: building.Recipe) -> None:
    built = building.build(recipe, lambda _: None)
    (left := built.with_name(f"{built.name}.part-x")).mkdir()
    built.rename(built.with_name("elsewhere"))
    building.build(recipe, lambda _: None)
    assert not left.exists()


def test_of_builds_at_the_same_time_one_builds(recipe: building.Recipe) -> None:
    built: list[Path] = []
    threads = [threading.Thread(target=lambda: built.append(building.build(recipe, lambda _: None))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(built) == 5
    assert len(set(built)) == calls(recipe) == 1


def test_without_go_the_version_needed_is_named(recipe: building.Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingError, match=r"Go 1\.26\.0 or newer is not installed: apt-get install golang-go"):
        building.build(recipe, lambda _: None)


def test_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dradriver.lab.realcluster", "--pods", "1.37"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    for named in ("golang-go", "gcc", "pkg-config", "busybox-static", "util-linux"):
        assert named in done.stderr
