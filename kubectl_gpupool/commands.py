"""The commands there are. Their modules are imported only when asked for, so that `-h` and completion stay quick.

Each module has `declare(parser)`, which adds its arguments and sets `run(parsed, flags) -> exit status`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One command: where it lives, what it does, and what may follow its name (a test holds it to its parser).

    `words` are those that may come next, `flags` its own, `outputs` the forms of its `-o`.
    """

    module: str
    summary: str
    words: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


_READING = ("--from", "--kubernetes", "--feature-gates", "-o", "--output")

COMMANDS = {
    "inspect": Command(
        "kubectl_gpupool.inspecting",
        "show the pool: what there is, who holds it, what still fits",
        flags=(*_READING, "--tree", "--no-headers"),
        outputs=("json", "yaml", "wide", "name"),
    ),
    "explain": Command(
        "kubectl_gpupool.explaining",
        "say why a claim or pod got what it got, why not, and what would change that",
        ("claim", "pod"),
        (*_READING, "-f", "--filename", "--exit-status"),
        ("json", "yaml"),
    ),
    "lab": Command(
        "kubectl_gpupool.lab",
        "run a cluster of described GPUs on this machine",
        ("up", "status", "down"),
        ("--nodes", "--kubernetes", "--control-plane", "--kubelet", "--directory", "-o", "--output"),
        ("json", "yaml", "kubeconfig"),
    ),
    "version": Command(
        "kubectl_gpupool.version",
        "show the versions of gpupool, kubectl and the server",
        flags=("--client", "-o", "--output"),
        outputs=("json", "yaml"),
    ),
    "completion": Command(
        "kubectl_gpupool.completion",
        "print how to make a shell complete words",
        ("bash", "zsh", "fish", "powershell"),
    ),
}
