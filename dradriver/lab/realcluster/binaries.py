"""The files of the programs that make a control plane and a node."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dradriver.lab.realcluster import building, needs
from dradriver.lab.realcluster.errors import MissingError

ASSETS = "KUBEBUILDER_ASSETS"
_ASSET_NAMES = ("etcd", "kube-apiserver")


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """Programs of one version."""

    version: str
    etcd: Path
    apiserver: Path
    controller_manager: Path
    scheduler: Path
    kubelet: Path

    @property
    def minor(self) -> int:
        """37 for 1.37.2."""
        return int(self.version.split(".")[1])


@dataclass(frozen=True, slots=True)
class Containers:
    """What runs containers: `directory` holds the shim too, for containerd's PATH."""

    directory: Path
    containerd: Path
    ctr: Path
    runc: Path
    busybox: Path


def kubernetes(minor: str, say: building.Say) -> Kubernetes:
    """The programs of a minor version such as `1.37`, built now unless they are there.

    etcd and kube-apiserver are those in KUBEBUILDER_ASSETS, where that is set and of the same minor version.

    Raises:
        MissingError: something that building needs is not installed, or there are no sources of this version.
        BuildError: building failed.
    """
    if minor not in building.VERSIONS:
        raise MissingError(f"there is no real Kubernetes {minor} here; there are {', '.join(building.VERSIONS)}")
    version = building.VERSIONS[minor]
    built = building.build(building.kubernetes(version), say)
    etcd, apiserver, controllers, scheduler, kubelet = (built / name for name in building.COMPONENTS)
    assets = _assets(minor, say)
    if assets:
        etcd, apiserver = (assets / name for name in _ASSET_NAMES)
    return Kubernetes(version, etcd, apiserver, controllers, scheduler, kubelet)


def containers(say: building.Say) -> Containers:
    """containerd, runc and a busybox for the pods. Raises MissingError and BuildError as `kubernetes` does."""
    missing, busybox = needs.missing_for_pods(), needs.static_busybox()
    if missing or busybox is None:
        raise MissingError("; ".join(missing))
    built = building.build(building.containers(), say)
    return Containers(built, built / "containerd", built / "ctr", built / "runc", busybox)


def _assets(minor: str, say: building.Say) -> Path | None:
    given = os.environ.get(ASSETS)
    if not given:
        return None
    directory = Path(given)
    if not all(os.access(directory / name, os.X_OK) for name in _ASSET_NAMES):
        raise MissingError(f"{ASSETS}={given} does not hold etcd and kube-apiserver; correct or unset it")
    asked = subprocess.run(  # noqa: S603 - named by the person who runs this
        [directory / "kube-apiserver", "--version"],
        capture_output=True,
        text=True,
        timeout=needs.ASK_SECONDS,
        check=False,
    )
    if f" v{minor}." in asked.stdout:
        return directory
    say(f"{ASSETS} holds {asked.stdout.strip() or 'no Kubernetes'}, not {minor}: using the one built here")
    return None
