"""The lab's own process: runs one lab until SIGTERM or SIGINT and reports in `status.json`.

`python -m dradriver.lab.supervising HOME LOCK` is started by `dradriver.lab.running`, which has made the home and holds
the lab's lock, passed on as the descriptor LOCK.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from dradriver import api, cluster
from dradriver.lab.labs import Lab
from dradriver.lab.places import Home, Kind
from dradriver.lab.realcluster.errors import RealClusterError
from dradriver.lab.realcluster.images import IMAGE

log = logging.getLogger(__name__)

READY_POLL_SECONDS = 0.1
REPORT_SECONDS = 1.0
MOST_ENDS = 3
"""A plugin that ends this often while the lab starts will not come up."""


class StartError(Exception):
    """The lab cannot be brought up; the message says which part of it."""


class Supervisor:
    """One lab and what is told of it."""

    def __init__(self, home: Home, lock: int) -> None:
        self._home = home
        self._plan = home.plan()
        self._started = time.monotonic()
        self._progress: list[str] = []
        self._ready = False
        self._reported: dict[str, object] = {}
        self._lab = Lab(home, self._plan, lock=lock)
        self.stopping = threading.Event()

    def run(self) -> None:
        """Start everything, report, and stay until told to stop. Raises StartError."""
        try:
            self._report()
            self._lab.start()
            self._say(f"API server of Kubernetes {self._lab.kubernetes} at {self._lab.control_plane.url}")
            if self._plan.kinds.kubelet is Kind.REAL:
                self._say(f"pods run; an image that every node has: {IMAGE}")
            self._wait_ready()
            while not self.stopping.wait(REPORT_SECONDS):
                try:
                    self._report()
                except OSError as error:  # a full disk is no reason to end
                    log.warning("cannot report error=%s", error)
        finally:
            self._lab.stop()

    def _wait_ready(self) -> None:
        """Wait until every node has its devices; how long is up to whoever started us."""
        waiting = [node.name for node in self._plan.nodes]
        while waiting and not self.stopping.wait(READY_POLL_SECONDS):
            for name in tuple(waiting):
                devices = self._lab.devices(name)
                if devices is not None:
                    waiting.remove(name)
                    self._say(f"node {name}: {devices} devices")
                elif self._lab.plugins[name].ends >= MOST_ENDS:
                    raise StartError(f"the plugin of node {name} does not run: {self._lab.plugins[name].last_line()}")
        self._ready = not waiting
        self._report()

    def _say(self, line: str) -> None:
        self._progress.append(f"{time.monotonic() - self._started:5.1f} s  {line}")
        self._report()

    def _report(self) -> None:
        plugins = {name: plugin.pid for name, plugin in self._lab.plugins.items()}
        report: dict[str, object] = {
            "pid": os.getpid(),
            "ready": self._ready,
            "progress": list(self._progress),
            "kubernetes": self._plan.kubernetes,
            "controlPlane": self._plan.kinds.control_plane,
            "kubelet": self._plan.kinds.kubelet,
            "kubeconfig": str(self._home.kubeconfig),
            "nodes": [
                {"name": node.name, "description": node.description, "plugin": plugins.get(node.name)}
                for node in self._plan.nodes
            ],
        }
        if report != self._reported:
            self._home.write(self._home.status, report)
            self._reported = report


def main() -> int:
    """Run the lab of this home under this lock."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    home, lock = Home(Path(sys.argv[1])), int(sys.argv[2])
    own = home.lock("supervisor.lock")
    try:
        supervisor = Supervisor(home, lock)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: supervisor.stopping.set())
        supervisor.run()
    except (StartError, RealClusterError, OSError, api.ApiError, cluster.ClusterError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the log is standard error
        return 1
    finally:
        if own is not None:
            os.close(own)
    return 0


if __name__ == "__main__":
    sys.exit(main())
