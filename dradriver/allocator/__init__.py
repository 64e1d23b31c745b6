"""Which devices satisfy which claims, with exactly the scheduler's semantics, and refusals that carry reasons.

Pure. `allocate` answers as the scheduler would on one node; `assess` looks at every device of the cluster without
searching and tells how far it gets, which is what `explain` is made of.

Exact, devices and order included, for Kubernetes 1.36 and 1.37, whose newest patch releases are the measure (which of
upstream's allocators answers, and by which rules, is in `variants`). Where the scheduler's order is random, before 1.36
and in its stable allocator, the sorted order of 1.36 is used, and the answer is one that the scheduler could give.

Not modelled: derived attributes (KEP-6080, an alpha of 1.37), which are read past.
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
