"""Where a connection comes from: kubeconfig files, flags, a pod's account; and what is said when they are wrong."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dradriver import cluster
from dradriver.cluster import kubeconfigs

Connect = Callable[..., cluster.Connection]
Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def nothing_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_of_several_files_the_first_that_says_something_wins(
    write_kubeconfig: Write, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write_kubeconfig("http://one:1", name="one"), write_kubeconfig("http://two:2", name="two")
    listed = os.pathsep.join(["/does/not/exist", str(first), str(second)])
    monkeypatch.setenv("KUBECONFIG", listed)
    assert connect().server == "http://one:1"


def test_an_explicit_file_must_exist(connect: Connect, tmp_path: Path) -> None:
    with pytest.raises(cluster.UnreachableError, match=r"absent does not exist: check --kubeconfig"):
        connect(kubeconfig=str(tmp_path / "absent"))


def test_without_any_kubeconfig_it_is_said_where_was_looked(connect: Connect) -> None:
    with pytest.raises(cluster.UnreachableError, match="no kubeconfig found: give --kubeconfig, or set KUBECONFIG"):
        connect()


def test_a_server_alone_is_enough(connect: Connect) -> None:
    assert connect(server="http://127.0.0.1:1").server == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ({"context": "prod"}, 'no context "prod": check --context (there are: here)'),
        ({"cluster": "prod"}, 'no cluster "prod": check --cluster (there are: lab)'),
        ({"user": "root"}, 'no user "root": check --user (there are: me)'),
        ({"server": "127.0.0.1:6443"}, "is '127.0.0.1:6443', expected https://HOST:PORT"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(
    write_kubeconfig: Write, connect: Connect, location: dict[str, str], message: str
) -> None:
    path = write_kubeconfig("https://127.0.0.1:1")
    with pytest.raises(cluster.UnreachableError) as caught:
        connect(kubeconfig=str(path), **location)
    assert message in str(caught.value)
    assert "kubeconfig" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "is not YAML: "),
        ("- 1", "its content is [1], expected a mapping"),
        ("clusters: 7", "clusters is 7, expected a list"),
        ("contexts: [{context: {}}]", "contexts[0] is {'context': {}}, expected a mapping with a name"),
        ("users: [{name: u, user: x}]", "users[0].user is 'x', expected a mapping"),
        ("", "no context is chosen"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_malformed_file_is_named_with_what_is_wrong(
    connect: Connect, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(cluster.UnreachableError) as caught:
        connect(kubeconfig=str(path))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_malformed_credentials_are_named_and_no_traceback(write_kubeconfig: Write, connect: Connect) -> None:
    path = write_kubeconfig("https://127.0.0.1:1", {"exec": "aws"})
    with pytest.raises(cluster.ClusterError, match="user 'me'"):
        connect(kubeconfig=str(path))


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("gpu\n")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    choice = kubeconfigs.in_pod(environment, tmp_path)
    assert choice is not None
    assert choice.cluster.content["server"] == "https://[fd00::1]:443"
    assert choice.namespace == "gpu"
    assert choice.user is not None
    assert choice.user.content == {"tokenFile": str(tmp_path / "token")}
    assert kubeconfigs.in_pod({}, tmp_path) is None


def test_a_trusted_server_gets_the_token_and_data_leaves_no_files(
    tls_server: Any,
    identity: Path,
    write_kubeconfig: Write,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = write_kubeconfig("").parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    pem = base64.b64encode(identity.read_bytes()).decode()
    user = {"token": "secret", "client-certificate-data": pem, "client-key-data": pem}
    path = write_kubeconfig(tls_server.url, user, **{"certificate-authority-data": pem})
    connect(kubeconfig=str(path)).get("/version")
    assert tls_server.asked[0].headers["Authorization"] == "Bearer secret"
    assert list(temporary.iterdir()) == []


def test_a_path_in_a_kubeconfig_is_relative_to_it(
    tls_server: Any, identity: Path, write_kubeconfig: Write, connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_bytes(identity.read_bytes())
    connect(kubeconfig=str(write_kubeconfig(tls_server.url, **{"certificate-authority": "ca.pem"}))).get("/version")
    assert len(tls_server.asked) == 1


def test_a_server_with_an_unknown_certificate_is_not_trusted_unless_told(
    tls_server: Any, identity: Path, write_kubeconfig: Write, connect: Connect
) -> None:
    path = str(write_kubeconfig(tls_server.url, {"token": "secret"}))
    with pytest.raises(cluster.UnreachableError, match="certificate-authority"):
        connect(kubeconfig=path).get("/version")
    assert tls_server.asked == []
    connect(kubeconfig=path, insecure_skip_tls_verify=True).get("/version")
    connect(kubeconfig=path, certificate_authority=str(identity), token="mine").get("/version")  # noqa: S106 - a test's
    assert [asked.headers["Authorization"] for asked in tls_server.asked] == ["Bearer secret", "Bearer mine"]


def test_no_credentials_go_over_plain_http(server: Any, write_kubeconfig: Write, connect: Connect) -> None:
    connect(kubeconfig=str(write_kubeconfig(server.url, {"token": "secret"}))).get("/version")
    assert server.asked[0].headers["Authorization"] is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"certificate-authority": "absent.pem"}, "absent.pem cannot be read: No such file"),
        ({"certificate-authority-data": "%%"}, "certificate-authority-data is not base64"),
        ({"certificate-authority-data": "eHh4"}, "holds no certificates in PEM"),
    ],
)
def test_a_broken_authority_is_named(
    write_kubeconfig: Write, connect: Connect, entry: dict[str, str], message: str
) -> None:
    with pytest.raises(cluster.UnreachableError, match=message):
        connect(kubeconfig=str(write_kubeconfig("https://127.0.0.1:1", **entry)))


def _plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    program = tmp_path / "login"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    # The command is relative: it means the kubeconfig's folder.
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "installHint": "get it"}}


def test_an_exec_plugin_gives_the_token_and_is_asked_again_when_it_is_refused(
    tls_server: Any, identity: Path, write_kubeconfig: Write, connect: Connect, tmp_path: Path
) -> None:
    answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t%s"}}'
    plugin = _plugin(tmp_path, f"echo x >> {tmp_path}/runs; printf '{answer}' \"$(wc -l < {tmp_path}/runs)\"")

    def second_only(asked: Any) -> None:
        asked.reply({}) if asked.headers["Authorization"] == "Bearer t2" else asked.refuse(401, "Unauthorized")

    tls_server.script = second_only
    path = write_kubeconfig(tls_server.url, plugin, **{"certificate-authority": str(identity)})
    connection = connect(kubeconfig=str(path))
    connection.get("/version")
    connection.get("/version")
    assert [asked.headers["Authorization"] for asked in tls_server.asked] == ["Bearer t1", "Bearer t2", "Bearer t2"]


def test_a_failed_exec_plugin_is_told_in_the_error_and_nowhere_else(
    write_kubeconfig: Write, connect: Connect, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_kubeconfig("https://127.0.0.1:1", _plugin(tmp_path, "echo session expired >&2; exit 3"))
    with pytest.raises(cluster.UnauthorizedError) as caught:
        connect(kubeconfig=str(path))
    assert "user 'me': the command" in str(caught.value)
    assert "session expired" in str(caught.value)
    assert "(get it)" in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_token_file_is_read_again_when_its_token_is_refused(
    tls_server: Any, identity: Path, write_kubeconfig: Write, connect: Connect, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    path = write_kubeconfig(tls_server.url, {"tokenFile": "token"}, **{"certificate-authority": str(identity)})
    connection = connect(kubeconfig=str(path))
    token.write_text("new\n")

    def new_only(asked: Any) -> None:
        asked.reply({}) if asked.headers["Authorization"] == "Bearer new" else asked.refuse(401, "Unauthorized")

    tls_server.script = new_only
    connection.get("/version")
    token.write_text("newer\n")
    tls_server.script = lambda asked: asked.refuse(401, "Unauthorized")
    with pytest.raises(cluster.UnauthorizedError):
        connection.get("/version")
    assert len(tls_server.asked) == 4
