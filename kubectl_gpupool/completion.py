"""`kubectl gpupool completion SHELL`: how to make a shell complete the words of this command."""

from __future__ import annotations

import argparse

from kubectl_gpupool.options import Flags

SHELLS = ("bash", "zsh", "fish", "powershell")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace, _: Flags) -> int:
    """Print what to put into the shell's start file: kubectl's own completion asks kubectl_complete-gpupool."""
    print("# kubectl completes `kubectl gpupool` by itself once kubectl_complete-gpupool is on PATH.")
    if parsed.shell == "fish":
        print("kubectl completion fish | source")
    elif parsed.shell == "powershell":
        print("kubectl completion powershell | Out-String | Invoke-Expression")
    else:
        print(f"source <(kubectl completion {parsed.shell})")
    return 0
