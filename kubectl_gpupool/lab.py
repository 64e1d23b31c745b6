"""`kubectl gpupool lab up|status|down`: a cluster of described GPUs on this machine."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kubectl_gpupool import outputs
from kubectl_gpupool.errors import CommandError
from kubectl_gpupool.options import Flags, Parser

DEFAULT_NODES = ("hgx-h100", "dgx-a100", "h100-nvl-4", "l4-4", "a100-mig", "gb200-tray")

NODES_HELP = (
    "descriptions of the nodes, joined with commas or repeated: shipped names or files, NAME=FILE to name a node "
    "(default: six different ones)"
)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands of `lab`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    up = actions.add_parser("up", help="start the lab and wait until it is ready")
    up.add_argument("--nodes", action="append", metavar="NAMES", help=NODES_HELP)
    up.add_argument("--kubernetes", default="1.37", metavar="1.NN", help="the version of Kubernetes (default: 1.37)")
    for part, what in (("control-plane", "the control plane"), ("kubelet", "kubelets, whose pods really run")):
        up.add_argument(
            f"--{part}",
            choices=("embedded", "real"),
            default="embedded",
            help=f"{what}: stand-ins, or built from Kubernetes' sources, which needs Go (default: embedded)",
        )
    status = actions.add_parser("status", help="say whether it runs, and where its kubeconfig is")
    status.add_argument("-o", "--output", choices=("json", "yaml", "kubeconfig"), help="form of the output")
    down = actions.add_parser("down", help="stop it and remove what it made")
    for action, run in ((up, _up), (status, _status), (down, _down)):
        action.add_argument(
            "--directory", type=Path, metavar="DIR", help="home of the lab (default: in your state directory)"
        )
        action.set_defaults(run=run)


def _up(parsed: argparse.Namespace, _: Flags) -> int:
    lab = _lab()
    words = [word for given in parsed.nodes or (",".join(DEFAULT_NODES),) for word in given.split(",") if word]
    started = time.monotonic()
    with _refusals(lab):
        kinds = lab.Kinds(lab.Kind(parsed.control_plane), lab.Kind(parsed.kubelet))
        nodes = lab.plan_nodes(words)
        result = lab.up(_home(parsed), nodes, parsed.kubernetes, lambda line: print(line, flush=True), kinds)
    print(f"ready after {time.monotonic() - started:.1f} s;  export KUBECONFIG={result.report['kubeconfig']}")
    return 0


def _status(parsed: argparse.Namespace, _: Flags) -> int:
    lab = _lab()
    with _refusals(lab):
        result = lab.status(_home(parsed))
    if parsed.output in ("json", "yaml"):
        print(outputs.dump({"running": result.running, **result.report}, parsed.output))
    elif not result.running:
        raise CommandError("no lab is running; start one:  kubectl gpupool lab up")
    elif parsed.output == "kubeconfig":
        print(result.report.get("kubeconfig", ""))
    else:
        nodes = ", ".join(node["name"] for node in result.report.get("nodes", ()))
        state = "running" if result.report.get("ready") else "starting"
        print(f"{state}: Kubernetes {result.report.get('kubernetes')}, nodes {nodes}")
        print(f"export KUBECONFIG={result.report.get('kubeconfig')}")
    return 0


def _down(parsed: argparse.Namespace, _: Flags) -> int:
    lab = _lab()
    with _refusals(lab):
        ran = lab.down(_home(parsed))
    print("the lab is down" if ran else "no lab was running", file=sys.stderr)
    return 0


@contextmanager
def _refusals(lab: ModuleType) -> Iterator[None]:
    try:
        yield
    except lab.LabError as error:
        raise CommandError(str(error)) from error


def _home(parsed: argparse.Namespace) -> Any:
    lab = _lab()
    return lab.Home((parsed.directory or lab.default_home()).absolute())


def _lab() -> ModuleType:
    try:
        return importlib.import_module("dradriver.lab")
    except ImportError as error:
        message = f"the lab needs more packages ({error.name} is missing): pip install 'gpupool[lab]'"
        raise CommandError(message) from error
