"""The story `make demo` tells: six described nodes, one manifest, five claims, each answered and explained.

Every command is one a person could type; the story runs it, prints what it printed, and stops with exit status 1 at the
first answer that is not the one it promises. The lab is left running.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(sys.executable).parent
MANIFEST = "manifests/samples/story.yaml"
NODES = "hgx-h100,dgx-a100,h100-nvl-4,l4-4,a100-mig,gb200-tray"
COMMAND_SECONDS = 60


class UntrueError(Exception):
    """The story promised something that a command did not show."""


def main() -> int:
    """Tell the story; 0 when all of it was true."""
    started = time.monotonic()
    try:
        lab_up()
        four_gpus_in_one_domain()
        a_mig_instance_and_two_containers()
        not_now()
        never()
        the_80_gi_trap()
    except UntrueError as error:
        print(f"\nthe story broke: {error}", file=sys.stderr)
        return 1
    say(f"The end, after {time.monotonic() - started:.0f} s. The lab is still running; look around:")
    print(
        f"    export PATH={shlex.quote(str(PROGRAMS))}:$PATH KUBECONFIG={kubeconfig()}\n"
        "    kubectl get resourceslices,resourceclaims,pods -A\n"
        "    kubectl gpupool inspect --tree\n"
        "    kubectl gpupool explain pod story/pretrain\n"
        "Stop it with:  make demo-down"
    )
    return 0


def lab_up() -> None:
    """Six nodes come up and publish what they have."""
    say("A cluster of six described nodes: no GPU, no root, real NVML bindings, real gRPC, real kubectl.")
    if kubeconfig():
        run("kubectl gpupool lab down")  # the lab of an earlier telling
    run(f"kubectl gpupool lab up --nodes {NODES}", environment=os.environ)
    os.environ["KUBECONFIG"] = kubeconfig()
    run("kubectl apply -f manifests/deviceclasses.yaml")
    expect(run("kubectl get resourceslices"), "hgx-h100", "gb200-tray")
    expect(run("kubectl gpupool inspect"), "hgx-h100", "NVIDIA H100 80GB HBM3", "a100-mig")


def four_gpus_in_one_domain() -> None:
    """A template's claim is allocated, prepared, and its pod gets what the CDI file says."""
    say("1. A pod asks for 4 x 80GB Hopper in one NVLink domain.")
    apply(1)
    running("train")
    seen = run("kubectl gpupool explain pod story/train")
    expect(seen, "allocated", "hgx-h100/gpu-0", "hgx-h100/gpu-3", "GPU-")
    expect(
        run("kubectl logs -n story train"), "k8s.gpu.gpupool.dev-claim_", "NVIDIA_VISIBLE_DEVICES=void", "/dev/nvidia0"
    )


def a_mig_instance_and_two_containers() -> None:
    """A MIG instance, and one claim with two requests of which each container gets its own."""
    say("2. A notebook in a MIG instance; one claim whose two GPUs go to two containers.")
    apply(2)
    running("notebook")
    running("serve")
    expect(run("kubectl logs -n story notebook"), "/dev/nvidia-caps/nvidia-cap")
    encoder = run("kubectl logs -n story serve -c encoder")
    model = run("kubectl logs -n story serve -c model")
    if device_nodes(encoder) & device_nodes(model):
        raise UntrueError("the containers encoder and model of pod serve see the same GPU")


def not_now() -> None:
    """A claim waits, the explanation says for what, and ending that makes it run."""
    say("3. Six more of that board do not fit now. Who is in the way?")
    apply(3)
    claim_waits("six-hopper-80gb")
    expect(
        run("kubectl gpupool explain claim story/six-hopper-80gb"),
        "pending",
        "story/train-gpus",
        "kubectl delete pod -n story train",
    )
    say("Doing what it says:")
    run("kubectl delete pod -n story train --wait=true")
    running("finetune")
    expect(run("kubectl gpupool explain claim story/six-hopper-80gb"), "allocated", "hgx-h100/gpu-5")


def never() -> None:
    """No waiting helps: the hardware cannot do it."""
    say("4. Eight H100 NVL in one NVLink domain: bridges join two.")
    apply(4)
    claim_waits("eight-h100-nvl")
    expect(run("kubectl gpupool explain claim story/eight-h100-nvl"), "impossible", "nvlinkDomain")


def the_80_gi_trap() -> None:
    """A selector that no 80GB card meets, found and mended."""
    say('5. "80Gi" on an 80GB card.')
    apply(5)
    claim_waits("hopper-80gi")
    expect(run("kubectl gpupool explain claim story/hopper-80gi"), "81559Mi", "^", "nominalMemoryGB")


def apply(step: int) -> None:
    """Apply one step of the manifest."""
    run(f"kubectl apply -f {MANIFEST} -l step={step}")


def running(pod: str) -> None:
    """Wait until a pod runs."""
    run(f"kubectl wait -n story pod/{pod} --for=jsonpath='{{.status.phase}}'=Running --timeout=30s")


def claim_waits(claim: str) -> None:
    """Wait until the scheduler has looked at a claim's pod and found no place."""
    run(f"kubectl wait -n story pod -l claim={claim} --for=condition=PodScheduled=false --timeout=30s")


def device_nodes(log: str) -> set[str]:
    """The GPUs' own device nodes in what a container shows."""
    words = (word for line in log.splitlines() for word in line.split())
    return {word for word in words if word.startswith("/dev/nvidia") and word[11:].isdigit()}


def kubeconfig() -> str:
    """Where the lab that runs keeps its kubeconfig; empty while none runs."""
    answer = subprocess.run(
        [PROGRAMS / "kubectl-gpupool", "lab", "status", "-o", "kubeconfig"],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return answer.stdout.strip()


def say(text: str) -> None:
    """One line of the story."""
    print(f"\n== {text}\n", flush=True)


def run(command: str, environment: os._Environ[str] = os.environ) -> str:
    """Run a command as typed, print it and its output, and give the output."""
    print(f"$ {command}", flush=True)
    path = f"{PROGRAMS}{os.pathsep}{environment.get('PATH', '')}"
    answer = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env={**environment, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    print(answer.stdout, flush=True)
    if answer.returncode:
        raise UntrueError(f"`{command}` ended with exit status {answer.returncode}")
    return answer.stdout


def expect(output: str, *fragments: str) -> None:
    """Hold an output to what the story says it shows."""
    for fragment in fragments:
        if fragment not in output:
            raise UntrueError(f"expected to see {fragment!r} above")


if __name__ == "__main__":
    sys.exit(main())
