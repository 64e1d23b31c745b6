"""The same question to both sides, where the real allocators are built (`python tests/oracle/oracles.py`).

Hypothesis writes the cases, so that a difference is shrunk; mass runs are the command `running.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from cases import draw
from comparing import find
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import MINORS, Oracle, program


@pytest.fixture(params=MINORS, ids=lambda minor: f"1.{minor}")
def oracle(request: pytest.FixtureRequest) -> Iterator[tuple[int, Oracle]]:
    minor: int = request.param
    if not program(minor).exists():
        pytest.skip(f"the allocator of 1.{minor} is not built: python tests/oracle/oracles.py {minor}")
    with Oracle(minor) as running:
        yield minor, running


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_both_sides_answer_alike(oracle: tuple[int, Oracle], random: Random) -> None:
    minor, running = oracle
    case = draw(random, minor)
    ours, theirs, same = find(case, minor, running.ask)
    assert same, (case, ours, theirs)
