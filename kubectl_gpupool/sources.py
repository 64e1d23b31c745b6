"""Where a reading command's facts come from: a snapshot file (`--from`), or the cluster the flags name."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dradriver import api, cluster, explain
from dradriver.allocator import Cluster
from kubectl_gpupool.errors import CommandError, UsageError
from kubectl_gpupool.options import Flags


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every command that reads and allocates."""
    group = parser.add_argument_group("where the facts come from")
    group.add_argument(
        "--from", dest="source", metavar="FILE", help="a snapshot (YAML or JSON List) in place of a cluster; - is stdin"
    )
    group.add_argument(
        "--kubernetes", metavar="1.NN", help="answer as this version would (default: what the server says)"
    )
    group.add_argument(
        "--feature-gates", metavar="A=true,B=false", help="answer with these gates (default: the version's own)"
    )


def take(
    parsed: argparse.Namespace, flags: Flags, kinds: Collection[str] | None = None
) -> tuple[cluster.Snapshot, str]:
    """The snapshot a command works on and the namespace that is meant where none is said.

    `kinds` are those a view needs; a file is read as a whole. Raises CommandError.
    """
    gates = _gates(parsed.feature_gates or "")
    kubernetes = _kubernetes(parsed.kubernetes, gates) if parsed.kubernetes else None
    try:
        if parsed.source is not None:
            snapshot, namespace = cluster.load_snapshot(Path(parsed.source), kubernetes), "default"
        else:
            connection = cluster.connect(location(flags))
            namespace = connection.namespace
            if kinds is None:
                snapshot = cluster.take_snapshot(connection, kubernetes)
            else:
                snapshot = cluster.take_snapshot(connection, kubernetes, kinds=kinds)
    except (cluster.ClusterError, cluster.SnapshotError) as error:
        raise CommandError(str(error)) from error
    if gates and kubernetes is None:
        rules = _kubernetes(str(snapshot.kubernetes), {**snapshot.kubernetes.gates, **gates})
        snapshot = replace(snapshot, kubernetes=rules)
    return snapshot, namespace


def location(flags: Flags) -> cluster.Location:
    """The API server the global flags name."""
    return cluster.Location(
        kubeconfig=flags.kubeconfig,
        context=flags.context,
        cluster=flags.cluster,
        user=flags.user,
        server=flags.server,
        token=flags.token,
        certificate_authority=flags.certificate_authority,
        insecure_skip_tls_verify=flags.insecure_skip_tls_verify,
        impersonate_user=flags.as_user,
        impersonate_groups=tuple(flags.as_group),
        request_timeout=flags.request_timeout,
    )


def index(snapshot: cluster.Snapshot) -> Cluster:
    """The allocator's index of a snapshot; without Node objects, the nodes are those the slices name."""
    try:
        nodes = [api.Node(explain.read_node(node).name, explain.read_labels(node)) for node in snapshot.nodes]
    except explain.SurroundingsError as error:
        raise CommandError(str(error)) from error
    nodes = nodes or [api.Node(name) for name in dict.fromkeys(s.node_name for s in snapshot.slices if s.node_name)]
    return Cluster(
        slices=snapshot.slices,
        classes=snapshot.classes,
        claims=snapshot.claims,
        taint_rules=snapshot.taint_rules,
        nodes=nodes,
        kubernetes=snapshot.kubernetes,
    )


def age_seconds(snapshot: cluster.Snapshot) -> float | None:
    """How old the facts are, None where the snapshot does not say when it was taken."""
    with contextlib.suppress(ValueError):
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(snapshot.taken_at)).total_seconds())
    return None


def _kubernetes(version: str, gates: Mapping[str, bool]) -> api.Kubernetes:
    try:
        return api.Kubernetes.release(version, gates)
    except api.ApiError as error:
        raise UsageError(str(error)) from error


def _gates(text: str) -> dict[str, bool]:
    gates: dict[str, bool] = {}
    for word in filter(None, text.split(",")):
        name, _, value = word.partition("=")
        if value not in ("true", "false"):
            raise UsageError(f"--feature-gates {word!r}: write NAME=true or NAME=false, joined with commas")
        gates[name.strip()] = value == "true"
    return gates
