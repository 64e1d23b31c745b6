"""An API server in memory that kubectl, the node plugin and the lab's controllers take for Kubernetes 1.32 to 1.37.

ApiServer(kubernetes, identities, certificates, port=0)    .start() .stop() .url .compact()

Serves nodes, pods, events, namespaces and what else the lab needs of core/v1, and resource.k8s.io in the versions of
the emulated Kubernetes, with its limits, immutability, dropped fields, watches and refusals. Nothing is kept on disk.
"""

from dradriver.lab.apiserver.serving import ApiServer

__all__ = ["ApiServer"]
