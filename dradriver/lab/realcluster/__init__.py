"""A real Kubernetes in place of the lab's stand-ins: control plane, kubelet, containerd, runc, built from Go modules.

Bare processes on loopback, without Docker or systemd. The control plane runs as any user; a node, whose pods really
run, needs root. What a cluster makes is in its directory, but for cgroups, which `Node.stop` removes.
"""
