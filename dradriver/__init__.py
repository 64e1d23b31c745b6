"""gpupool's Dynamic Resource Allocation driver and the pure core its command line stands on.

Rooms, lowest first: `api`, `cel`, `allocator`, `explain`; `hardware`, `described`; `cluster`; `node`; `lab`.
Each room's public names are what its `__init__` re-exports.
"""
