"""Which devices satisfy which claims, with exactly the scheduler's semantics, and refusals that carry reasons.

Pure. `allocate` answers as the scheduler would on one node; `assess` looks at every device of the cluster without
searching and tells how far it gets, which is what `explain` is made of.
"""

from dradriver.allocator.assessing import Assessment, Finding, Reason, assess
from dradriver.allocator.clusters import Cluster, Holder
from dradriver.allocator.searching import Allocated, Failed, Refused, Shortfall, allocate

__all__ = [
    "Allocated",
    "Assessment",
    "Cluster",
    "Failed",
    "Finding",
    "Holder",
    "Reason",
    "Refused",
    "Shortfall",
    "allocate",
    "assess",
]
