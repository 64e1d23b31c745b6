"""Flags and environment of `gpupool-node`, as values.

Each flag is also an environment variable `GPUPOOL_<NAME>`; `NODE_NAME`, `POD_UID` and `KUBECONFIG` are read as every
driver has them. A flag wins over the environment.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from dradriver import api
from dradriver.node.errors import SettingsError

SYSTEM = "system"
"""`--nvml system`: the machine's own NVML library."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; no port, no server."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Settings:
    """How this plugin runs."""

    node_name: str
    driver_name: str = "gpu.gpupool.dev"
    kubeconfig: str | None = None
    plugins_dir: Path = Path("/var/lib/kubelet/plugins")
    registrar_dir: Path = Path("/var/lib/kubelet/plugins_registry")
    cdi_dir: Path = Path("/var/run/cdi")
    state_dir: Path = Path("/var/lib/kubelet/plugins/gpu.gpupool.dev")
    driver_root: Path = Path("/")
    dev_root: Path = Path("/")
    nvml: str = SYSTEM
    metrics: Address | None = None
    health: Address | None = None
    pod_uid: str = ""
    verbosity: int = 0

    @property
    def plugin_dir(self) -> Path:
        """The driver's own directory, with its socket and lock."""
        return self.plugins_dir / self.driver_name


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; see {self.prog} --help")


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Read flags and environment. Raises SettingsError; `--help` prints and exits as everywhere."""
    known = _parser().parse_args(arguments)
    given = {**_from_environment(environment), **{k: v for k, v in vars(known).items() if v is not None}}
    driver = given.get("driver_name", Settings.__dataclass_fields__["driver_name"].default)
    node = given.get("node_name", "")
    if not api.names.is_dns_subdomain(node):
        raise SettingsError(
            f"--node-name {node!r} is no node's name; set it, or NODE_NAME, from the pod's spec.nodeName"
        )
    if not api.names.is_driver_name(driver) or driver != driver.lower():
        raise SettingsError(f"--driver-name {driver!r} is not a lower-case DNS name of at most 63 characters")
    pod_uid = given.get("pod_uid", "")
    if not re.fullmatch(r"[0-9A-Za-z-]*", pod_uid):
        raise SettingsError(f"--pod-uid {pod_uid!r} is no UID; set it, or POD_UID, from the pod's metadata.uid")
    paths = {
        name: Path(given[name]).absolute()
        for name in ("plugins_dir", "registrar_dir", "cdi_dir", "driver_root", "dev_root")
        if given.get(name)
    }
    plugins = paths.get("plugins_dir", Settings.__dataclass_fields__["plugins_dir"].default)
    return Settings(
        node_name=node,
        driver_name=driver,
        kubeconfig=given.get("kubeconfig") or None,
        state_dir=Path(given.get("state_dir") or plugins / driver).absolute(),
        nvml=given.get("nvml") or SYSTEM,
        metrics=_address("--metrics-port", given.get("metrics_port", "")),
        health=_address("--health-port", given.get("health_port", "")),
        pod_uid=pod_uid,
        verbosity=_verbosity(given.get("verbosity", 0)),
        **paths,
    )


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    everyones = {"node_name": "NODE_NAME", "pod_uid": "POD_UID", "kubeconfig": "KUBECONFIG"}
    own = {option: f"GPUPOOL_{option.upper()}" for option in OPTIONS}
    given = {option: environment[name] for option, name in everyones.items() if name in environment}
    given |= {option: environment[name] for option, name in own.items() if name in environment}
    if "GPUPOOL_V" in environment:
        given["verbosity"] = environment["GPUPOOL_V"]
    return given


OPTIONS: Mapping[str, str] = {
    "node_name": "the node this runs on (NODE_NAME)",
    "kubeconfig": "how to reach the API server; in a pod its own account is used (KUBECONFIG)",
    "driver_name": "the driver's name, domain of all its attributes (default gpu.gpupool.dev)",
    "plugins_dir": "the kubelet's directory of plugins (default /var/lib/kubelet/plugins)",
    "registrar_dir": "the kubelet's registration directory (default /var/lib/kubelet/plugins_registry)",
    "cdi_dir": "where container runtimes look for CDI files (default /var/run/cdi)",
    "state_dir": "where the journal and the device numbers are kept (default <plugins-dir>/<driver-name>)",
    "driver_root": "the root under which the NVIDIA driver's files are (default /)",
    "dev_root": "the directory that holds dev/ with the device nodes (default /)",
    "nvml": "system, or the name or file of a described node (default system)",
    "metrics_port": "[HOST:]PORT of /metrics; 0 for none (default 0)",
    "health_port": "[HOST:]PORT of /livez and /readyz; 0 for none (default 0)",
    "pod_uid": "this pod's UID, for updates during which two instances run (POD_UID)",
}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpupool-node",
        description="The kubelet plugin of gpupool: publishes this node's GPUs and prepares them for claims.",
        epilog="Each flag is also an environment variable: --state-dir is GPUPOOL_STATE_DIR.",
        allow_abbrev=False,
    )
    for option, text in OPTIONS.items():
        parser.add_argument(f"--{option.replace('_', '-')}", dest=option, metavar="VALUE", help=text)
    parser.add_argument("-v", dest="verbosity", action="count", help="log details (GPUPOOL_V)")
    return parser


def _address(flag: str, text: str) -> Address | None:
    host, _, port = text.rpartition(":")
    if text in ("", "0"):
        return None
    if not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004 - the highest port there is
        raise SettingsError(f"{flag} {text!r} is not [HOST:]PORT")
    return Address(host, int(port))


def _verbosity(value: str | int) -> int:
    try:
        return int(value)
    except ValueError:
        raise SettingsError(f"GPUPOOL_V {value!r} is no number; set 0 or 1") from None
