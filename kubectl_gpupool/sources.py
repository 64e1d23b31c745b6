"""Where a reading command's facts come from: a snapshot file (`--from`), or the cluster the flags name."""

from __future__ import annotations

import argparse
import contextlib
from datetime import UTC, datetime
from pathlib import Path

from dradriver import api, cluster
from dradriver.allocator import Cluster
from kubectl_gpupool.errors import CommandError, UsageError
from kubectl_gpupool.options import Flags

DEFAULT_KUBERNETES = "1.37"


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


def take(parsed: argparse.Namespace, flags: Flags) -> tuple[cluster.Snapshot, str]:
    """The snapshot a command works on and the namespace that is meant where none is said. Raises CommandError."""
    kubernetes = _kubernetes(parsed)
    try:
        if parsed.source is not None:
            return cluster.load_snapshot(Path(parsed.source), kubernetes), "default"
        connection = cluster.connect(location(flags))
        return cluster.take_snapshot(connection, kubernetes), connection.namespace
    except (cluster.ClusterError, cluster.SnapshotError) as error:
        raise CommandError(str(error)) from error


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
    nodes = [api.Node(node["metadata"]["name"], node["metadata"].get("labels") or {}) for node in snapshot.nodes] or [
        api.Node(name) for name in dict.fromkeys(s.node_name for s in snapshot.slices if s.node_name)
    ]
    return Cluster(
        slices=snapshot.slices,
        classes=snapshot.classes,
        claims=snapshot.claims,
        nodes=nodes,
        kubernetes=snapshot.kubernetes,
    )


def age_seconds(snapshot: cluster.Snapshot) -> float | None:
    """How old the facts are, None where the snapshot does not say when it was taken."""
    with contextlib.suppress(ValueError):
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(snapshot.taken_at)).total_seconds())
    return None


def _kubernetes(parsed: argparse.Namespace) -> api.Kubernetes | None:
    if parsed.kubernetes is None and parsed.feature_gates is None:
        return None
    try:
        return api.Kubernetes.release(parsed.kubernetes or DEFAULT_KUBERNETES, _gates(parsed.feature_gates or ""))
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
