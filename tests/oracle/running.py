"""Runs cases against the real allocators, shrinks what differs, and records cases with their answers.

    python tests/oracle/running.py 37 --cases 2000 --seed 1        compare; exit 1 if anything differs
    python tests/oracle/running.py 32 33 34 --cases 300 --record   write recorded/1.NN.jsonl.gz

A recorded line is a case with the answer that upstream gave, `agreed` (ours was the same, but for what is random).
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from cases import draw
from comparing import Json, find
from oracles import Oracle, build

from dradriver import api

RECORDED = Path(__file__).with_name("recorded")
KEPT = {"name", "metadata", "spec", "driver", "pool", "generation", "resourceSliceCount", "gates", "node", "slices"}
KEPT |= {"claims", "classes", "holders", "devices", "requests", "status", "allocation", "results", "labels"}
KEPT |= {
    "deviceClassName",
    "allocationMode",
    "count",
    "exactly",
    "firstAvailable",
    "operator",
    "key",
    "values",
    "effect",
}
KEPT |= {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection", "nodeSelectorTerms", "cel", "expression"}
KEPT |= {
    "matchAttribute",
    "distinctAttribute",
    "counterSet",
    "counters",
    "value",
    "opaque",
    "parameters",
    "request",
    "device",
}
KEPT |= {"matchExpressions", "matchFields", "bindingConditions", "bindingFailureConditions", "shareID", "metadata.name"}
KEPT |= {"string", "int", "bool", "version", "strings", "ints", "bools", "versions", "a", "b"}
FROZEN = {"classes", "nodeSelector", "node"}


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def seeded(minor: int, seed: int, number: int) -> Json:
    return draw(Random(f"{minor}/{seed}/{number}"), minor)  # noqa: S311 - a case, not a secret


def shrink(case: Json, differs: Callable[[Json], bool]) -> Json:
    """The smallest case found, by leaving out one thing at a time, that still differs."""
    again = True
    while again:
        again = False
        for smaller in _without_one(case):
            if differs(smaller):
                case, again = smaller, True
                break
    return case


def _without_one(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in value:
            if key not in KEPT:
                yield {k: v for k, v in value.items() if k != key}
        for key, item in ((k, v) for k, v in value.items() if k not in FROZEN):
            for smaller in _without_one(item):
                yield value | {key: smaller}
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, item in enumerate(value):
            for smaller in _without_one(item):
                yield [*value[:index], smaller, *value[index + 1 :]]


def run(minor: int, arguments: argparse.Namespace) -> int:
    """Compare cases for one minor; tells how many differ."""
    tally: Counter[tuple[str, bool]] = Counter()
    recorded: list[Json] = []
    begin = time.monotonic()
    with Oracle(minor) as oracle:

        def differs(case: Json, kinds: tuple[str, str]) -> bool:
            try:
                ours, theirs, same = find(case, minor, oracle.ask)
                return not same and (_kind(ours), _kind(theirs[0])) == kinds
            except (api.ApiError, KeyError, IndexError):
                return False

        for number in range(arguments.cases):
            case = seeded(minor, arguments.seed, number)
            ours, theirs, same = find(case, minor, oracle.ask)
            tally[theirs[0][0], same] += 1
            if same and "undecided" in (ours[0], theirs[0][0]):
                continue
            if same:
                recorded.append(case | {"answer": theirs[0]})
                continue
            if sum(n for (_, agreed), n in tally.items() if not agreed) <= arguments.show:
                small = shrink(case, partial(differs, kinds=(_kind(ours), _kind(theirs[0]))))
                ours, theirs, _ = find(small, minor, oracle.ask)
                say(f"1.{minor} case {number} seed {arguments.seed}:", json.dumps(small))
                say("  ours  ", json.dumps(ours))
                say("  theirs", json.dumps(theirs[:3]))
    seconds = time.monotonic() - begin
    say(f"1.{minor}: {arguments.cases} cases in {seconds:.0f} s:", dict(tally))
    if arguments.record:
        write(RECORDED / f"1.{minor}.jsonl.gz", recorded)
    return sum(n for (_, agreed), n in tally.items() if not agreed)


def _kind(answer: list[Any]) -> str:
    return re.sub(r"[0-9]+|[a-z]+[.]example[.]com[^ ]*", "", str(answer[1])) if answer[0] == "error" else str(answer[0])


def write(path: Path, lines: list[Json]) -> None:
    """Recorded lines, the same bytes for the same lines."""
    path.parent.mkdir(exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(path: Path) -> Iterator[Json]:
    """Recorded lines."""
    return map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minors", nargs="*", type=int, default=list(range(32, 38)))
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="how many differences to shrink and print for each minor")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    different = 0
    for minor in arguments.minors:
        build(minor)
        different += run(minor, arguments)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
