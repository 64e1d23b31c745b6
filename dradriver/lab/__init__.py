"""Stand-ins so that everything runs with no GPU and no cluster: API server, claim controller, scheduler, kubelet.

up(options) / status() / down()          one process tree, started and ended by `kubectl gpupool lab`
"""
