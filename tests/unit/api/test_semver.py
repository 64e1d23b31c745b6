"""Versions are strict, and ordered as semver.org 2.0.0 says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dradriver import api
from dradriver.api import Version


@pytest.mark.parametrize(
    "text", ["0.0.0", "1.2.3", "550.90.7", "1.0.0-alpha.1", "1.0.0-0.x-y.7", "1.0.0+001", "1.0.0-rc.1+b.2", "1.0.0--"]
)
def test_strict_versions_are_read(text: str) -> None:
    assert Version.parse(text).text == text == str(Version.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        *["", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03", "550.90.07", " 1.2.3", "1.2.3\n"],
        *["1.2.3-", "1.2.3+", "1.2.3-01", "1.2.3-a..b", "-1.2.3", "1.2.3-a_b", "1.2.18446744073709551616"],
        "1.2.\u0663",
    ],
)
def test_other_texts_are_refused_by_name(text: str) -> None:
    with pytest.raises(api.VersionError) as caught:
        Version.parse(text)
    assert repr(text) in str(caught.value)


def test_precedence_is_that_of_the_specification() -> None:
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"]
    texts += ["1.0.0-rc.1", "1.0.0", "2.0.0", "2.1.0", "2.1.1", "2.1.10"]
    versions = [Version.parse(text) for text in texts]
    assert sorted({*versions}) == versions
    assert all(left < right and right > left for left, right in pairwise(versions))


def test_build_metadata_has_no_rank_but_makes_another_text() -> None:
    left, right = Version.parse("1.0.0+a"), Version.parse("1.0.0+b")
    assert left <= right
    assert left >= right
    assert not left < right
    assert left != right


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("550.90.07", "550.90.7"),
        ("575.64", "575.64.0"),
        ("12", "12.0.0"),
        ("12.4", "12.4.0"),
        ("v1.7.20", "1.7.20"),
        ("0.0.0", "0.0.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        (" 550.54.14\n", "550.54.14"),
    ],
)
def test_vendors_versions_are_padded(text: str, strict: str) -> None:
    assert Version.padded(text) == Version(strict)


@pytest.mark.parametrize("text", ["", "N/A", "1.2.3.4", "1..2", "r550", "99999999999999999999.1"])
def test_what_cannot_be_padded_is_none(text: str) -> None:
    assert Version.padded(text) is None


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=5))
def test_releases_are_ordered_by_their_numbers(numbers: list[tuple[int, int, int]]) -> None:
    versions = [Version.parse(".".join(map(str, parts))) for parts in numbers]
    assert [version.precedence[:3] for version in sorted(versions)] == sorted(numbers)
