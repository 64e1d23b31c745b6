"""Writes CEL expressions at random and compares our answers with those of dynamic-resource-allocation's CEL.

python tests/oracle/expressions.py 37 --cases 2000 --seed 1 [--new]      exit 1 if anything differs

Expressions are made from patterns by type, so that most compile; now and then a part has a wrong type. An
answer is `true`, `false`, `error` or `refused` (it does not compile, or costs too much); texts are not compared.
`--new` compiles as for an object being created, otherwise as for one that is stored.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from random import Random
from typing import Any, TypeAlias

from comparing import features
from oracles import Oracle, build
from running import RECORDED
from running import write as write_lines

from dradriver import api, cel
from dradriver.api import wire

Json: TypeAlias = dict[str, Any]

DRIVER = "gpu.example.com"
A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'
ATTRIBUTES: Json = {
    "productName": {"string": "H100 80GB"},
    "architecture": {"string": "Hopper"},
    "index": {"int": 3},
    "nominalMemoryGB": {"int": 80},
    "migCapable": {"bool": True},
    "migEnabled": {"bool": False},
    "driverVersion": {"version": "550.90.7"},
    "other.example.com/model": {"string": "x"},
}
LISTS: Json = {
    "list": {"strings": ["a", "b"]},
    "ints": {"ints": [1, 2, 3]},
    "versions": {"versions": ["1.2.3", "2.0.0"]},
}
CAPACITY: Json = {"memory": {"value": "81559Mi"}, "cores": {"value": "132"}, "other.example.com/x": {"value": "1500m"}}

PATTERNS: dict[str, tuple[str, ...]] = {
    "bool": (
        *("true", "false", f"{A}.migCapable", f"{A}.migEnabled"),
        *("{bool} && {bool}", "({bool} || {bool})", "!({bool})", "({bool} ? {bool} : {bool})"),
        *("{any1} == {any1}", "{any1} != {any1}", "{number} < {number}", "{number} >= {number}", "{string} < {string}"),
        *("{string}.contains({string})", "{string}.startsWith({string})", '{string}.matches("[a-z]+")'),
        *("{int} in {list}", "{string} in {map}", "{list}.all(x, x == {int})", "{list}.exists(x, x > 1)"),
        *("{list}.exists_one(x, x == 1)", "{map}.exists(k, k == {string})", "{list}.isSorted()"),
        *(f"has({A}.index)", f"has({A}.nope)", "{optional}.hasValue()", "{semver}.isGreaterThan({semver})"),
        *("{quantity}.isLessThan({quantity})", "{semver} == {semver}", "{quantity} == {quantity}"),
        *(
            "sets.contains({list}, {list})",
            "sets.intersects({list}, {list})",
            "isQuantity({string})",
            "isSemver({string})",
        ),
        "cel.bind(v, {int}, v > {int})",
    ),
    "int": (
        *("0", "1", "3", "-2", "80", "9223372036854775807", f"{A}.index", f"{A}.nominalMemoryGB"),
        *("({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "-({int})"),
        *("size({string})", "size({list})", "size({map})", "int({double})", "int({string})", "int({uint})"),
        *("{quantity}.compareTo({quantity})", "{semver}.compareTo({semver})", "{semver}.major()", "{quantity}.sign()"),
        *("{string}.indexOf({string})", "{list}.sum()", "{list}.max()", "{list}.indexOf({int})"),
        "{optional}.orValue({int})",
    ),
    "uint": ("0u", "3u", "18446744073709551615u", "({uint} + {uint})", "uint({int})"),
    "double": (
        "0.0",
        "1.5",
        "-3.0",
        "1e300",
        "({double} / {double})",
        "double({int})",
        "{quantity}.asApproximateFloat()",
    ),
    "string": (
        *('"a"', '"Hopper"', '""', '"1.2.3"', '"1Gi"', '"b,a"', "device.driver", f"{A}.architecture"),
        *("({string} + {string})", "string({int})", "string({bool})", "string({double})", "{string}.lowerAscii()"),
        *(
            "{string}.substring({int})",
            "{string}.replace({string}, {string})",
            "{string}.charAt({int})",
            "{string}.trim()",
        ),
        *(
            '{string}.find("[a-z]+")',
            "{optional}.orValue({string})",
            '["a", "b"].join({string})',
            "type({int}) == int ? {string} : {string}",
        ),
    ),
    "semver": ('semver("550.90.7")', 'semver("1.2.3")', f"{A}.driverVersion", "semver({string})"),
    "quantity": (
        *('quantity("80Gi")', 'quantity("1500m")', 'quantity("-1")', f"{C}.memory", f"{C}.cores"),
        *("{quantity}.add({quantity})", "{quantity}.sub({int})", "quantity({string})"),
    ),
    "list": (
        *("[]", "[1, 2, 3]", '["a", "b"]', "[3, 1]", "[1.5]", '"a,b".split(",")', "[{int}, {int}]"),
        *("({list} + {list})", "{list}.map(x, x)", "{list}.filter(x, x == 1)", "{list}.map(x, {int})"),
        *("{list}.sort()", "{list}.reverse()", "{list}.distinct()", "{list}.slice(0, {int})", "lists.range(3)"),
        "{string}.split({string})",
    ),
    "map": ("{}", '{"a": 1}', '{1: "x"}', A, C, "device.attributes", '{"k": {any1}}', "{map}.transformMap(k, v, v)"),
    "optional": (
        *(
            "optional.none()",
            "optional.of({int})",
            f"{A}.?index",
            f"{A}.?nope",
            f"{C}.?memory",
            "{optional}.or({optional})",
        ),
        *("optional.ofNonZeroValue({int})", "{list}[?{int}]", '{map}[?"a"]'),
    ),
    "dyn": (
        f"{A}.nope",
        f"{A}.index",
        f"{A}.architecture",
        f'{A}["index"]',
        "dyn({int})",
        "{list}[{int}]",
        "{optional}.value()",
    ),
}
LISTS_MINOR = 36
KINDS = tuple(PATTERNS)
PLACE = re.compile(r"\{([a-z]+[0-9]?)\}")


def write(random: Random, kind: str, depth: int, same: str = "") -> str:
    """An expression of a kind (`any1` stands for one kind within a pattern)."""
    if kind == "any1":
        kind = same
    elif kind == "number":
        kind = random.choice(("int", "double", "uint", "dyn"))
    if random.random() < 0.04:
        kind = random.choice(KINDS)
    patterns = PATTERNS[kind]
    if depth <= 0:
        patterns = tuple(p for p in patterns if not PLACE.search(p))
    chosen, one = random.choice(patterns), random.choice(KINDS)
    return PLACE.sub(lambda match: write(random, match[1], depth - 1, one), chosen)


def device(kubernetes: api.Kubernetes) -> Json:
    lists = kubernetes.enabled("DRAListTypeAttributes")
    return {"attributes": ATTRIBUTES | (LISTS if lists else {}), "capacity": CAPACITY}


def answer(text: str, kubernetes: api.Kubernetes, *, new: bool) -> str:
    """Our answer; a trace must say the same."""
    spec = {"driver": DRIVER, "pool": {"name": "p"}, "devices": [{"name": "d", **device(kubernetes)}]}
    gpu = wire.read_slice({"spec": spec}, wire.ApiVersion.V1).devices[0]
    try:
        program = cel.compile_expression(text, kubernetes, stored=not new)
    except cel.CompileError:
        return "refused"
    outcome = program.trace(DRIVER, gpu).outcome
    return "error" if isinstance(outcome, cel.EvaluationError) else str(outcome).lower()


def question(text: str, kubernetes: api.Kubernetes, *, new: bool) -> Json:
    given = device(kubernetes)
    shape = {"Driver": DRIVER, "Attributes": given["attributes"], "Capacity": given["capacity"]}
    return {"Expression": text, "New": new, "Device": shape, "Features": features(kubernetes)}


def their_answer(given: Json) -> str:
    if given.get("compile"):
        return "refused"
    return "error" if given.get("error") else str(given["matches"]).lower()


def version(minor: int) -> api.Kubernetes:
    """A minor that knows lists, if any of its gates make it."""
    return api.Kubernetes.release(f"1.{minor}", {"DRAListTypeAttributes": True} if minor >= LISTS_MINOR else {})


def record(minors: list[int], cases: int, seed: int) -> None:
    """Write expressions on which both sides agree, with the answer."""
    lines: list[Json] = []
    for minor in minors:
        with Oracle(minor) as oracle:
            for number in range(cases):
                text, new = write(Random(f"{minor}/{seed}/{number}"), "bool", 3), number % 2 == 0  # noqa: S311
                theirs = their_answer(oracle.ask(question(text, version(minor), new=new)))
                if answer(text, version(minor), new=new) == theirs:
                    lines.append({"minor": minor, "new": new, "expression": text, "answer": theirs})
    write_lines(RECORDED / "expressions.jsonl.gz", lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minors", nargs="*", type=int, default=list(range(32, 38)))
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--record", action="store_true", help="write recorded/expressions.jsonl.gz, new and stored")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.minors, arguments.cases, arguments.seed)
        return 0
    different = 0
    for minor in arguments.minors:
        kubernetes = version(minor)
        build(minor)
        tally: Counter[str] = Counter()
        with Oracle(minor) as oracle:
            for number in range(arguments.cases):
                text = write(Random(f"{minor}/{arguments.seed}/{number}"), "bool", 3)  # noqa: S311 - a case
                given = oracle.ask(question(text, kubernetes, new=arguments.new))
                ours, theirs = answer(text, kubernetes, new=arguments.new), their_answer(given)
                tally[theirs if ours == theirs else "different"] += 1
                if ours != theirs and tally["different"] <= arguments.show:
                    reason = given.get("compile") or given.get("error") or ""
                    sys.stdout.write(f"1.{minor} {text}\n   ours {ours}, theirs {theirs} {reason.splitlines()[:1]}\n")
        different += tally["different"]
        sys.stdout.write(f"1.{minor}: {dict(tally)}\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
