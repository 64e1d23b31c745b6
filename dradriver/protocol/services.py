"""The gRPC services by path, once for server and client.

The package names are irregular upstream: registration has no version, the DRA services carry the Go import path.
A server passes `handler(SERVICE, {method: function})` to `add_generic_rpc_handlers`; a client calls
`caller(channel, SERVICE, method)(request, timeout=...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message

from dradriver.protocol import dra_v1_pb2, dra_v1beta1_pb2, pluginregistration_pb2

PLUGIN_TYPE = "DRAPlugin"
"""`PluginInfo.type` of drivers of dynamic resource allocation."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service: its full name, the word plugins advertise it by, and its unary methods (request, response)."""

    name: str
    methods: Mapping[str, tuple[type[Message], type[Message]]]
    advertised: str = ""


REGISTRATION = Service(
    "pluginregistration.Registration",
    {
        "GetInfo": (pluginregistration_pb2.InfoRequest, pluginregistration_pb2.PluginInfo),
        "NotifyRegistrationStatus": (
            pluginregistration_pb2.RegistrationStatus,
            pluginregistration_pb2.RegistrationStatusResponse,
        ),
    },
)
DRA_V1 = Service(
    "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    {
        "NodePrepareResources": (dra_v1_pb2.NodePrepareResourcesRequest, dra_v1_pb2.NodePrepareResourcesResponse),
        "NodeUnprepareResources": (dra_v1_pb2.NodeUnprepareResourcesRequest, dra_v1_pb2.NodeUnprepareResourcesResponse),
    },
    advertised="v1.DRAPlugin",
)
DRA_V1BETA1 = Service(
    "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
    {
        "NodePrepareResources": (
            dra_v1beta1_pb2.NodePrepareResourcesRequest,
            dra_v1beta1_pb2.NodePrepareResourcesResponse,
        ),
        "NodeUnprepareResources": (
            dra_v1beta1_pb2.NodeUnprepareResourcesRequest,
            dra_v1beta1_pb2.NodeUnprepareResourcesResponse,
        ),
    },
    advertised="v1beta1.DRAPlugin",
)


def handler(service: Service, implementation: Mapping[str, Callable[[Any, grpc.ServicerContext], Message]]) -> Any:
    """A generic handler that serves a service; `implementation` has one function for each of its methods."""
    return grpc.method_handlers_generic_handler(
        service.name,
        {
            method: grpc.unary_unary_rpc_method_handler(
                implementation[method],
                request_deserializer=request.FromString,
                response_serializer=response.SerializeToString,
            )
            for method, (request, response) in service.methods.items()
        },
    )


def caller(channel: grpc.Channel, service: Service, method: str) -> Callable[..., Any]:
    """The method of a service on a channel, as a function of its request (and gRPC's keywords, `timeout` first)."""
    request, response = service.methods[method]
    call: Callable[..., Any] = channel.unary_unary(
        f"/{service.name}/{method}",
        request_serializer=request.SerializeToString,
        response_deserializer=response.FromString,
    )
    return call
