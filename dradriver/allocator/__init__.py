"""Which devices satisfy which claims, with exactly the scheduler's semantics, and refusals that carry reasons.

Pure. `allocate` answers as the scheduler would on one node; `assess` looks at every device of the cluster without
searching and tells how far it gets, which is what `explain` is made of.

Exact for Kubernetes 1.36 and 1.37 with their default gates, devices and order included. Before, the scheduler's order
is random: the sorted order of 1.36 is used, and the answer is one that the scheduler could give, but for
distinctAttribute over several devices of one request, where 1.34 and 1.35 try permutations and forget differently.

Not modelled: devices that several claims may share by capacity (never given out, reason `capacity`; what holds a share
counts), list attributes, derived attributes, compatibility groups, skipped node operations.
"""

from dradriver.allocator.assessing import Assessment, Finding, Reason, assess
from dradriver.allocator.clusters import Cluster, Holder, Repairs
from dradriver.allocator.outlook import Shortfall
from dradriver.allocator.pools import Candidate, Pool, PoolID
from dradriver.allocator.requesting import Failed
from dradriver.allocator.searching import Allocated, Outcome, Refused, Undecided, allocate

__all__ = [
    "Allocated",
    "Assessment",
    "Candidate",
    "Cluster",
    "Failed",
    "Finding",
    "Holder",
    "Outcome",
    "Pool",
    "PoolID",
    "Reason",
    "Refused",
    "Repairs",
    "Shortfall",
    "Undecided",
    "allocate",
    "assess",
]
