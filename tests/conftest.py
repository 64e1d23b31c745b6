"""What holds for all tests: how hypothesis looks for counter-examples.

No deadline: the machines are shared, and a slow second is no counter-example. In CI the examples are the same at every
run, so that a change is blamed for what it did; elsewhere they are new each time.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("new examples", deadline=None)
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.load_profile("same examples" if os.environ.get("CI") else "new examples")
