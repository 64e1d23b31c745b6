"""A reflector's copy becomes true again whatever the server does, and no server is asked without a pause."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dradriver import cluster
from dradriver.cluster.pacing import Backoff

PODS = "/api/v1/pods"
PACE = cluster.Pace(first_backoff=0.04, longest_backoff=0.16, between_watches=0.05, idle=(0.3, 0.3))
Start = Callable[..., cluster.Reflector]
Eventually = Callable[[Callable[[], object]], None]


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - spreads load, guards nothing


@pytest.fixture
def start(connection: cluster.Connection) -> Iterator[Start]:
    """Starts reflectors of pods; they are stopped at the end."""
    started: list[cluster.Reflector] = []

    def start(**options: Any) -> cluster.Reflector:
        reflector = cluster.Reflector(connection, PODS, **{"pace": PACE, "rng": seeded(1), **options})
        reflector.start()
        started.append(reflector)
        return reflector

    yield start
    for reflector in started:
        reflector.stop()


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"namespace": "team", "name": name, "uid": uid or name, "resourceVersion": str(version)}}


def listing(version: int, *pods: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}, "items": list(pods)}


def is_watch(asked: Any) -> bool:
    return "watch" in asked.query


def names(reflector: cluster.Reflector) -> list[str]:
    return sorted(item["metadata"]["name"] for item in reflector.items())


def described(changes: list[cluster.Change]) -> list[tuple[str, str]]:
    """Changes as pairs of `name@version`, empty for nothing."""

    def brief(item: dict[str, Any] | None) -> str:
        return f"{item['metadata']['name']}@{item['metadata']['resourceVersion']}" if item else ""

    return [(brief(change.old), brief(change.new)) for change in changes]


def gaps(asked: list[Any]) -> list[float]:
    return [after.at - before.at for before, after in pairwise(asked)]


def test_the_copy_is_the_list_and_what_the_watch_adds(server: Any, start: Start, eventually: Eventually) -> None:
    changes: list[cluster.Change] = []

    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(3, pod("a", 1), pod("b", 2)))
            return
        asked.begin()
        asked.send("ADDED", pod("c", 4))
        asked.send("MODIFIED", pod("a", 5))
        asked.send("DELETED", pod("b", 6))
        server.over.wait(20)

    server.script = script
    reflector = start(on_change=changes.append, field_selector="spec.nodeName=n")
    assert reflector.wait_synced(5)
    eventually(lambda: len(changes) == 5)
    assert described(changes) == [("", "a@1"), ("", "b@2"), ("", "c@4"), ("a@1", "a@5"), ("b@2", "")]
    assert names(reflector) == ["a", "c"]
    assert reflector.get("team", "a") == {**pod("a", 5)}
    assert reflector.get("team", "b") is None
    assert reflector.last_error is None
    watch = server.asked[1].query
    assert (watch["resourceVersion"], watch["allowWatchBookmarks"], watch["fieldSelector"]) == (
        "3",
        "true",
        "spec.nodeName=n",
    )
    assert 300 <= int(watch["timeoutSeconds"]) <= 600


def test_a_watch_that_ends_well_resumes_from_the_last_bookmark_at_a_measured_pace(
    server: Any, start: Start, eventually: Eventually
) -> None:
    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(1))
            return
        asked.begin()
        asked.send("BOOKMARK", {"metadata": {"resourceVersion": str(100 + asked.number)}})
        asked.end()

    server.script = script
    reflector = start()
    eventually(lambda: server.count(watch=True) >= 5)
    watches = server.asked[1:5]
    assert [asked.query["resourceVersion"] for asked in watches] == ["1", "101", "102", "103"]
    assert server.count(watch=False) == 1
    # Paced from start to start; the time a request takes to arrive may shorten one gap.
    assert watches[-1].at - watches[0].at >= PACE.between_watches * 2
    assert reflector.last_error is None


def test_a_connection_that_breaks_amid_an_event_resumes_with_growing_pauses(
    server: Any, start: Start, eventually: Eventually
) -> None:
    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(1))
            return
        asked.begin()
        asked.send("ADDED", pod("a", 7))
        asked.raw(b'ff\r\n{"type":"ADDED","obj')
        asked.hang_up()

    server.script = script
    reflector = start()
    eventually(lambda: server.count(watch=True) >= 4)
    watches = server.asked[1:5]
    assert [asked.query["resourceVersion"] for asked in watches] == ["1", "7", "7", "7"]
    assert server.count(watch=False) == 1
    assert names(reflector) == ["a"]
    assert all(gap >= floor for gap, floor in zip(gaps(watches), (0.02, 0.04, 0.08), strict=True))


def test_one_good_event_before_each_410_makes_no_hot_loop_and_the_copy_stays_true(
    server: Any, start: Start, eventually: Eventually
) -> None:
    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(10 + asked.number, pod("a", 1)))
            return
        asked.begin()
        asked.send("ADDED", pod(f"fleeting-{asked.number}", 50))
        asked.send("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
        asked.end()

    server.script = script
    reflector = start()
    eventually(lambda: server.count(watch=False) >= 5)
    lists = [asked for asked in server.asked if not is_watch(asked)][:5]
    assert all(gap >= floor for gap, floor in zip(gaps(lists), (0.02, 0.04, 0.08, 0.08), strict=True))
    eventually(lambda: names(reflector) == ["a"])
    eventually(lambda: isinstance(reflector.last_error, cluster.GoneError))


def test_a_new_list_after_410_tells_the_difference(server: Any, start: Start, eventually: Eventually) -> None:
    changes: list[cluster.Change] = []

    def script(asked: Any) -> None:
        if is_watch(asked) and asked.query["resourceVersion"] == "9":
            asked.refuse(410, "Expired")
        elif is_watch(asked):
            asked.begin()
            server.over.wait(20)
        elif asked.number == 0:
            asked.reply(listing(9, pod("same", 1), pod("changed", 2), pod("gone", 3), pod("anew", 4, "first")))
        else:
            asked.reply(listing(20, pod("same", 1), pod("changed", 12), pod("anew", 14, "second"), pod("new", 15)))

    server.script = script
    reflector = start(on_change=changes.append)
    eventually(lambda: reflector.resource_version == "20" and len(server.asked) == 4)
    assert sorted(described(changes)[4:]) == [
        ("", "anew@14"),
        ("", "new@15"),
        ("anew@4", ""),
        ("changed@2", "changed@12"),
        ("gone@3", ""),
    ]
    assert described(changes).index(("anew@4", "")) < described(changes).index(("", "anew@14"))
    assert [is_watch(asked) for asked in server.asked] == [False, True, False, True]


def test_a_server_in_trouble_is_asked_less_and_less_and_then_all_is_well(
    server: Any, start: Start, eventually: Eventually
) -> None:
    recovered = threading.Event()

    def script(asked: Any) -> None:
        if not recovered.is_set():
            asked.refuse(500, "InternalError", "etcd is away")
        elif is_watch(asked):
            asked.begin()
            server.over.wait(20)
        else:
            asked.reply(listing(1, pod("a", 1)))

    server.script = script
    reflector = start()
    eventually(lambda: len(server.asked) >= 5)
    assert not reflector.synced
    assert "etcd is away" in str(reflector.last_error)
    recovered.set()
    assert reflector.wait_synced(5)
    eventually(lambda: reflector.last_error is None)
    assert names(reflector) == ["a"]
    assert all(gap >= floor for gap, floor in zip(gaps(server.asked[:5]), (0.02, 0.04, 0.08, 0.08), strict=True))


def test_retry_after_is_waited_for(server: Any, start: Start) -> None:
    def script(asked: Any) -> None:
        if asked.number == 0:
            asked.refuse(429, "TooManyRequests", Retry_After="1")
        elif is_watch(asked):
            asked.begin()
            server.over.wait(20)
        else:
            asked.reply(listing(1))

    server.script = script
    assert start().wait_synced(5)
    assert gaps(server.asked[:2])[0] >= 1.0


def test_silence_on_a_watch_makes_a_new_one_without_a_new_list(
    server: Any, start: Start, eventually: Eventually
) -> None:
    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(4))
            return
        asked.begin()
        server.over.wait(20)

    server.script = script
    reflector = start()
    eventually(lambda: server.count(watch=True) == 2)
    assert server.count(watch=False) == 1
    assert server.asked[2].query["resourceVersion"] == "4"
    assert gaps(server.asked[1:3])[0] >= 0.29
    assert reflector.last_error is None


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_stop_ends_a_silent_watch_at_once(
    request: pytest.FixtureRequest, connect: Any, write_kubeconfig: Any, eventually: Eventually, *, secure: bool
) -> None:
    server: Any = request.getfixturevalue("tls_server" if secure else "server")

    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(4))
            return
        asked.begin()
        server.over.wait(20)

    server.script = script
    path = write_kubeconfig(server.url, **{"insecure-skip-tls-verify": True})
    reflector = cluster.Reflector(connect(kubeconfig=str(path)), PODS)
    reflector.start()
    eventually(lambda: server.count(watch=True) == 1 and reflector._watch)
    before = time.monotonic()
    reflector.stop()
    assert time.monotonic() - before < 1.0
    assert not reflector._thread.is_alive()
    reflector.stop()


def test_a_handler_that_fails_is_logged_and_the_copy_goes_on(
    server: Any, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(4, pod("a", 1), pod("b", 2)))
            return
        asked.begin()
        server.over.wait(20)

    def fail(change: cluster.Change) -> None:
        raise ValueError(change)

    server.script = script
    with caplog.at_level(logging.ERROR):
        reflector = start(on_change=fail)
        assert reflector.wait_synced(5)
    assert names(reflector) == ["a", "b"]
    assert [record.getMessage() for record in caplog.records] == [
        f"handler failed, path={PODS} object=team/{name}" for name in "ab"
    ]


@pytest.mark.parametrize(
    "line",
    [b"<html>\n", b'{"type":"ADDED","object":{"kind":"Pod"}}\n', b'{"type":"ADDED","object":7}\n', b"[" * 9999 + b"\n"],
    ids=["html", "nameless", "no object", "deep"],
)
def test_what_is_no_event_is_an_error_and_the_reflector_goes_on(
    server: Any, start: Start, eventually: Eventually, line: bytes
) -> None:
    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(4))
            return
        asked.begin()
        if server.count(watch=True) == 1:
            asked.raw(b"%x\r\n%s\r\n" % (len(line), line))
        else:
            asked.send("ADDED", pod("a", 5))
        server.over.wait(20)

    server.script = script
    reflector = start()
    eventually(lambda: names(reflector) == ["a"])
    assert server.count(watch=False) == 1


def test_an_event_told_twice_is_one_change(server: Any, start: Start, eventually: Eventually) -> None:
    changes: list[cluster.Change] = []

    def script(asked: Any) -> None:
        if not is_watch(asked):
            asked.reply(listing(4, pod("a", 3)))
            return
        asked.begin()
        for kind in ("MODIFIED", "DELETED", "DELETED"):
            asked.send(kind, pod("a", 3))
        asked.send("ADDED", pod("b", 5))
        server.over.wait(20)

    server.script = script
    reflector = start(on_change=changes.append)
    eventually(lambda: names(reflector) == ["b"])
    assert described(changes) == [("", "a@3"), ("a@3", ""), ("", "b@5")]


@given(st.lists(st.tuples(st.floats(0, 50), st.none() | st.floats(0.1, 1e6)), max_size=30), st.integers())
def test_a_wait_after_an_error_is_neither_too_short_nor_too_long(
    errors: list[tuple[float, float | None]], seed: int
) -> None:
    pace = cluster.Pace()
    backoff, now = Backoff(pace, seeded(seed)), 0.0
    for number, (lasted, retry_after) in enumerate(errors):
        wait = backoff.wait_after_error(now, retry_after)
        step = min(pace.longest_backoff, pace.first_backoff * 2**number)
        asked = min(retry_after or 0.0, pace.longest_retry_after)
        assert max(step / 2, asked) <= wait <= max(step, asked * 1.1)
        now += wait + lasted  # less than healthy_after, so no success in between resets the steps


def test_a_long_time_without_errors_makes_the_next_one_the_first() -> None:
    pace = cluster.Pace()
    backoff = Backoff(pace, seeded(0))
    for _ in range(10):
        backoff.wait_after_error(0.0)
    assert backoff.wait_after_error(1000.0) <= pace.first_backoff
