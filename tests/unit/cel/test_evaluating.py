from __future__ import annotations

from collections.abc import Callable

import pytest

from dradriver import api, cel

Evaluate = Callable[[str], bool]
D = 'device.attributes["gpu.gpupool.dev"]'
ERR = f"{D}.nope == 1"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f"{ERR} && false", False),
        (f"false && {ERR}", False),
        (f"{ERR} || true", True),
        (f"true || {ERR}", True),
        (f"{ERR} && {ERR} && {D}.index == 4", False),
        (f"[1, 2].all(x, {ERR} && x == 1)", False),
        (f"[1, 2].exists(x, {ERR} || x == 2)", True),
    ],
)
def test_a_deciding_side_wins_over_an_error_on_the_other(evaluate: Evaluate, text: str, answer: bool) -> None:  # noqa: FBT001 - a parameter of the table
    assert evaluate(text) is answer


@pytest.mark.parametrize(
    "text", [f"{ERR} && true", f"true && {ERR}", f"{ERR} || false", f"!({ERR})", f"{ERR} ? true : true"]
)
def test_an_error_that_nothing_decides_is_the_outcome(evaluate: Evaluate, text: str) -> None:
    with pytest.raises(cel.EvaluationError, match="no such key: nope"):
        evaluate(text)


def test_a_missing_attribute_is_an_error_that_names_it_and_where(evaluate: Evaluate) -> None:
    text = f"{D}.nope == 1"
    with pytest.raises(cel.EvaluationError) as caught:
        evaluate(text)
    assert caught.value.missing_key == "nope"
    assert text[slice(*caught.value.span)] == "nope"


def test_an_unknown_domain_is_an_empty_map(evaluate: Evaluate) -> None:
    assert evaluate('device.attributes["nope.example"] == {} && !("nope.example" in device.attributes)')


def test_guards_see_what_is_missing(evaluate: Evaluate) -> None:
    assert evaluate(f'has({D}.index) && !has({D}.nope) && !("nope" in {D}) && {D}.?nope.orValue(7) == 7')


def test_names_without_domain_belong_to_the_driver(kubernetes: api.Kubernetes, gpu: api.Device) -> None:
    program = cel.compile_expression('device.attributes["a.example"].index == 3', kubernetes)
    assert program.evaluate("a.example", gpu)
    with pytest.raises(cel.EvaluationError):
        program.evaluate("b.example", gpu)


def test_equality_across_types_is_false_but_order_is_an_error(evaluate: Evaluate) -> None:
    assert not evaluate(f'{D}.index == "3"')
    assert evaluate(f"{D}.index == 3.0 && {D}.index == 3u && {D}.migCapable != 1")
    with pytest.raises(cel.EvaluationError, match="no such overload"):
        evaluate(f'{D}.index < "4"')


def test_versions_have_no_order_signs_and_the_error_says_what_to_write(evaluate: Evaluate) -> None:
    with pytest.raises(cel.EvaluationError, match=r"\.compareTo\(semver"):
        evaluate(f'{D}.driverVersion > "550.0.0"')
    assert evaluate(f'{D}.driverVersion.isGreaterThan(semver("550.0.0"))')


def test_whole_numbers_overflow(evaluate: Evaluate) -> None:
    with pytest.raises(cel.EvaluationError, match="integer overflow"):
        evaluate(f"{D}.index + 9223372036854775807 > 0")


def test_memory_is_compared_exactly(evaluate: Evaluate) -> None:
    memory = 'device.capacity["gpu.gpupool.dev"].memory'
    assert not evaluate(f'{memory}.compareTo(quantity("80Gi")) >= 0')
    assert evaluate(f'{memory}.compareTo(quantity("79Gi")) >= 0 && {memory} == quantity("81559Mi")')


def test_a_result_that_is_no_bool_is_an_error(evaluate: Evaluate) -> None:
    with pytest.raises(cel.EvaluationError, match="not a bool"):
        evaluate(f"{D}.architecture")


def test_device_allows_multiple_allocations_only_if_it_says_so(kubernetes: api.Kubernetes) -> None:
    program = cel.compile_expression("device.allowMultipleAllocations", kubernetes, stored=True)
    assert not program.evaluate("d", api.Device("x"))
    assert program.evaluate("d", api.Device("x", allow_multiple_allocations=True))


def _doubled(levels: int) -> str:
    binds = "".join(f"cel.bind(a{level + 1}, a{level} + a{level}, " for level in range(levels))
    return f"cel.bind(a0, 'xx', {binds}a{levels} == 'x'{')' * (levels + 1)}"


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
        _doubled(60),
        "lists.range(2000).map(a, lists.range(a + 1000)) == []",
        "lists.range(9000).distinct() == []",
        "lists.range(1000).all(a, a in lists.range(1000)) && lists.range(10000000) == []",
        f"lists.range(1000).all(a, '{'x' * 1000}'.matches(string(a) + '?(x*)*y') == false)",
    ],
)
def test_the_cost_of_an_evaluation_is_bounded_and_nothing_absorbs_that(evaluate: Evaluate, text: str) -> None:
    with pytest.raises(cel.EvaluationError, match="cost limit"):
        evaluate(f"{text} || true")


def test_patterns_take_time_linear_in_the_text(evaluate: Evaluate) -> None:
    assert not evaluate(f"'{'a' * 200}!'.matches('^(a|a)*(a*)*$')")


def test_up_to_1_36_what_is_no_optional_is_its_own_alternative(gpu: api.Device) -> None:
    text = 'device.attributes["gpu.gpupool.dev"].architecture.orValue("none") == "Hopper"'

    def outcome(version: str) -> bool:
        gates = {"DRAListTypeAttributes": True} if version == "1.36" else {}
        return cel.compile_expression(text, api.Kubernetes.release(version, gates), stored=True).evaluate(
            "gpu.gpupool.dev", gpu
        )

    assert outcome("1.36")
    with pytest.raises(cel.EvaluationError, match="no such overload"):
        outcome("1.37")


def test_a_version_is_no_key_of_a_devices_maps_and_errs_in_others(evaluate: Callable[[str], bool]) -> None:
    assert not evaluate('dyn(semver("1.2.3")) in device.attributes')
    with pytest.raises(cel.EvaluationError):
        evaluate('dyn(semver("1.2.3")) in {"a": 1}')
