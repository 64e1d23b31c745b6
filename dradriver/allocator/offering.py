"""What one node offers to the requests of a pod: devices in the order of the search, judged once for each request.

The order of checks is the scheduler's. Selectors are judged on demand and remembered: whether a device passes them does
not depend on what is taken meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.pools import Candidate, PoolView, candidate_serves
from dradriver.allocator.requesting import Abort, Failed, Wanted, full_name
from dradriver.allocator.selecting import Judgement, describe_error
from dradriver.allocator.sharing import Shares, UnfitError, fits, shareable

BLOCKING_EFFECTS = (api.TaintEffect.NO_SCHEDULE, api.TaintEffect.NO_EXECUTE)
OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
"""What a node declares whose kubelet can skip operations."""

_NONE_USED: Mapping[str, Fraction] = MappingProxyType({})


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
        self._shares = Shares(cluster.rules, cluster.shares if cluster.has_shares else None)
        # By request, subrequest and device: what up to 1.35 is remembered under the wrong subrequest.
        self._selected: dict[tuple[int, str, int, api.DeviceID], bool] = {}
        self._judged = {} if judged is None else judged

    def judge(self, wanted: Wanted, candidate: Candidate) -> Judgement:
        """How the selectors of a request judge a device."""
        key = (wanted, candidate)
        known = self._judged.get(key)
        if known is None:
            known = self.cluster.selectors.judge(candidate, wanted.device_class, wanted.spec.selectors)
            self._judged[key] = known
        return known

    def selectable(self, wanted: Wanted, candidate: Candidate, *, early: bool = False) -> bool:
        """Whether a device passes the selectors and is for the node. Raises Abort where a selector errs.

        `early` is for what is collected before the search begins.
        """
        if candidate.device.binding_conditions and self.cluster.rules.conditions is False:
            return False
        if not self.cluster.rules.judged_as_before:
            return self._passes(wanted, candidate)
        option = max(wanted.option - 1, 0) if early else wanted.option
        key = (wanted.claim, wanted.request, option, candidate.id)
        if key not in self._selected:
            self._selected[key] = self._passes(wanted, candidate)
        return self._selected[key]

    def _passes(self, wanted: Wanted, candidate: Candidate) -> bool:
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
            rules=self.cluster.rules,
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
                message = f"{self.where(wanted)}: asks for all devices, but resource pool {view.id} is {state}"
                raise Abort(Failed(message, wanted.claim, wanted.name))
            found += [Place(c, view) for c in view.candidates if self._belongs(wanted, c)]
        return tuple(found)

    def begin(self) -> None:
        """Forget what was judged early, as the scheduler does when its search begins."""
        self._selected.clear()

    def where(self, wanted: Wanted) -> str:
        """How errors begin."""
        return f"claim {full_name(self._claims[wanted.claim])}, request {wanted.own_name}"

    def unfit(self, wanted: Wanted, candidate: Candidate, error: UnfitError, device: object) -> Abort:
        """The end of a search that met an amount with which nothing can be computed."""
        message = f"{self.where(wanted)}: checking capacity for device {device}: {error}"
        return Abort(Failed(message, wanted.claim, wanted.name, candidate.id))

    def _belongs(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether a device is one of all that are wanted: large enough by itself, up to 1.36 with room left."""
        if not self.selectable(wanted, candidate, early=True):
            return False
        rules = self.cluster.rules
        used = self._shares.used(candidate.id) if rules.all_needs_room else _NONE_USED
        try:
            return fits(wanted.spec.capacity, candidate.device, used, rules)
        except UnfitError as error:
            raise self.unfit(wanted, candidate, error, candidate.id.device) from error

    def roomy(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether a device has the capacity that a request asks of it, beside what shares held consume."""
        return self.room(wanted, candidate) is True

    def room(self, wanted: Wanted, candidate: Candidate) -> bool | None:
        """The same, but None where the scheduler would abort."""
        try:
            return self._shares.fits(wanted.spec.capacity, candidate)
        except UnfitError:
            return None

    def operable(self, candidate: Candidate) -> bool:
        """Whether the node can do without the operations that a device's driver wants skipped."""
        if not candidate.slice.skip_node_operations:
            return True
        allowed = self.cluster.rules.optional_operations
        if allowed is None:
            return True
        return allowed and OPTIONAL_OPERATIONS in self.node.declared_features

    def charged(self, candidate: Candidate) -> bool:
        """Whether the counters of a device are consumed already by shares that claims hold."""
        rules = self.cluster.rules
        if not rules.shares_charge_once or not self.cluster.kubernetes.enabled("DRAPartitionableDevices"):
            return False
        return shareable(candidate.device, rules) and self._shares.known(candidate)

    def used(self, candidate: Candidate) -> Mapping[str, Fraction]:
        """What shares held consume of a device."""
        return self._shares.used(candidate.id)


def blocking_taint(cluster: Cluster, wanted: Wanted, device: api.Device) -> api.Taint | None:
    """The first taint that keeps a device from a request, None if there is none or taints are not looked at."""
    if cluster.repairs.taints or not cluster.kubernetes.enabled("DRADeviceTaints"):
        return None
    every = cluster.rules.every_effect_blocks
    blocking = (t for t in device.taints if every or t.effect in BLOCKING_EFFECTS)
    return next((t for t in blocking if not tolerated(wanted, t)), None)


def tolerated(wanted: Wanted, taint: api.Taint) -> bool:
    """Whether a request accepts a taint."""
    return any(api.tolerates(toleration, taint) for toleration in wanted.spec.tolerations)
