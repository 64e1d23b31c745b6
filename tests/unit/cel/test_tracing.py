from __future__ import annotations

from collections.abc import Callable

import pytest

from dradriver import api, cel

TraceOf = Callable[[str], cel.Trace]
D = 'device.attributes["gpu.gpupool.dev"]'
MEMORY = 'device.capacity["gpu.gpupool.dev"].memory'


def deciding(text: str, traced: cel.Trace) -> str | None:
    return None if traced.deciding is None else text[slice(*traced.deciding)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f'{D}.index == 3 && {D}.productName == "H100"', f'{D}.productName == "H100"'),
        (f"(({D}.index == 3 && ({D}.index > 5 && true)) && true)", f"{D}.index > 5"),
        (f"{D}.index == 3 && ({D}.index == 4 || {D}.migEnabled)", f"{D}.index == 4 || {D}.migEnabled"),
        (f"{D}.nope == 1 && {D}.index == 4", f"{D}.index == 4"),
        (f"{D}.index == 3 && {D}.nope == 1 && {D}.nope == 2", f"{D}.nope == 1"),
        (f"cel.bind(d, {D}, d.index == 3 && d.index == 4)", "d.index == 4"),
        (f"cel.bind(n, {D}.index + 1, n == 4 && n == 5)", "n == 5"),
        ("false", "false"),
        ("true", None),
    ],
)
def test_the_smallest_conjunct_that_decided_is_pointed_at(trace: TraceOf, text: str, part: str | None) -> None:
    assert deciding(text, trace(text)) == part


def test_the_value_seen_is_told_with_its_path_and_place(trace: TraceOf) -> None:
    text = f'{D}.index == 3 && {D}.productName == "H100"'
    (seen,) = trace(text).observations
    assert (seen.path, seen.value, seen.present) == (f"{D}.productName", "NVIDIA H100 80GB HBM3", True)
    assert text[slice(*seen.span)] == f"{D}.productName"


def test_a_capacity_is_seen_as_a_quantity(trace: TraceOf) -> None:
    text = f'{D}.nominalMemoryGB == 80 && {MEMORY}.compareTo(quantity("80Gi")) >= 0'
    traced = trace(text)
    assert deciding(text, traced) == f'{MEMORY}.compareTo(quantity("80Gi")) >= 0'
    assert [(seen.path, seen.value) for seen in traced.observations] == [(MEMORY, api.Quantity.parse("81559Mi"))]


def test_a_missing_value_is_seen_as_missing(trace: TraceOf) -> None:
    traced = trace(f"{D}.nope == 1")
    assert isinstance(traced.outcome, cel.EvaluationError)
    assert [(seen.path, seen.value, seen.present) for seen in traced.observations] == [(f"{D}.nope", None, False)]


@pytest.mark.parametrize(
    "text",
    [f'{D}["index"] == 4', f"{D}.?index.orValue(0) == 4", f'!("index" in {D})', f"!has({D}.index)"],
)
def test_every_way_to_read_is_seen(trace: TraceOf, text: str) -> None:
    (seen,) = trace(text).observations
    assert seen.value == 3


def test_a_name_given_by_bind_is_told_in_full(trace: TraceOf) -> None:
    (seen,) = trace(f"cel.bind(d, {D}, d.index == 4)").observations
    assert (seen.path, seen.value) == (f"{D}.index", 3)


def test_both_sides_of_a_false_disjunction_are_seen_once_each(trace: TraceOf) -> None:
    traced = trace(f'{D}.index == 4 || {D}.index == 5 || device.driver == "x"')
    assert [(seen.path, seen.value) for seen in traced.observations] == [
        (f"{D}.index", 3),
        ("device.driver", "gpu.gpupool.dev"),
    ]


def test_spans_count_code_points(trace: TraceOf) -> None:
    text = f'"é€😀" != "" && {D}.index == 4'
    assert deciding(text, trace(text)) == f"{D}.index == 4"


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("device.driver == 'x'", set()),
        (
            f"{D}.index == 3 && has({D}.a)",
            {("gpu.gpupool.dev", "index", "attributes"), ("gpu.gpupool.dev", "a", "attributes")},
        ),
        ("device.capacity.d.memory == quantity('1')", {("d", "memory", "capacity")}),
        ("'x' in device.attributes['d']", {("d", "x", "attributes")}),
        ("device.attributes['d'][?'x'].hasValue()", {("d", "x", "attributes")}),
        (
            "cel.bind(d, device.attributes['d'], d.x == 1 && d['y'] == 2)",
            {("d", "x", "attributes"), ("d", "y", "attributes")},
        ),
        ("[1].all(device, device == 1)", set()),
        ("device.attributes[device.driver].x == 1", None),
        ("'d' in device.attributes", None),
        ("device.attributes['d'].all(k, k != 'x')", None),
        ("device.attributes['d'] == {}", None),
        ("cel.bind(d, device, d == d)", None),
    ],
)
def test_what_is_read_is_known_from_the_text(
    kubernetes: api.Kubernetes,
    text: str,
    reads: set[tuple[str, str, str]] | None,
) -> None:
    assert cel.compile_expression(text, kubernetes).reads == reads
