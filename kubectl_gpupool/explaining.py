"""`kubectl gpupool explain`: why a claim or pod got what it got, why not, and what would change that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from dradriver import cluster, explain
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

_MOST_NAMED = 8

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
        raise UsageError("say what to explain: claim NS/NAME, pod NS/NAME, or -f MANIFEST")
    if parsed.filename == parsed.source == "-":
        raise UsageError("-f and --from cannot both read standard input")
    snapshot, namespace = sources.take(parsed, flags)
    try:
        if parsed.filename is not None:
            situation, explained = _explain_file(parsed.filename, flags.namespace or namespace, snapshot)
        else:
            situation = _situation(snapshot)
            explained = _explain_objects(parsed.kind, parsed.name, flags, namespace, situation)
    except explain.SurroundingsError as error:
        raise CommandError(str(error)) from error
    _print(explained, parsed.output, Signs.of(flags), situation)
    return max(map(_status, explained), default=0) if parsed.exit_status else 0


def _situation(snapshot: cluster.Snapshot) -> explain.Situation:
    return explain.Situation(
        cluster=sources.index(snapshot),
        claims=snapshot.claims,
        templates=snapshot.templates,
        pods=tuple(map(explain.read_pod, snapshot.pods)),
        nodes=tuple(map(explain.read_node, snapshot.nodes)),
        refusals=tuple(filter(None, map(explain.read_refusal, snapshot.events))),
        missing=snapshot.missing,
        versions=snapshot.versions,
        resource_version=snapshot.resource_version,
        age_seconds=sources.age_seconds(snapshot),
        assumed=snapshot.assumed,
    )


def _explain_objects(
    kind: str, word: str, flags: Flags, namespace: str, situation: explain.Situation
) -> list[Explained]:
    """Explain the object named, or with -A the objects of that name in all namespaces."""
    anywhere = flags.all_namespaces and "/" not in word
    wanted = ("", word) if anywhere else object_name(word, flags, namespace)

    def named(where: str, name: str) -> bool:
        return name == wanted[1] and (anywhere or where == wanted[0])

    explained: list[Explained] = (
        [explain.explain_pod(situation, pod) for pod in situation.pods if named(pod.namespace, pod.name)]
        if kind == "pod"
        else [
            explain.explain_claim(situation, claim)
            for claim in situation.claims
            if named(claim.metadata.namespace, claim.metadata.name)
        ]
    )
    if not explained:
        raise CommandError(_not_found(kind, *wanted, situation))
    return explained


def _not_found(kind: str, namespace: str, name: str, situation: explain.Situation) -> str:
    plural, stored = ("pods", "Pod") if kind == "pod" else ("resourceclaims", "ResourceClaim")
    if stored in situation.missing:
        return f'cannot look for {plural} "{name}": {situation.missing[stored]}'
    there = (
        [(pod.namespace, pod.name) for pod in situation.pods]
        if kind == "pod"
        else [(claim.metadata.namespace, claim.metadata.name) for claim in situation.claims]
    )
    message = f'{plural} "{name}" not found' + (f" in namespace {namespace}" if namespace else "")
    elsewhere = sorted(where for where, other in there if other == name)
    if elsewhere:
        return f"{message}; it is in namespace {elsewhere[0]}: -n {elsewhere[0]}"
    here = sorted(other for where, other in there if namespace in ("", where))
    near = get_close_matches(name, here, n=3)
    if near:
        return f"{message}; did you mean {' or '.join(near)}?"
    some = ", ".join(here[:_MOST_NAMED]) + (", ..." if len(here) > _MOST_NAMED else "")
    return f"{message}; there are: {some}" if here else f"{message}; there are none"


def _explain_file(
    filename: str, namespace: str, snapshot: cluster.Snapshot
) -> tuple[explain.Situation, list[Explained]]:
    """Explain the pods of a manifest, and the claims and templates that none of them uses."""
    try:
        manifest = cluster.load_snapshot(Path(filename), snapshot.kubernetes, namespace=namespace)
    except cluster.SnapshotError as error:
        raise CommandError(str(error)) from error
    if not (manifest.pods or manifest.claims or manifest.templates):
        raise CommandError(f"{filename} holds no Pod, ResourceClaim or ResourceClaimTemplate to explain")
    classes = {value.metadata.name: value for value in (*snapshot.classes, *manifest.classes)}
    pods = tuple(map(explain.read_pod, manifest.pods))
    situation = explain.with_manifest(
        _situation(replace(snapshot, classes=tuple(classes.values()))),
        manifest.claims,
        manifest.templates,
        pods,
        manifest.versions,
    )
    return situation, list(_explain_manifest(situation, pods, manifest))


def _explain_manifest(
    situation: explain.Situation, pods: tuple[explain.Pod, ...], manifest: cluster.Snapshot
) -> Iterator[Explained]:
    used = {(pod.namespace, name) for pod in pods for entry in pod.claims for name in (entry.claim, entry.template)}
    for pod in pods:
        yield explain.explain_pod(situation, pod)
    for claim in manifest.claims:
        if (claim.metadata.namespace, claim.metadata.name) not in used:
            yield explain.explain_claim(situation, claim)
    for template in manifest.templates:
        if (template.metadata.namespace, template.metadata.name) not in used:
            yield explain.explain_template(situation, template)


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
