"""Watches: order, resumption, bookmarks, selectors, and how they end."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from dradriver import cluster

CONFIGS = "/api/v1/namespaces/default/configmaps"


def watch(connection: cluster.Connection, version: str, seconds: float = 1, **selectors: str) -> list[tuple[str, str]]:
    """Types and names of the events of a short watch."""
    events = connection.watch(CONFIGS, resource_version=version, server_seconds=seconds, idle_seconds=5, **selectors)
    return [(kind, obj["metadata"].get("name", "")) for kind, obj in events if kind != "BOOKMARK"]


def make(connection: cluster.Connection, name: str, **labels: str) -> str:
    made = connection.create(CONFIGS, {"metadata": {"name": name, "labels": labels}})
    return str(made["metadata"]["resourceVersion"])


def test_a_watch_resumes_after_a_version(apiserver: Any) -> None:
    connection = apiserver.connect()
    make(connection, "before")
    version = make(connection, "known")
    make(connection, "new")
    connection.merge(f"{CONFIGS}/new", {"data": {"a": "b"}})
    connection.delete(f"{CONFIGS}/known")
    assert watch(connection, version) == [("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "known")]


def test_a_watch_without_a_version_begins_with_what_is_there(apiserver: Any) -> None:
    connection = apiserver.connect()
    make(connection, "here")
    assert watch(connection, "0") == [("ADDED", "here")]


def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(apiserver: Any) -> None:
    connection = apiserver.connect()
    version = make(connection, "config", team="a")
    connection.merge(f"{CONFIGS}/config", {"metadata": {"labels": {"team": "b"}}})
    connection.merge(f"{CONFIGS}/config", {"metadata": {"labels": {"team": "a"}}})
    events = watch(connection, version, label_selector="team=a")
    assert events == [("DELETED", "config"), ("ADDED", "config")]


def test_bookmarks_carry_the_version_reached(apiserver: Any) -> None:
    connection = apiserver.connect()
    version = make(connection, "config")
    other = connection.create("/api/v1/nodes", {"metadata": {"name": "node-a"}})["metadata"]["resourceVersion"]
    events = connection.watch(CONFIGS, resource_version=version, server_seconds=1, idle_seconds=5)
    marks = [obj["metadata"]["resourceVersion"] for kind, obj in events if kind == "BOOKMARK"]
    assert marks
    assert set(marks) == {other}


def test_a_compacted_version_is_gone(apiserver: Any) -> None:
    connection = apiserver.connect()
    version = make(connection, "config")
    connection.delete(f"{CONFIGS}/config")
    apiserver.api_server.compact()
    with pytest.raises(cluster.GoneError, match="too old resource version"):
        watch(connection, version)


def test_a_reflector_follows_through_compaction(apiserver: Any) -> None:
    connection = apiserver.connect()
    make(connection, "first")
    reflector = cluster.Reflector(apiserver.connect(), CONFIGS)
    reflector.start()
    try:
        assert reflector.wait_synced(5)
        apiserver.api_server.compact()
        make(connection, "second")
        deadline = time.monotonic() + 5
        while len(reflector.items()) != 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert sorted(item["metadata"]["name"] for item in reflector.items()) == ["first", "second"]
    finally:
        reflector.stop()


def test_stop_ends_open_watches_at_once(apiserver: Any) -> None:
    connection = apiserver.connect()
    version = make(connection, "config")
    seen = threading.Event()

    def follow() -> None:
        try:
            for _ in connection.watch(CONFIGS, resource_version=version, server_seconds=60, idle_seconds=60):
                seen.set()
        except cluster.ClusterError:
            pass

    thread = threading.Thread(target=follow)
    thread.start()
    make(connection, "another")
    assert seen.wait(5)
    started = time.monotonic()
    apiserver.api_server.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert time.monotonic() - started < 2
    assert not [t for t in threading.enumerate() if "process_request" in t.name or t.name.startswith("apiserver")]


def test_sixty_watches_all_see_a_change(apiserver: Any) -> None:
    connection = apiserver.connect()
    version = make(connection, "config")
    seen: list[str] = []
    opened = threading.Barrier(61)

    def follow() -> None:
        watching = connection.watch(CONFIGS, resource_version=version, server_seconds=10, idle_seconds=10)
        opened.wait(10)
        seen.append(next(obj["metadata"]["name"] for kind, obj in watching if kind == "ADDED"))
        watching.close()

    threads = [threading.Thread(target=follow) for _ in range(60)]
    for thread in threads:
        thread.start()
    opened.wait(10)
    make(connection, "another")
    for thread in threads:
        thread.join(10)
    assert seen == ["another"] * 60


def test_a_version_of_an_earlier_server_is_gone(apiserver: Any) -> None:
    with pytest.raises(cluster.GoneError, match="too old resource version"):
        watch(apiserver.connect(), "1000000")
