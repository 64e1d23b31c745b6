"""`python -m dradriver.lab.realcluster [1.37 ...]`: builds what a real cluster needs and says where it is."""

from __future__ import annotations

import sys
import time

from dradriver.lab.realcluster import building
from dradriver.lab.realcluster.errors import RealClusterError


def main(words: list[str]) -> int:
    """Build the versions named, or all; the status to exit with."""
    unknown = [word for word in words if word not in building.VERSIONS]
    if unknown:
        print(f"error: no sources for {', '.join(unknown)}; there are {', '.join(building.VERSIONS)}", file=sys.stderr)  # noqa: T201 - a command
        return 1
    versions = [building.VERSIONS[word] for word in words or building.VERSIONS]
    for recipe in (building.containers(), *map(building.kubernetes, versions)):
        started = time.monotonic()
        try:
            built = building.build(recipe, lambda line: print(line, flush=True))  # noqa: T201 - a command
        except RealClusterError as error:
            print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command
            return 1
        print(f"{recipe.name}: {built} ({time.monotonic() - started:.1f} s)", flush=True)  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
