"""JSON paths into a claim or template, in the version of the API in which a person wrote it."""

from __future__ import annotations

from dataclasses import dataclass

from dradriver import api
from dradriver.explain.situations import Situation


@dataclass(frozen=True, slots=True)
class Paths:
    """Where things stand: `spec.devices` in a claim, `spec.spec.devices` in a template.

    `flat` is for v1beta1, where the fields of `exactly` are the request's own.
    """

    devices: str = "spec.devices"
    flat: bool = False

    def request(self, position: int) -> str:
        """A request by its position."""
        return f"{self.devices}.requests[{position}]"

    def exactly(self, position: int) -> str:
        """What holds the class and the selectors of a request that has one way to be met."""
        return self.request(position) + ("" if self.flat else ".exactly")

    def constraint(self, position: int) -> str:
        """A constraint by its position."""
        return f"{self.devices}.constraints[{position}]"

    def options(self, claim: api.ResourceClaim) -> list[tuple[str, api.ExactDeviceRequest | api.DeviceSubRequest, str]]:
        """The ways to meet each request: `request` or `request/subrequest`, what it says, and its path."""
        found: list[tuple[str, api.ExactDeviceRequest | api.DeviceSubRequest, str]] = []
        for position, request in enumerate(claim.spec.requests):
            if request.exactly is not None:
                found.append((request.name, request.exactly, self.exactly(position)))
            for number, option in enumerate(request.first_available):
                path = f"{self.request(position)}.firstAvailable[{number}]"
                found.append((f"{request.name}/{option.name}", option, path))
        return found


def paths_of(situation: Situation, kind: str, namespace: str, name: str) -> Paths:
    """The paths of a ResourceClaim or ResourceClaimTemplate, as it was read."""
    version = situation.versions.get((kind, namespace, name), api.wire.ApiVersion.V1)
    devices = "spec.spec.devices" if kind == "ResourceClaimTemplate" else "spec.devices"
    return Paths(devices, flat=version is api.wire.ApiVersion.V1BETA1)
