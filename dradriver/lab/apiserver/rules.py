"""What the server refuses or completes at a write: limits, immutability, allocation rules, defaults.

Works on stored (v1) form; the limits themselves are those of `api.validation`, CEL is compiled by `cel`. Source of the
rules: kubernetes `pkg/apis/resource/validation/validation.go` and the strategies in `pkg/registry/resource`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dradriver import api, cel
from dradriver.api.validation import Problem
from dradriver.lab.apiserver import kinds, statuses
from dradriver.lab.apiserver.kinds import Kind

Json: TypeAlias = dict[str, Any]

_POD_DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
    "schedulerName": "default-scheduler",
    "dnsPolicy": "ClusterFirst",
}
_IMMUTABLE = "Invalid value: {}: field is immutable"


class Rules:
    """The rules of one Kubernetes version.

    Args:
        kubernetes: The version and its gates.
        now: The time as the API writes it.
        labels: Labels of a namespace, for the admin access check.
    """

    def __init__(
        self, kubernetes: api.Kubernetes, now: Callable[[], str], labels: Callable[[str], Mapping[str, str]]
    ) -> None:
        self._kubernetes = kubernetes
        self._now = now
        self._labels = labels

    def complete(self, kind: Kind, new: Json, old: Json | None) -> None:
        """Fill in what the server fills in."""
        if kind is kinds.SLICE:
            for device in new.get("spec", {}).get("devices", ()):
                for taint in device.get("taints", ()):
                    taint.setdefault("timeAdded", self._now())
        elif kind is kinds.CLAIM:
            status = new.get("status", {})
            if "allocation" not in status:
                status.pop("devices", None)
        elif old is None and kind is kinds.POD:
            new["spec"] = {**_POD_DEFAULTS, **(new.get("spec") or {})}
            new["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
        elif old is None and kind is kinds.NAMESPACE:
            new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"]["name"]
            new |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}

    def check(self, kind: Kind, new: Json, old: Json | None, early: Sequence[Problem] = ()) -> None:
        """Refuse an object that breaks rules. Raises RefusedError."""
        problems = [*early, *self._problems(kind, new, old)]
        if problems:
            raise statuses.invalid(kind, new["metadata"].get("name", ""), problems)

    def _problems(self, kind: Kind, new: Json, old: Json | None) -> Iterator[Problem]:
        yield from _check_metadata(new["metadata"], (old or {}).get("metadata") or {})
        if kind is kinds.POD:
            yield from _check_pod(new, old)
        if kind.group != kinds.RESOURCE_GROUP:
            return
        if old is None or new.get("spec") != old.get("spec"):
            yield from self._check_content(api.wire.read(new))
            yield from _check_immutable(kind, new, old) if old else ()
        if kind is kinds.CLAIM and old is not None:
            most = api.limits_of(self._kubernetes).reserved_for
            yield from _check_status(api.wire.read_claim(new), api.wire.read_claim(old), most)

    def _check_content(self, value: api.wire.Object) -> Iterator[Problem]:
        match value:
            case api.ResourceSlice():
                yield from api.validation.check_slice(value, self._kubernetes)
            case api.DeviceClass():
                yield from api.validation.check_class(value, self._kubernetes)
                yield from self._check_selectors("spec", value.selectors)
            case api.ResourceClaim():
                yield from self._check_spec(value.spec, "spec", value.metadata.namespace)
            case api.ResourceClaimTemplate():
                yield from self._check_spec(value.spec, "spec.spec", value.metadata.namespace)

    def _check_spec(self, spec: api.ClaimSpec, path: str, namespace: str) -> Iterator[Problem]:
        yield from api.validation.check_claim_spec(spec, self._kubernetes, path=path)
        for index, request in enumerate(spec.requests):
            here = f"{path}.devices.requests[{index}]"
            if request.exactly:
                yield from self._check_selectors(f"{here}.exactly", request.exactly.selectors)
                if request.exactly.admin_access:
                    yield from self._check_admin(f"{here}.exactly.adminAccess", namespace)
            for place, sub in enumerate(request.first_available):
                yield from self._check_selectors(f"{here}.firstAvailable[{place}]", sub.selectors)

    def _check_selectors(self, path: str, selectors: Sequence[api.Selector]) -> Iterator[Problem]:
        for index, selector in enumerate(selectors):
            if not selector.expression:
                continue  # a missing expression is a matter of validation
            try:
                cel.compile_expression(selector.expression, self._kubernetes)
            except cel.CompileError as error:
                message = f'Invalid value: "{selector.expression}": compilation failed: {error}'
                yield Problem(f"{path}.selectors[{index}].cel.expression", message)

    def _check_admin(self, path: str, namespace: str) -> Iterator[Problem]:
        """The label that lets a namespace ask for admin access; it changed its domain in 1.34, 1.32 has no check."""
        domain = {32: "", 33: "resource.k8s.io"}.get(self._kubernetes.minor, "resource.kubernetes.io")
        label = f"{domain}/admin-access"
        if domain and self._labels(namespace).get(label) != "true":
            why = f"admin access to devices requires the `{label}: true` label on the containing namespace"
            yield Problem(path, f"Forbidden: {why}")


def _check_metadata(meta: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Problem]:
    added = set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if added and "deletionTimestamp" in old:
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}"
        yield Problem("metadata.finalizers", f"Forbidden: {why}")
    name = meta.get("name") or meta.get("generateName")
    if not name:
        yield Problem("metadata.name", "Required value: name or generateName is required")
    elif not api.names.is_dns_subdomain(meta.get("name") or f"{name}x"):
        rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
        rule += " start and end with an alphanumeric character"
        yield Problem("metadata.name", f'Invalid value: "{name}": {rule}')


def _check_immutable(kind: Kind, new: Json, old: Json) -> Iterator[Problem]:
    if kind in (kinds.CLAIM, kinds.TEMPLATE):
        yield Problem("spec", _IMMUTABLE.format(new.get("spec")))
    if kind is kinds.SLICE:
        for path in ("spec.driver", "spec.pool.name", "spec.nodeName"):
            value = kinds.field_value(new, path)
            if value != kinds.field_value(old, path):
                yield Problem(path, _IMMUTABLE.format(f'"{value}"'))


def _check_status(new: api.ResourceClaim, old: api.ResourceClaim, most: int) -> Iterator[Problem]:
    allocation, before = new.status.allocation, old.status.allocation
    if allocation and before and allocation != before:
        yield Problem("status.allocation", _IMMUTABLE.format("the new allocation"))
    reserved = {consumer.uid for consumer in new.status.reserved_for}
    if reserved and not allocation:
        yield Problem("status.reservedFor", "Forbidden: may not be specified when `allocated` is not set")
    if len(reserved) > most:
        yield Problem("status.reservedFor", f"Too many: {len(reserved)}: must have at most {most} items")
    if new.metadata.deletion_timestamp and reserved - {consumer.uid for consumer in old.status.reserved_for}:
        yield Problem("status.reservedFor", "Forbidden: new entries may not be added while `deletionTimestamp` is set")
    results = allocation.results if allocation else ()
    allocated = {(result.driver, result.pool, result.device, result.share_id) for result in results}
    for index, device in enumerate(new.status.devices):
        identity = (device.get("driver"), device.get("pool"), device.get("device"), device.get("shareID"))
        if identity not in allocated:
            text = "/".join(str(part) for part in identity[:3])
            yield Problem(
                f"status.devices[{index}]", f"Invalid value: {text}: must be an allocated device in the claim"
            )


def _check_pod(new: Json, old: Json | None) -> Iterator[Problem]:
    spec = new.get("spec") or {}
    if not spec.get("containers"):
        yield Problem("spec.containers", "Required value")
    if old is not None and _fixed_part(spec) != _fixed_part(old["spec"]):
        fields = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`"
        fields += ",`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds`"
        yield Problem("spec", f"Forbidden: pod updates may not change fields other than {fields}")


def _fixed_part(spec: Mapping[str, Any]) -> Json:
    free = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds")
    fixed = {key: value for key, value in spec.items() if key not in free}
    for key in {"containers", "initContainers"} & fixed.keys():
        fixed[key] = [{k: v for k, v in container.items() if k != "image"} for container in fixed[key]]
    return fixed
