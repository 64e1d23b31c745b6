"""`python -m dradriver.lab.realcluster [--pods] [1.37 ...]`: builds what a real cluster needs and says where it is."""

from __future__ import annotations

import argparse
import sys
import time

from dradriver.lab.realcluster import building, needs
from dradriver.lab.realcluster.errors import RealClusterError


def main() -> int:
    """Say all that is missing, or build; the status to exit with."""
    parser = argparse.ArgumentParser(description="Builds what a real cluster needs, once.")
    parser.add_argument("versions", nargs="*", metavar="1.NN", help=f"of {', '.join(building.VERSIONS)} (default: all)")
    parser.add_argument("--pods", action="store_true", help="also check what running pods needs, root among it")
    parsed = parser.parse_args()
    unknown = [word for word in parsed.versions if word not in building.VERSIONS]
    if unknown:
        parser.error(f"no sources of {', '.join(unknown)}; there are {', '.join(building.VERSIONS)}")
    versions = [building.VERSIONS[word] for word in parsed.versions or building.VERSIONS]
    recipes = (building.containers(), *map(building.kubernetes, versions))
    missing = [*building.missing(recipes), *(needs.missing_for_pods() if parsed.pods else ())]
    for sentence in missing:
        print(f"error: {sentence}", file=sys.stderr)  # noqa: T201 - a command
    return 1 if missing else _build(recipes)


def _build(recipes: tuple[building.Recipe, ...]) -> int:
    for recipe in recipes:
        started = time.monotonic()
        try:
            built = building.build(recipe, lambda line: print(line, flush=True))  # noqa: T201 - a command
        except RealClusterError as error:
            print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command
            return 1
        print(f"{recipe.name}: {built} ({time.monotonic() - started:.1f} s)", flush=True)  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    sys.exit(main())
