"""The commands there are. Their modules are imported only when asked for, so that `-h` and completion stay quick.

Each module has `declare(parser)`, which adds its arguments and sets `run(parsed, flags) -> exit status`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One command: where it lives and what it does."""

    module: str
    summary: str
    words: tuple[str, ...] = ()
    """What may follow its name, for completion."""
    flags: tuple[str, ...] = ()
    """Its own flags, for completion; a test holds them to what its parser takes."""


_READING = ("--from", "--kubernetes", "--feature-gates", "-o", "--output")


COMMANDS = {
    "inspect": Command(
        "kubectl_gpupool.inspecting",
        "show the pool: what there is, who holds it, what still fits",
        flags=(*_READING, "--tree", "--no-headers"),
    ),
    "explain": Command(
        "kubectl_gpupool.explaining",
        "say why a claim or pod got what it got, why not, and what would change that",
        ("claim", "pod"),
        (*_READING, "-f", "--filename", "--exit-status"),
    ),
    "lab": Command("kubectl_gpupool.lab", "run a cluster of described GPUs on this machine", ("up", "status", "down")),
    "version": Command(
        "kubectl_gpupool.version",
        "show the versions of gpupool, kubectl and the server",
        flags=("--client", "-o", "--output"),
    ),
    "completion": Command(
        "kubectl_gpupool.completion", "print how to complete words in a shell", ("bash", "zsh", "fish", "powershell")
    ),
}
