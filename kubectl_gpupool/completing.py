"""`kubectl_complete-gpupool`: kubectl runs it with the words typed so far, the last of which may be empty.

It prints a candidate a line (`candidate<TAB>description`), then `:4` (no file names), or `:0` where a file is wanted.
Nothing heavy is imported for static words; names of claims, pods and pools are read from the cluster within two seconds
and left away when it does not answer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from kubectl_gpupool.commands import COMMANDS

NO_FILES = ":4"
FILES = ":0"
CLUSTER_SECONDS = 2.0

_STORED = {"claim": "ResourceClaim", "pod": "Pod"}

FILE_FLAGS = frozenset({"-f", "--filename", "--from", "--kubeconfig", "--certificate-authority"})
GLOBAL_FLAGS = (
    "-n", "--namespace", "-A", "--all-namespaces", "--kubeconfig", "--context", "--cluster", "--user", "-s", "--server",
    "--token", "--certificate-authority", "--insecure-skip-tls-verify", "--as", "--as-group", "--request-timeout",
    "--color", "--ascii", "-h", "--help",
)  # fmt: skip
VALUE_FLAGS = FILE_FLAGS | {
    "-n", "--namespace", "--context", "--cluster", "--user", "-s", "--server", "--token", "--as", "--as-group",
    "--request-timeout", "--color", "-o", "--output", "--kubernetes", "--feature-gates", "--nodes", "--directory",
    "--control-plane", "--kubelet",
}  # fmt: skip
"""Flags that take the next word; a test holds these sets to the parsers."""


def main() -> None:
    """Answer one request of kubectl's completion."""
    try:
        print("\n".join(candidates(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(1)


def candidates(words: Sequence[str]) -> Iterator[str]:
    """Lines to print for the words typed so far."""
    *before, last = words or [""]
    if before and before[-1] in FILE_FLAGS:
        yield FILES
        return
    command, *arguments = _plain(before) or [""]
    if before and before[-1] in ("-o", "--output"):
        yield from _starting(last, COMMANDS[command].outputs if command in COMMANDS else ())
    elif before and before[-1] == "--color":
        yield from _starting(last, ("auto", "always", "never"))
    elif before and before[-1] in VALUE_FLAGS:
        yield from ()
    elif last.startswith("-"):
        own = COMMANDS[command].flags if command in COMMANDS else ()
        yield from _starting(last, (*own, *GLOBAL_FLAGS))
    elif command not in COMMANDS:
        yield from _starting(last, tuple(f"{name}\t{known.summary}" for name, known in COMMANDS.items()))
    elif command in ("explain", "inspect") and (arguments or command == "inspect"):
        yield from _starting(last, _names(before, arguments[0] if arguments else "pool"))
    elif not arguments:
        yield from _starting(last, COMMANDS[command].words)
    yield NO_FILES


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are neither flags nor their values."""
    plain: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith("-"):
            plain.append(word)
        skip = not skip and word in VALUE_FLAGS
    return plain


def _starting(prefix: str, words: Sequence[str]) -> Iterator[str]:
    return (word for word in words if word.startswith(prefix))


def _names(before: Sequence[str], kind: str) -> tuple[str, ...]:
    """Names of objects of a kind, from the file or the cluster the flags name; none when it does not answer in time."""
    # Only names need a cluster, so only they pay for importing one.
    from kubectl_gpupool import errors, options, sources  # noqa: PLC0415

    parser = options.Parser(add_help=False, parents=[options.global_flags()])
    sources.declare(parser)
    try:
        parsed, _ = parser.parse_known_args(list(before))
        flags = options.Flags.of(parsed)
        flags.request_timeout = CLUSTER_SECONDS
        snapshot, namespace = sources.take(parsed, flags, {_STORED.get(kind, "ResourceSlice")})
    except errors.CommandError:
        return ()
    namespace = flags.namespace or namespace
    if kind == "pod":
        metadata = [pod["metadata"] for pod in snapshot.pods]
        return tuple(str(m.get("name")) for m in metadata if m.get("namespace") == namespace)
    if kind == "claim":
        return tuple(c.metadata.name for c in snapshot.claims if c.metadata.namespace == namespace)
    return tuple(dict.fromkeys(s.pool.name for s in snapshot.slices))
