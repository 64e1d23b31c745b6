"""`gpupool-node`: picks the NVML library, real or described, and runs the node plugin.

It stands above `node` and `described`, which do not know each other. Whatever is wrong with flags, environment or
description ends in one line on standard error and status 1.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dradriver import cluster, hardware
    from dradriver.node import Settings

_NEEDED = ("grpc", "google", "pynvml", "networkx")


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; the status to exit with."""
    started = time.monotonic()
    try:
        from dradriver import node  # noqa: PLC0415 - grpc may be missing, which is to be told in one line
        from dradriver.node import logs  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        return _fail(f"package {error.name} is missing: pip install 'gpupool[node]'")
    try:
        settings = node.parse(
            sys.argv[1:] if arguments is None else arguments, os.environ if environment is None else environment
        )
        logs.start(settings.verbosity)
        opening_nvml, roots = _hardware(settings)
        plugin = node.Plugin(
            settings,
            opening_nvml=opening_nvml,
            opening_connection=lambda: _connect(settings.kubeconfig),
            roots=roots,
            started=started,
        )
        with _stopping_on_signals(plugin.stop):
            plugin.run()
    except node.NodeError as error:
        return _fail(str(error))
    return 0


def _hardware(settings: Settings) -> tuple[Callable[[], hardware.Nvml], hardware.Roots]:
    from dradriver import hardware, node  # noqa: PLC0415 - after the check for missing packages

    if settings.nvml == node.SYSTEM:
        return hardware.Nvml, hardware.Roots(dev=settings.dev_root / "dev")
    from dradriver import described  # noqa: PLC0415 - brings yaml, only for described hardware

    if settings.dev_root == Path("/"):
        raise node.SettingsError(
            f"--nvml {settings.nvml} describes hardware, whose device nodes must not be made in /dev: "
            "give --dev-root a directory of its own"
        )
    try:
        description = described.load(settings.nvml, node=settings.node_name)
        described.materialise(description, settings.dev_root)
    except described.DescriptionError as error:
        raise node.SettingsError(str(error)) from error
    state = settings.dev_root / "described"
    roots = hardware.Roots.under(settings.dev_root)

    def opening() -> hardware.Nvml:
        try:
            return hardware.Nvml(described.Library(description, state))
        except described.DescriptionError as error:
            raise hardware.NvmlError(str(error)) from error

    return opening, roots


def _connect(kubeconfig: str | None) -> cluster.Connection:
    from dradriver import cluster, node  # noqa: PLC0415 - after the check for missing packages

    return cluster.connect(cluster.Location(kubeconfig=kubeconfig, request_timeout=node.REQUEST_SECONDS))


@contextlib.contextmanager
def _stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop on SIGTERM and SIGINT.

    A thread of its own takes them, and all that start later have them blocked: a handler would run in the main thread,
    which waits and is not woken when the kernel hands the signal to another.
    """
    ends = (signal.SIGTERM, signal.SIGINT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)

    def wait() -> None:
        signal.sigwait(ends)
        stop()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fail(message: str) -> int:
    print(f"gpupool-node: {message}", file=sys.stderr)  # noqa: T201 - what a person who started it reads
    return 1


if __name__ == "__main__":
    sys.exit(main())
