"""`kubectl gpupool explain`: why a claim or pod got what it got, why not, and what would change that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dradriver import api, cluster, explain
from kubectl_gpupool import explanations, outputs, sources
from kubectl_gpupool.errors import CommandError, UsageError
from kubectl_gpupool.options import Flags, object_name
from kubectl_gpupool.signs import Signs

STATUSES = {
    explain.Verdict.ALLOCATED: 0,
    explain.Verdict.FITS: 0,
    explain.Verdict.PENDING: 3,
    explain.Verdict.IMPOSSIBLE: 4,
    explain.Verdict.UNKNOWN: 5,
    explain.Verdict.BLOCKED: 6,
}
"""With --exit-status; of several claims the highest counts."""

Named = TypeVar("Named", api.ResourceClaim, api.ResourceClaimTemplate)
Explained = explain.ClaimExplanation | explain.PodExplanation


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    parser.add_argument("kind", nargs="?", choices=("claim", "pod"), help="what to explain")
    parser.add_argument("name", nargs="?", metavar="NS/NAME", help="which one; NAME alone is in the namespace of -n")
    parser.add_argument("-f", "--filename", metavar="FILE", help="explain what this manifest would get; - is stdin")
    parser.add_argument("-o", "--output", choices=("json", "yaml"), help="form of the output")
    parser.add_argument("--exit-status", action="store_true", help="3 pending, 4 impossible, 5 unknown, 6 blocked")
    sources.declare(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace, flags: Flags) -> int:
    """Explain, print, and give the exit status."""
    if (parsed.filename is None) == (parsed.kind is None) or (parsed.kind and not parsed.name):
        message = "say what to explain: claim NS/NAME, pod NS/NAME, or -f MANIFEST"
        raise UsageError(f"{message}\nSee 'kubectl gpupool explain -h'.")
    if parsed.filename == parsed.source == "-":
        raise UsageError("-f and --from cannot both read standard input")
    snapshot, namespace = sources.take(parsed, flags)
    situation = _situation(snapshot)
    if parsed.filename is not None:
        explained = _explain_file(parsed.filename, flags.namespace or namespace, situation, snapshot)
    else:
        explained = [_explain_object(parsed.kind, *object_name(parsed.name, flags, namespace), situation, snapshot)]
    _print(explained, parsed.output, Signs.of(flags), situation)
    return max(map(_status, explained), default=0) if parsed.exit_status else 0


def _situation(snapshot: cluster.Snapshot) -> explain.Situation:
    return explain.Situation(
        cluster=sources.index(snapshot),
        claims=snapshot.claims,
        templates=snapshot.templates,
        pods=snapshot.pods,
        nodes=snapshot.nodes,
        namespaces=snapshot.namespaces,
        quotas=snapshot.quotas,
        events=snapshot.events,
        missing=snapshot.missing,
        resource_version=snapshot.resource_version,
        age_seconds=sources.age_seconds(snapshot),
        assumed=snapshot.assumed,
    )


def _explain_object(
    kind: str, namespace: str, name: str, situation: explain.Situation, snapshot: cluster.Snapshot
) -> Explained:
    if kind == "pod":
        for pod in snapshot.pods:
            if (pod["metadata"].get("namespace"), pod["metadata"]["name"]) == (namespace, name):
                return explain.explain_pod(situation, pod)
        raise CommandError(_not_found("pods", namespace, name, snapshot))
    for claim in snapshot.claims:
        if (claim.metadata.namespace, claim.metadata.name) == (namespace, name):
            return explain.explain_claim(situation, claim)
    raise CommandError(_not_found("resourceclaims", namespace, name, snapshot))


def _not_found(kind: str, namespace: str, name: str, snapshot: cluster.Snapshot) -> str:
    if kind in snapshot.missing:
        return f'cannot look for {kind} "{namespace}/{name}": {snapshot.missing[kind]}'
    there = (
        [pod["metadata"]["name"] for pod in snapshot.pods if pod["metadata"].get("namespace") == namespace]
        if kind == "pods"
        else [claim.metadata.name for claim in snapshot.claims if claim.metadata.namespace == namespace]
    )
    known = ", ".join(sorted(there)[:8]) or "none"
    return f'{kind} "{namespace}/{name}" not found; namespace {namespace} has: {known}'


def _explain_file(
    filename: str, namespace: str, situation: explain.Situation, snapshot: cluster.Snapshot
) -> list[Explained]:
    """Explain the pods of a manifest, and the claims and templates that none of them uses."""
    try:
        manifest = cluster.load_snapshot(Path(filename), snapshot.kubernetes)
    except cluster.SnapshotError as error:
        raise CommandError(str(error)) from error
    pods = [_placed(pod, namespace) for pod in manifest.pods]
    claims = [_in_namespace(claim, namespace) for claim in manifest.claims]
    templates = [_in_namespace(template, namespace) for template in manifest.templates]
    if not (pods or claims or templates):
        raise CommandError(f"{filename} holds no Pod, ResourceClaim or ResourceClaimTemplate to explain")
    return list(_explain_manifest(pods, claims, templates, situation))


def _explain_manifest(
    pods: list[dict[str, Any]],
    claims: list[api.ResourceClaim],
    templates: list[api.ResourceClaimTemplate],
    situation: explain.Situation,
) -> Iterator[Explained]:
    used: set[tuple[str, str]] = set()
    for pod in pods:
        for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or entry.get("resourceClaimTemplateName") or ""
            used.add((pod["metadata"]["namespace"], name))
    with_file = explain.with_manifest(situation, claims, templates, pods)
    for pod in pods:
        yield explain.explain_pod(with_file, pod)
    for claim in claims:
        if (claim.metadata.namespace, claim.metadata.name) not in used:
            yield explain.explain_claim(with_file, claim)
    for template in templates:
        if (template.metadata.namespace, template.metadata.name) not in used:
            yield explain.explain_claim(with_file, api.ResourceClaim(template.metadata, template.spec))


def _in_namespace(value: Named, namespace: str) -> Named:
    return replace(value, metadata=replace(value.metadata, namespace=value.metadata.namespace or namespace))


def _placed(pod: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "namespace": pod["metadata"].get("namespace") or namespace}}


def _print(explained: list[Explained], form: str | None, signs: Signs, situation: explain.Situation) -> None:
    if form is None:
        for number, explanation in enumerate(explained):
            print(("\n" if number else "") + explanations.text(explanation, situation.cluster, signs))
        return
    documents = [explain.as_json(explanation) for explanation in explained]
    if len(documents) == 1:
        print(outputs.dump(documents[0], form))
    else:
        print(outputs.dump({"apiVersion": "v1", "kind": "List", "items": documents}, form))
    sys.stdout.flush()


def _status(explained: Explained) -> int:
    claims = explained.claims if isinstance(explained, explain.PodExplanation) else (explained,)
    return max((STATUSES[claim.verdict] for claim in claims), default=0)
