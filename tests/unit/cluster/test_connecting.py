"""What a connection sends, what it makes of answers, and that it never waits without end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dradriver import cluster

CLAIM = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/four"


def test_requests_carry_method_query_and_body(server: Any, connection: cluster.Connection) -> None:
    connection.get(CLAIM, {"limit": "1"})
    connection.create("/api/v1/pods", {"kind": "Pod"})
    connection.replace(CLAIM, {"kind": "ResourceClaim"})
    connection.merge(CLAIM, {"metadata": {"labels": None}})
    connection.delete(CLAIM)
    connection.delete(CLAIM, uid="u1", resource_version="7", grace_seconds=0)
    sent = [(asked.method, asked.path, asked.query, asked.body) for asked in server.asked]
    assert sent[:5] == [
        ("GET", CLAIM, {"limit": "1"}, None),
        ("POST", "/api/v1/pods", {}, {"kind": "Pod"}),
        ("PUT", CLAIM, {}, {"kind": "ResourceClaim"}),
        ("PATCH", CLAIM, {}, {"metadata": {"labels": None}}),
        ("DELETE", CLAIM, {}, {"apiVersion": "v1", "kind": "DeleteOptions"}),
    ]
    assert sent[5][3]["preconditions"] == {"uid": "u1", "resourceVersion": "7"}
    assert sent[5][3]["gracePeriodSeconds"] == 0
    assert server.asked[3].headers["Content-Type"] == "application/merge-patch+json"


def test_the_room_is_entered_without_importing_kubernetes() -> None:
    code = "import sys, dradriver.cluster; sys.exit(bool({'kubernetes', 'urllib3', 'ssl'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0


def test_the_namespace_is_that_of_the_context(connection: cluster.Connection) -> None:
    assert connection.namespace == "team"


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (400, "BadRequest", cluster.InvalidError),
        (401, "Unauthorized", cluster.UnauthorizedError),
        (403, "Forbidden", cluster.ForbiddenError),
        (404, "NotFound", cluster.NotFoundError),
        (409, "AlreadyExists", cluster.AlreadyExistsError),
        (409, "Conflict", cluster.ConflictError),
        (410, "Expired", cluster.GoneError),
        (422, "Invalid", cluster.InvalidError),
        (500, "InternalError", cluster.ClusterError),
        (302, "", cluster.ClusterError),
    ],
)
def test_a_refusal_is_an_error_that_names_server_object_and_remedy(
    server: Any, connection: cluster.Connection, status: int, reason: str, error: type[cluster.ClusterError]
) -> None:
    server.script = lambda asked: asked.refuse(status, reason, 'resourceclaims "four": refused')
    with pytest.raises(cluster.ClusterError) as caught:
        connection.create(CLAIM, {})
    assert type(caught.value) is error
    assert caught.value.status == status
    assert 'resourceclaims "four": refused (POST ' in str(caught.value)
    assert f"on {server.url.removeprefix('http://')} answered {status}): " in str(caught.value)
    assert len(server.asked) == 1


def test_the_wait_a_server_asks_for_is_kept(server: Any, connection: cluster.Connection) -> None:
    server.script = lambda asked: asked.refuse(429, "TooManyRequests", Retry_After="7")
    with pytest.raises(cluster.ClusterError) as caught:
        connection.get(CLAIM)
    assert caught.value.retry_after == 7.0


def test_the_page_of_a_proxy_is_quoted(server: Any, connection: cluster.Connection) -> None:
    server.script = lambda asked: asked.reply(b"<html>\n  Bad   Gateway</html>", 502)
    with pytest.raises(cluster.ClusterError, match="<html> Bad Gateway</html>"):
        connection.get(CLAIM)


def test_an_answer_that_is_no_json_object_is_an_error(server: Any, connection: cluster.Connection) -> None:
    server.script = lambda asked: asked.reply(b"[1]")
    with pytest.raises(cluster.ClusterError, match="expected a JSON object"):
        connection.get(CLAIM)


def test_a_server_that_is_not_there_is_named_with_what_to_check(server: Any, connection: cluster.Connection) -> None:
    server.close()
    with pytest.raises(cluster.UnreachableError) as caught:
        connection.get(CLAIM)
    message = str(caught.value)
    assert message.startswith(f"cannot reach {server.url}: ")
    assert "refused" in message
    assert message.endswith("is the cluster running? check --kubeconfig, --context and --server")


def test_a_host_name_that_does_not_exist_is_named(connect: Callable[..., cluster.Connection]) -> None:
    with pytest.raises(cluster.UnreachableError, match="host name is not known"):
        connect(server="https://nowhere.invalid:6443").get(CLAIM)


def test_a_silent_server_is_given_up(
    server: Any, write_kubeconfig: Callable[..., Path], connect: Callable[..., cluster.Connection]
) -> None:
    server.script = lambda _: server.over.wait(20)
    connection = connect(kubeconfig=str(write_kubeconfig(server.url)), request_timeout=0.2)
    started = time.monotonic()
    with pytest.raises(cluster.UnreachableError, match=r"no answer within 0\.2 s"):
        connection.get(CLAIM)
    assert time.monotonic() - started < 2
    assert len(server.asked) == 1


def test_a_server_that_drips_is_given_up(
    server: Any, write_kubeconfig: Callable[..., Path], connect: Callable[..., cluster.Connection]
) -> None:
    def drip(asked: Any) -> None:
        asked.begin()
        while not server.over.wait(0.05):
            asked.raw(b"1\r\n \r\n")

    server.script = drip
    connection = connect(kubeconfig=str(write_kubeconfig(server.url)), request_timeout=0.3)
    started = time.monotonic()
    with pytest.raises(cluster.UnreachableError, match=r"within 0\.3 s"):
        connection.get(CLAIM)
    assert time.monotonic() - started < 2


def test_a_get_whose_connection_breaks_is_repeated_once_and_a_post_is_not(
    server: Any, connection: cluster.Connection
) -> None:
    def break_first(asked: Any) -> None:
        asked.hang_up() if asked.number % 2 == 0 else asked.reply({"n": asked.number})

    server.script = break_first
    assert connection.get(CLAIM) == {"n": 1}
    with pytest.raises(cluster.UnreachableError, match="broke off"):
        connection.create("/api/v1/pods", {})
    assert [asked.method for asked in server.asked] == ["GET", "GET", "POST"]


def test_a_list_is_read_in_pages_and_items_know_their_kind(server: Any, connection: cluster.Connection) -> None:
    def pages(asked: Any) -> None:
        second = asked.query.get("continue") == "more"
        metadata = {"resourceVersion": "9"} if second else {"resourceVersion": "9", "continue": "more"}
        items = [{"metadata": {"name": "b" if second else "a"}}]
        asked.reply({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})

    server.script = pages
    items, version = connection.list("/api/v1/pods", field_selector="spec.nodeName=n", label_selector="a=b")
    assert [(item["kind"], item["apiVersion"], item["metadata"]["name"]) for item in items] == [
        ("Pod", "v1", "a"),
        ("Pod", "v1", "b"),
    ]
    assert version == "9"
    selectors = {"fieldSelector": "spec.nodeName=n", "labelSelector": "a=b", "limit": "500"}
    assert [asked.query for asked in server.asked] == [selectors, {**selectors, "continue": "more"}]


def test_a_list_without_items_is_empty(server: Any, connection: cluster.Connection) -> None:
    server.script = lambda asked: asked.reply({"kind": "PodList", "metadata": {"resourceVersion": "3"}, "items": None})
    assert connection.list("/api/v1/pods") == ([], "3")


def test_a_list_of_what_are_no_objects_is_an_error(server: Any, connection: cluster.Connection) -> None:
    server.script = lambda asked: asked.reply({"kind": "PodList", "items": [7]})
    with pytest.raises(cluster.ClusterError, match="item '7' is no object"):
        connection.list("/api/v1/pods")


def test_a_list_whose_pages_expire_is_begun_again_and_at_last_read_whole(
    server: Any, connection: cluster.Connection
) -> None:
    def expire(asked: Any) -> None:
        if "continue" in asked.query:
            asked.refuse(410, "Expired")
            return
        metadata = {"continue": "old"} if "limit" in asked.query else {"resourceVersion": "5"}
        asked.reply({"kind": "PodList", "metadata": metadata, "items": [{"metadata": {"name": "a"}}]})

    server.script = expire
    items, version = connection.list("/api/v1/pods")
    assert (len(items), version) == (1, "5")
    assert [sorted(asked.query) for asked in server.asked] == [
        ["limit"],
        ["continue", "limit"],
        ["limit"],
        ["continue", "limit"],
        [],
    ]


def test_a_watch_that_is_refused_raises_at_once(server: Any, connection: cluster.Connection) -> None:
    server.script = lambda asked: asked.refuse(403, "Forbidden")
    with pytest.raises(cluster.ForbiddenError):
        connection.watch("/api/v1/pods", resource_version="1", server_seconds=9.6, idle_seconds=1)
    assert server.asked[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "1",
        "timeoutSeconds": "10",
    }


def test_an_event_split_over_chunks_is_one_and_a_torn_last_one_is_none(
    server: Any, connection: cluster.Connection
) -> None:
    def split(asked: Any) -> None:
        asked.begin()
        for part in (b'{"type":"ADDED",', b'"object":{"a":1}}\n\n{"type":"MOD'):
            asked.raw(b"%x\r\n%s\r\n" % (len(part), part))
        asked.end()

    server.script = split
    watch = connection.watch("/api/v1/pods", resource_version="1", server_seconds=9, idle_seconds=2)
    assert list(watch) == [("ADDED", {"a": 1})]


def test_impersonation_goes_with_every_request(
    server: Any, write_kubeconfig: Callable[..., Path], connect: Callable[..., cluster.Connection]
) -> None:
    path = str(write_kubeconfig(server.url))
    connect(kubeconfig=path, impersonate_user="eve", impersonate_groups=("a", "b")).get(CLAIM)
    assert server.asked[0].headers["Impersonate-User"] == "eve"
    assert server.asked[0].headers.get_all("Impersonate-Group") == ["a", "b"]
    with pytest.raises(cluster.InvalidError, match="needs --as"):
        connect(kubeconfig=path, impersonate_groups=("a",))
