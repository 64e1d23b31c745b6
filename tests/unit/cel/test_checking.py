from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dradriver import api, cel

Refusal = Callable[[str], cel.CompileError]
D = 'device.attributes["gpu.gpupool.dev"]'


@pytest.mark.parametrize(
    ("text", "where", "advice"),
    [
        ('device.driver = "x"', "=", "use == to compare"),
        ("true & true", "&", "use &&"),
        ("true and false", "and", "write &&"),
        ("not true", "not", "write ! before"),
        ('device.driver == "x', '"', "not closed"),
        ("device.driver == “x”", "“", "plain"),
        ("(true", "", r"'\)' to close the \( at 0 is missing"),
        ("true;", ";", "one expression"),
        ('device.driver == "\\d"', "\\d", "raw string"),
        ("Device.driver == 'x'", "Device", "did you mean device?"),
        ("driver == 'x'", "driver", "write device.driver"),
        ("H100 == 'x'", "H100", "in quotes"),
        ("True", "True", "write true"),
        ("device.attribute == {}", "attribute", "did you mean device.attributes"),
        ("device.memory == 1", "memory", "it has driver, attributes, capacity"),
        ("device.driver.startswith('x')", "startswith", "did you mean startsWith"),
        ('quantity("1").sign() == 1', "sign", r"write sign\(x\)"),
        ("device.driver == 1", "device.driver == 1", "without quotes"),
        ("device.driver", "device.driver", "compare it"),
        ("device.attributes.productName == 'x'", "device.attributes.productName == 'x'", "under their domain"),
        ('device.capacity["d"].memory > quantity("1Gi")', None, r"isGreaterThan\(quantity"),
        ('device.capacity["d"].memory >= quantity("1Gi")', None, r"compareTo\(quantity\(...\)\) >= 0"),
        ('device.capacity["d"].memory == "80Gi"', None, r"write == quantity"),
        (f'{D}.driverVersion > semver("1.2.3")', None, r"isGreaterThan\(semver"),
        ('[1, "a"].size() == 2', '"a"', "dyn"),
        ('"x".matches("(?=a)")', '"(?=a)"', "RE2"),
        ("has(device)", "device", "takes a field"),
        ("[1].all(1, true)", "1", "variable's name"),
        (f'{D}.list.exists(x, x == "a")', f"{D}.list", "DRAListTypeAttributes"),
        ("duration('1h') == duration('1h')", "duration", "does not model"),
        ("9223372036854775808 == 1", "9223372036854775808", "64-bit"),
        ("if == 1", "if", "reserved"),
    ],
)
def test_a_refusal_says_where_and_what_to_write(refusal: Refusal, text: str, where: str | None, advice: str) -> None:
    error = refusal(text)
    assert where is None or text[slice(*error.span)] == where
    assert re.search(advice, str(error)), str(error)


def test_the_length_limit_is_10_kib(kubernetes: api.Kubernetes, refusal: Refusal) -> None:
    padding = "'" + "x" * (10 * 1024 - len("'' != ''")) + "'"
    assert cel.compile_expression(f"{padding} != ''", kubernetes)
    assert "split it" in str(refusal(f"{padding}  != ''"))


@pytest.mark.parametrize("opening", ["(", "[", "!(", "dyn(", "-", "true ? ", "{1:", "x.", "a[", "1+", "[1].map(x,"])
def test_depth_is_refused_not_a_recursion_error(refusal: Refusal, opening: str) -> None:
    refusal(opening * (10_000 // len(opening)))


def test_a_hundred_levels_are_fine(kubernetes: api.Kubernetes) -> None:
    text = "(" * 100 + "true" + ")" * 100
    assert cel.compile_expression(text, kubernetes).evaluate("d", api.Device("x"))
    assert cel.compile_expression(" && ".join(["true"] * 1000), kubernetes).evaluate("d", api.Device("x"))


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ('semver("v1.2", true) == semver("1.2.0")', 34),
        ("[3, 1].sort() == [1, 3]", 35),
        ("[1].all(i, v, v > i)", 33),
        ("device.allowMultipleAllocations", 36),
        ('semver("1.2.3").major() == 1', 32),
        ('device.attributes["d"].`x` == 1', 37),
    ],
)
def test_new_expressions_may_use_what_the_version_before_had(text: str, since: int) -> None:
    compiled = [minor for minor in range(32, 38) if compiles(text, api.Kubernetes.release(f"1.{minor}"))]
    assert compiled == list(range(since, 38))


def test_stored_expressions_may_use_all_that_the_version_has() -> None:
    kubernetes = api.Kubernetes.release("1.34")
    assert cel.compile_expression("[3, 1].sort() == [1, 3]", kubernetes, stored=True)
    with pytest.raises(cel.CompileError, match=r"1\.35"):
        cel.compile_expression("[3, 1].sort() == [1, 3]", kubernetes)


_WORDS = st.sampled_from(
    ['"', "'", "(", ")", "[", "]", "{", "}", ".", "?", ":", ",", "&&", "||", "!", "-", "==", "<", "in", "1", "1u", ".5",
     "device", "attributes", "driver", '["d"]', "has", "all", "x", "map", "size", " ", "true", "null", "r'a'", "\\",
     "é", "`"],
)  # fmt: skip


def compiles(text: str, kubernetes: api.Kubernetes) -> bool:
    try:
        cel.compile_expression(text, kubernetes)
    except cel.CompileError:
        return False
    return True


@given(st.lists(_WORDS, max_size=30).map("".join))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    kubernetes = api.Kubernetes.release("1.37")
    if not compiles(text, kubernetes):
        return
    outcome = cel.compile_expression(text, kubernetes).trace("d", api.Device("x")).outcome
    assert isinstance(outcome, bool | cel.EvaluationError)
