"""Versions are found by asking; where nothing answers, the message says what to switch on."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import api, cluster

GROUP = "/apis/resource.k8s.io"


def serve(server: Any, version: str, named: list[str], answers: dict[str, int]) -> None:
    """Discovery names `named`; a list in a version is answered with its status (404 where none is given)."""

    def script(asked: Any) -> None:
        if asked.path == "/version":
            asked.reply({"gitVersion": version}) if version else asked.refuse(403, "Forbidden")
        elif asked.path == GROUP:
            group = {"kind": "APIGroup", "versions": [{"version": name} for name in named]}
            asked.reply(group) if named else asked.refuse(404, "NotFound")
        else:
            status = answers.get(asked.path.split("/")[3], 404)
            asked.reply({"items": []}) if status == 200 else asked.refuse(status)

    server.script = script


@pytest.mark.parametrize(
    ("named", "answers", "found"),
    [
        (["v1beta2", "v1", "v1beta1"], {"v1": 200, "v1beta2": 200}, "v1"),
        (["v1beta1", "v1beta2"], {"v1beta1": 200, "v1beta2": 200}, "v1beta2"),
        (["v1beta1", "v1alpha3"], {"v1beta1": 200}, "v1beta1"),
        (["v1", "v1beta1"], {"v1beta1": 200}, "v1beta1"),
        (["v1"], {"v1": 403}, "v1"),
    ],
    ids=["newest", "not the preferred", "beta alone", "named but not answering", "forbidden is served"],
)
def test_the_newest_version_that_answers_is_taken(
    server: Any, connection: cluster.Connection, named: list[str], answers: dict[str, int], found: str
) -> None:
    serve(server, "v1.36.1", named, answers)
    served = cluster.discover(connection)
    assert served == cluster.Served(api.wire.ApiVersion(found), "v1.36.1", tuple(named))
    assert served.prefix == f"{GROUP}/{found}"
    lists = [asked for asked in server.asked if asked.path.endswith("/resourceslices")]
    assert all(asked.query == {"limit": "1"} for asked in lists)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1.31.4", ["v1.31.4", "1.32 or newer"]),
        ("v1.32.4", ["DynamicResourceAllocation=true", "--runtime-config=resource.k8s.io/v1beta1=true on"]),
        ("v1.33.0", ["resource.k8s.io/v1beta2=true,resource.k8s.io/v1beta1=true"]),
        ("v1.35.0", ["on by default", "resource.k8s.io/v1=false"]),
        ("", ["1.34 or newer"]),
    ],
)
def test_a_server_without_the_group_is_told_what_to_switch_on(
    server: Any, connection: cluster.Connection, version: str, words: list[str]
) -> None:
    serve(server, version, [], {})
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.discover(connection)
    assert all(word in str(caught.value) for word in [server.url, *words])


def test_a_named_group_in_which_nothing_answers_is_off(server: Any, connection: cluster.Connection) -> None:
    serve(server, "v1.34.0", ["v1alpha3"], {"v1alpha3": 200})
    with pytest.raises(cluster.ClusterError, match="does not serve"):
        cluster.discover(connection)


@pytest.mark.parametrize(
    ("version", "minor", "assumed"),
    [
        ("v1.32.4+k3s1", 32, "Kubernetes 1.32 with its default feature gates"),
        ("1.37", 37, "Kubernetes 1.37 with its default feature gates"),
        ("v1.40.0", 37, "the newest known here, in place of v1.40.0"),
        ("", 37, "version is unknown"),
    ],
)
def test_the_rules_are_those_of_the_nearest_version(version: str, minor: int, assumed: str) -> None:
    served = cluster.Served(api.wire.ApiVersion.V1, version)
    assert served.kubernetes().minor == minor
    assert served.kubernetes().enabled("DynamicResourceAllocation")
    assert assumed in " ".join(served.assumptions())


def test_a_server_that_is_too_old_has_no_rules() -> None:
    with pytest.raises(cluster.ClusterError, match=r"v1\.31\.0: gpupool needs 1\.32"):
        cluster.Served(api.wire.ApiVersion.V1BETA1, "v1.31.0").kubernetes()
