"""The configuration files of a real node: kubelet's, containerd's and that of a network that is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dradriver.lab.realcluster.images import IMAGE

NETWORK_NAMES = ("loopback", "gpupool")
"""Names of the network plugin; containerd insists on the first."""
_CNI_VERSION = "1.0.0"
_FIRST_MINOR_REFUSING_CGROUP_V1 = 35

NETWORK_PLUGIN = """\
#!/bin/sh
# A CNI plugin without networking: brings up the pod's loopback and makes up an address.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
case "$CNI_COMMAND" in
VERSION)
  echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0"]}' ;;
ADD)
  version=$(sed -n 's/.*"cniVersion" *: *"\\([^"]*\\)".*/\\1/p' | head -n 1)
  busybox nsenter --net="$CNI_NETNS" busybox ip link set lo up 2>/dev/null
  printf '{"cniVersion":"%s","ips":[{"address":"10.88.0.2/16","version":"4"}]}\\n' "${version:-1.0.0}" ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a node keeps its things. `base` is private; `short` too, with paths fit for sockets."""

    base: Path
    short: Path
    cdi: Path

    @property
    def kubelet(self) -> Path:
        """The kubelet's own directory, `/var/lib/kubelet` elsewhere."""
        return self.short / "k"

    @property
    def plugins(self) -> Path:
        """Where plugins have their sockets."""
        return self.kubelet / "plugins"

    @property
    def registry(self) -> Path:
        """Where plugins register."""
        return self.kubelet / "plugins_registry"

    @property
    def runtime_socket(self) -> Path:
        """The socket of containerd."""
        return self.short / "c.sock"

    @property
    def logs(self) -> Path:
        """What the node's processes say."""
        return self.base / "logs"

    def constant(self, directory: str) -> Path:
        """What is at a directory of that constant name for the node's processes."""
        return self.base / "constant" / directory.strip("/").replace("/", "-")


def containerd(places: Places, runc: Path) -> str:
    """The configuration of containerd, TOML (JSON strings are TOML strings)."""
    base = places.base
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    tables: dict[str, dict[str, Any]] = {
        "": {"version": 3, "root": base / "containerd", "state": places.short / "s"},
        "grpc": {"address": places.runtime_socket},
        "ttrpc": {"address": places.short / "t.sock"},
        "plugins.'io.containerd.internal.v1.opt'": {"path": base / "opt"},
        "plugins.'io.containerd.nri.v1.nri'": {"disable": True},
        "plugins.'io.containerd.cri.v1.images'.pinned_images": {"sandbox": IMAGE},
        runtime: {
            "cdi_spec_dirs": [str(places.cdi)],
            "restrict_oom_score_adj": True,  # else runc fails where lowering the score is forbidden
            "netns_mounts_under_state_dir": True,
        },
        f"{runtime}.cni": {"bin_dirs": [str(base / "cni" / "bin")], "conf_dir": base / "cni" / "conf"},
        f"{runtime}.containerd.runtimes.runc": {"runtime_type": "io.containerd.runc.v2"},
        f"{runtime}.containerd.runtimes.runc.options": {"BinaryName": runc},
    }
    lines: list[str] = []
    for table, values in tables.items():
        lines += [f"[{table}]"] if table else []
        lines += [f"{key} = {_toml(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def network() -> str:
    """The list of network plugins, JSON."""
    return json.dumps({"cniVersion": _CNI_VERSION, "name": "gpupool", "plugins": [{"type": "gpupool"}]})


def kubelet(
    places: Places, *, minor: int, cgroup: str, port: int, health_port: int, client: Path, gates: Mapping[str, bool]
) -> str:
    """The kubelet's configuration, YAML.

    Args:
        places: The node's directories.
        minor: Minor version of Kubernetes.
        cgroup: Name of the node's cgroup.
        port: For the API server.
        health_port: For probes.
        client: Certificate of the API server as a client, the only one that may call.
        gates: Feature gates.
    """
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": port,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": health_port,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(client)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{places.runtime_socket}",
        "podLogsDir": str(places.base / "pods"),
        "volumePluginDir": str(places.base / "volume-plugins"),
        "resolvConf": "",
        "clusterDNS": ["10.96.0.10"],  # nobody answers there; without one every pod gets a warning
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi", "imagefs.available": "1Mi"},
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "10s",  # a failed Prepare is tried again after one to one and a half of it (default: 1m)
        "featureGates": dict(gates),
    }
    if minor >= _FIRST_MINOR_REFUSING_CGROUP_V1:
        configuration["failCgroupV1"] = False
    return yaml.safe_dump(configuration, sort_keys=False)


def _toml(value: object) -> str:
    if isinstance(value, Path):
        value = str(value)
    return json.dumps(value)
