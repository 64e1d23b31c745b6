"""What one node offers to the requests of a pod: devices in the order of the search, judged once for each request.

The order of checks is the scheduler's. Selectors are judged on demand and remembered: whether a device passes them does
not depend on what is taken meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.pools import Candidate, PoolView, candidate_serves
from dradriver.allocator.requesting import Abort, Failed, Wanted, full_name
from dradriver.allocator.selecting import Judgement, describe_error

BLOCKING_EFFECTS = (api.TaintEffect.NO_SCHEDULE, api.TaintEffect.NO_EXECUTE)


class Place(NamedTuple):
    """One device in the order of the search."""

    candidate: Candidate
    view: PoolView


class Offer:
    """The devices of one node, and how the selectors of the requests judge them.

    `judged` may be shared by the offers of several nodes to the same requests.
    """

    def __init__(
        self,
        cluster: Cluster,
        node: api.Node,
        claims: Sequence[api.ResourceClaim],
        judged: dict[tuple[Wanted, Candidate], Judgement] | None = None,
    ) -> None:
        self.cluster = cluster
        self.node = node
        self.views = cluster.pools_for(node)
        self._claims = claims
        self._judged = {} if judged is None else judged

    def judge(self, wanted: Wanted, candidate: Candidate) -> Judgement:
        """How the selectors of a request judge a device."""
        key = (wanted, candidate)
        known = self._judged.get(key)
        if known is None:
            known = self.cluster.selectors.judge(candidate, wanted.device_class, wanted.spec.selectors)
            self._judged[key] = known
        return known

    def selectable(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether a device passes the selectors and is for the node. Raises Abort where a selector errs."""
        if candidate.device.binding_conditions and not binding_conditions_work(self.cluster.kubernetes):
            return False
        judgement = self.judge(wanted, candidate)
        if judgement.error is not None and not self.cluster.repairs.selectors:
            raise Abort(self.failure(wanted, candidate, judgement))
        return judgement.passed and candidate_serves(candidate, self.node)

    def failure(self, wanted: Wanted, candidate: Candidate, judgement: Judgement) -> Failed:
        """What the scheduler says where a selector errs."""
        message = describe_error(
            judgement,
            candidate,
            claim=full_name(self._claims[wanted.claim]),
            class_name=wanted.spec.device_class_name,
            kubernetes=self.cluster.kubernetes,
        )
        return Failed(message, wanted.claim, wanted.name, candidate.id)

    def everything(self, wanted: Wanted) -> tuple[Place, ...]:
        """Every device a request with mode All takes, those in use among them. Raises Abort.

        An incomplete or invalid pool of any driver stops it: nobody knows how much "all" is.
        """
        found: list[Place] = []
        for view in self.views:
            state = "currently being updated" if view.incomplete else "currently invalid" if view.invalid else None
            if state:
                where = f"claim {full_name(self._claims[wanted.claim])}, request {wanted.name.rpartition('/')[2]}"
                message = f"{where}: asks for all devices, but resource pool {view.id} is {state}"
                raise Abort(Failed(message, wanted.claim, wanted.name))
            found += [Place(c, view) for c in view.candidates if self.selectable(wanted, c) and self.roomy(wanted, c)]
        return tuple(found)

    def roomy(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether a device has the capacity that a request asks of it (KEP-5075).

        Devices that many claims may share are not offered: their shares are not accounted for.
        """
        if not self.cluster.kubernetes.enabled("DRAConsumableCapacity"):
            return True
        device = candidate.device
        return not device.allow_multiple_allocations and all(
            name in device.capacity and amount <= device.capacity[name].value
            for name, amount in wanted.spec.capacity.items()
        )


def blocking_taint(cluster: Cluster, wanted: Wanted, device: api.Device) -> api.Taint | None:
    """The first taint that keeps a device from a request, None if there is none or taints are not looked at."""
    if cluster.repairs.taints or not cluster.kubernetes.enabled("DRADeviceTaints"):
        return None
    return next((t for t in device.taints if t.effect in BLOCKING_EFFECTS and not tolerated(wanted, t)), None)


def tolerated(wanted: Wanted, taint: api.Taint) -> bool:
    """Whether a request accepts a taint."""
    return any(api.tolerates(toleration, taint) for toleration in wanted.spec.tolerations)


def binding_conditions_work(kubernetes: api.Kubernetes) -> bool:
    """Whether the scheduler waits for binding conditions; otherwise it leaves devices that have some alone."""
    return kubernetes.enabled("DRADeviceBindingConditions") and kubernetes.enabled("DRAResourceClaimDeviceStatus")
