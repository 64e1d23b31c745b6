"""`kubectl gpupool version`: ours, Python's, kubectl's and the server's, and what on PATH would get in the way."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dradriver import cluster
from kubectl_gpupool import outputs, sources
from kubectl_gpupool.options import Flags


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `version`."""
    parser.add_argument("--client", action="store_true", help="ask no server")
    parser.add_argument("-o", "--output", choices=("json", "yaml"), help="form of the output")
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace, flags: Flags) -> int:
    """Print the versions."""
    document: dict[str, Any] = {
        "apiVersion": outputs.API_VERSION,
        "kind": "VersionInfo",
        "gpupool": importlib.metadata.version("gpupool"),
        "python": platform.python_version(),
        "kubectl": os.environ.get("KUBECTL_PATH"),
        "server": None,
        "resourceVersions": [],
    }
    if not parsed.client:
        try:
            served = cluster.discover(cluster.connect(sources.location(flags)))
            document |= {
                "server": served.server_version,
                "resourceVersions": [str(v) for v in served.resource_versions],
            }
        except cluster.ClusterError as error:
            print(f"note: no server version: {error}", file=sys.stderr)
    if parsed.output:
        print(outputs.dump(document, parsed.output))
    else:
        _print(document)
    for path in hijackers(os.environ.get("PATH", "")):
        print(f"warning: {path} answers in place of a command of kubectl gpupool; take it off PATH", file=sys.stderr)
    return 0


def _print(document: Mapping[str, Any]) -> None:
    print(f"gpupool   {document['gpupool']} (Python {document['python']})")
    if document["kubectl"]:
        print(f"kubectl   {document['kubectl']}")
    if document["server"]:
        print(f"server    {document['server']}, resource.k8s.io {', '.join(document['resourceVersions'])}")


def hijackers(path: str) -> list[Path]:
    """Executables on PATH that kubectl would run for `kubectl gpupool X` in place of ours (longest name wins)."""
    folders = [Path(folder) for folder in dict.fromkeys(path.split(os.pathsep)) if folder]
    found = (file for folder in folders if folder.is_dir() for file in sorted(folder.glob("kubectl-gpupool-*")))
    return [file for file in found if os.access(file, os.X_OK)]
