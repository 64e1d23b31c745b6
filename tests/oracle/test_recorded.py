"""Recorded cases of all six minors, with the answers that the real allocators gave: run everywhere, without Go."""

from __future__ import annotations

import json
from typing import Any

import expressions
import pytest
from comparing import agree, answer
from running import RECORDED, read

MINORS = range(32, 38)


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / name).read_text(encoding="utf-8").splitlines()]


DIFFERENCES = lines("differences.jsonl")
"""Cases in which answers once differed."""

RULES = lines("rules.jsonl")
"""The smallest cases found that tell whether a rule of `dradriver.allocator.variants` holds: were it to have the value
that the name of the case gives (`1.NN-rule-not-value`), the answer would be another."""


@pytest.mark.parametrize("minor", MINORS)
def test_recorded_cases_get_the_answer_of_the_real_allocator(minor: int) -> None:
    cases = list(read(RECORDED / f"1.{minor}.jsonl.gz"))
    wrong = [
        (number, ours, case["answer"])
        for number, case in enumerate(cases)
        if not agree(ours := answer(case, minor), case["answer"])
    ]
    assert len(cases) >= 300
    assert {case["answer"][0] for case in cases} >= {"allocated", "refused", "error"}
    assert not wrong


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in DIFFERENCES])
def test_what_once_differed_does_so_no_more(case: dict[str, Any]) -> None:
    assert agree(answer(case, case["minor"]), case["answer"])


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in RULES])
def test_every_rule_that_variants_differ_in_holds(case: dict[str, Any]) -> None:
    ours = answer(case, case["minor"])
    assert ours[0] != "undecided"
    assert agree(ours, case["answer"]), ours


@pytest.mark.parametrize("minor", MINORS)
def test_recorded_expressions_have_the_outcome_that_the_real_library_gave(minor: int) -> None:
    cases = [case for case in read(RECORDED / "expressions.jsonl.gz") if case["minor"] == minor]
    wrong = [
        (case, ours)
        for case in cases
        if (ours := expressions.answer(case["expression"], expressions.version(minor), new=case["new"]))
        != case["answer"]
    ]
    assert len(cases) >= 300
    assert {case["answer"] for case in cases} == {"true", "false", "error", "refused"}
    assert not wrong
