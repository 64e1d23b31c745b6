"""Which devices satisfy which claims, with exactly the scheduler's semantics, and refusals that carry reasons.

Pure. `allocate` answers as the scheduler would on one node; `assess` looks at every device of the cluster without
searching and tells how far it gets, which is what `explain` is made of.

Not modelled: devices that several claims may share by capacity (they are never given out, reason `capacity`), list
attributes, derived attributes and compatibility groups.
"""

from dradriver.allocator.assessing import Assessment, Finding, Reason, assess
from dradriver.allocator.clusters import Cluster, Holder, Repairs
from dradriver.allocator.outlook import Shortfall
from dradriver.allocator.pools import Pool, PoolID
from dradriver.allocator.requesting import Failed
from dradriver.allocator.searching import Allocated, Outcome, Refused, Undecided, allocate

__all__ = [
    "Allocated",
    "Assessment",
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
