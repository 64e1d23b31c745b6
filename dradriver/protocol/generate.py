"""Generate the message modules from the .proto files beside this one: `make protocol`.

The modules are checked in, so that neither building nor running needs a compiler; a test holds them to the sources.
Services are not generated: `services.py` has them in a form that server and client share.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]  # ships no types

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STUB_HEADER = '# mypy: disable-error-code="type-arg"\n'
"""protoc writes bare `Mapping` in its stubs, which strict mypy does not take."""


def generate(destination: Path) -> None:
    """Write the message modules and their type stubs under `destination`, in the layout of the tree.

    Sources are named from the root of the tree: protobuf keeps one registry of file names in a process.
    """
    sources = [str(source.relative_to(ROOT)) for source in sorted(HERE.glob("*.proto"))]
    status = protoc.main(
        ["protoc", f"--proto_path={ROOT}", f"--python_out={destination}", f"--pyi_out={destination}", *sources]
    )
    if status != 0:
        sys.exit(f"protoc failed with status {status}")
    for stub in (destination / HERE.relative_to(ROOT)).glob("*_pb2.pyi"):
        stub.write_text(STUB_HEADER + stub.read_text())


if __name__ == "__main__":
    generate(ROOT)
