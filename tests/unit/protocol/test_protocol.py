"""The checked-in message modules are what the .proto files give, and both sides find each other by the same paths."""

from __future__ import annotations

from concurrent import futures
from pathlib import Path

import grpc

from dradriver import protocol
from dradriver.protocol import dra_v1_pb2, dra_v1beta1_pb2, generate, pluginregistration_pb2, services

TREE = Path(protocol.__file__).parent


def test_checked_in_modules_are_current(tmp_path: Path) -> None:
    generate.generate(tmp_path)
    made = sorted((tmp_path / "dradriver" / "protocol").iterdir())
    assert [path.name for path in made] == sorted(path.name for path in TREE.glob("*_pb2.py*"))
    for path in made:
        assert path.read_text() == (TREE / path.name).read_text(), f"{path.name}: run `make protocol`"


def test_the_kubelets_method_paths() -> None:
    declarations = (
        (services.REGISTRATION, pluginregistration_pb2.DESCRIPTOR),
        (services.DRA_V1, dra_v1_pb2.DESCRIPTOR),
        (services.DRA_V1BETA1, dra_v1beta1_pb2.DESCRIPTOR),
    )
    for service, descriptor in declarations:
        ((_, declared),) = descriptor.services_by_name.items()
        assert service.name == declared.full_name
        assert {
            name: (request.DESCRIPTOR.full_name, response.DESCRIPTOR.full_name)
            for name, (request, response) in service.methods.items()
        } == {method.name: (method.input_type.full_name, method.output_type.full_name) for method in declared.methods}


def test_a_client_reaches_a_server_by_the_same_service(tmp_path: Path) -> None:
    def get_info(_request: object, _context: object) -> pluginregistration_pb2.PluginInfo:
        return pluginregistration_pb2.PluginInfo(type=services.PLUGIN_TYPE, supported_versions=["v1.DRAPlugin"])

    implementation = {"GetInfo": get_info, "NotifyRegistrationStatus": get_info}
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((services.handler(services.REGISTRATION, implementation),))
    target = f"unix:{tmp_path}/s"
    server.add_insecure_port(target)
    server.start()
    try:
        with grpc.insecure_channel(target) as channel:
            call = services.caller(channel, services.REGISTRATION, "GetInfo")
            assert call(pluginregistration_pb2.InfoRequest(), timeout=5).type == "DRAPlugin"
    finally:
        server.stop(None).wait()
