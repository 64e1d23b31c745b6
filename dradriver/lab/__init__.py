"""Stand-ins so that everything runs with no GPU and no cluster: API server, claim controller, scheduler, kubelet.

One process tree on loopback, started and ended by `kubectl gpupool lab`; the node plugins in it are the real ones.
"""

from dradriver.lab.places import Home, Kind, Kinds, NodePlan, default_home
from dradriver.lab.running import LabError, Status, down, plan_nodes, status, up

__all__ = [
    "Home",
    "Kind",
    "Kinds",
    "LabError",
    "NodePlan",
    "Status",
    "default_home",
    "down",
    "plan_nodes",
    "status",
    "up",
]
