"""Quantities are read, written and computed as apimachinery does (cases taken from resource.ParseQuantity 0.34)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dradriver import api
from dradriver.api import Quantity

DIGITS = st.text("0123456789", max_size=22)
SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-7", "e+12", "e20"]
)
TEXTS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "+", "-"]),
    DIGITS,
    st.one_of(st.just(""), DIGITS.map(".{}".format)),
    SUFFIXES,
)


def _parse_or_none(text: str) -> Quantity | None:
    try:
        return Quantity.parse(text)
    except api.QuantityError:
        return None


QUANTITIES = TEXTS.map(_parse_or_none).filter(lambda quantity: quantity is not None)
BOUNDED = st.builds(
    lambda number, suffix: Quantity.parse(f"{number}{suffix}"),
    st.integers(-(10**6), 10**6),
    st.sampled_from(["", "m", "k", "Ki", "Mi", "e3"]),
)


@pytest.mark.parametrize(
    ("text", "written", "form"),
    [
        ("0", "0", "DecimalSI"),
        ("00", "0", "DecimalSI"),
        ("-0", "0", "DecimalSI"),
        ("81559Mi", "81559Mi", "BinarySI"),
        ("81920Mi", "80Gi", "BinarySI"),
        ("1.5Gi", "1536Mi", "BinarySI"),
        (".5Ki", "512", "BinarySI"),
        ("1536Ki", "1536Ki", "BinarySI"),
        ("1000Ki", "1000Ki", "BinarySI"),
        ("0.0001Ki", "102400u", "BinarySI->DecimalSI"),
        ("1.0000000001Ki", "1024000000103n", "BinarySI"),
        ("1500m", "1500m", "DecimalSI"),
        ("1000m", "1", "DecimalSI"),
        ("0.5", "500m", "DecimalSI"),
        (".5", "500m", "DecimalSI"),
        ("-.5Ki", "-512", "BinarySI"),
        ("1e3", "1e3", "DecimalExponent"),
        ("100e1", "1e3", "DecimalExponent"),
        ("12e1", "120", "DecimalExponent"),
        ("1e99", "1e99", "DecimalExponent"),
        ("0.0000000001", "1n", "DecimalSI"),
        ("-0.0000000001", "-1n", "DecimalSI"),
        ("1e-12", "1e-9", "DecimalExponent"),
        ("12345678901234567890.5k", "12345678901234567890500", "DecimalSI"),
        ("99999999999999999999", "99999999999999999999", "DecimalSI"),
    ],
)
def test_a_quantity_is_written_in_the_servers_canonical_form(text: str, written: str, form: str) -> None:
    quantity = Quantity.parse(text)
    assert (str(quantity), quantity.form) == (written, form.partition("->")[0])
    assert quantity.text == text


@pytest.mark.parametrize("text", ["+1", "01", "1.", "1.500", "1E3", "1e+3", "1e03", "1.Ki", "+1Ki", "007m", "1.G"])
def test_the_server_keeps_odd_but_short_texts_as_they_are(text: str) -> None:
    assert str(Quantity.parse(text)) == text


@pytest.mark.parametrize("text", ["+", "-", ".", "k", "Ki", "E", "Ti", ".Ki", "0Pi", "e3", "-.k", "e-9"])
def test_what_stands_for_nothing_is_zero(text: str) -> None:
    quantity = Quantity.parse(text)
    assert quantity == Quantity.parse("0")
    assert str(quantity) == "0"


@pytest.mark.parametrize("text", ["8Ei", "9999999Pi", "123456789012345678.Ki", "99999999999999999999.Ki"])
def test_binary_quantities_end_at_the_largest_signed_64_bit_number(text: str) -> None:
    assert Quantity.parse(text).value == 2**63 - 1
    assert Quantity.parse(f"-{text}").value == -(2**63 - 1)


def test_decimal_quantities_have_no_cap() -> None:
    assert Quantity.parse("100E").value == 10**20


@pytest.mark.parametrize(
    "text",
    [
        *["", " 1", "1 ", "1\n", "--1", "+-1", "1_0", "nan", "0x10", "1.1.1", "1e2.5", "\u0661", "1" * 1001],
        *["1e", "1e+", "1e-", "m5", "5k5", "5-3", "5+", "1Kii", "1ki", "8GB", "1EE", "1mm", "1e1001"],
        *["Pi", "-Ei", "+.Ei", "e-10", "-E-16"],
    ],
)
def test_what_is_no_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(api.QuantityError) as caught:
        Quantity.parse(text)
    assert repr(text[:80]) in str(caught.value)


def test_an_amount_beyond_the_suffixes_keeps_its_value() -> None:
    assert str(Quantity.parse("42000E")) == "42e21"
    assert Quantity.parse("42e21") == Quantity.parse("42000E")


@pytest.mark.parametrize("text", ["1e-99999999999", "0.1e-2147483648"])
def test_a_tiny_amount_is_a_nano_however_tiny(text: str) -> None:
    assert Quantity.parse(text) == Quantity.parse("1n")


def test_equal_amounts_are_equal_however_written() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1.024k")
    assert len({Quantity.parse("1Ki"), Quantity.parse("1024"), Quantity.parse("1024000m")}) == 1
    assert Quantity.parse("1") != 1


def test_memory_is_written_in_mebibytes() -> None:
    assert Quantity.of_mib(81559).text == "81559Mi"
    assert Quantity.of_mib(81920).text == "81920Mi"
    assert Quantity.of_mib(81920).value == 80 * 2**30


def test_a_sum_keeps_the_form_of_its_first_part_unless_that_is_zero() -> None:
    assert str(Quantity.parse("1Gi") + Quantity.parse("512Mi")) == "1536Mi"
    assert str(Quantity.parse("1Gi") - Quantity.parse("1")) == "1073741823"
    assert str(Quantity.parse("0") + Quantity.parse("1Gi")) == "1Gi"
    assert str(-Quantity.parse("80Gi")) == "-80Gi"


@given(QUANTITIES)
def test_reading_what_was_written_gives_the_same_amount(quantity: Quantity) -> None:
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(QUANTITIES, QUANTITIES)
def test_order_and_equality_follow_the_amount(left: Quantity, right: Quantity) -> None:
    assert (left < right, left <= right, left > right, left >= right, left == right) == (
        left.value < right.value,
        left.value <= right.value,
        left.value > right.value,
        left.value >= right.value,
        left.value == right.value,
    )
    assert left != right or hash(left) == hash(right)


@given(BOUNDED, BOUNDED, BOUNDED)
def test_sums_obey_the_laws_of_addition(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a + -a == Quantity.parse("0")
    assert Quantity.parse(str(a + b)) == a + b


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    quantity = _parse_or_none(text)
    assert quantity is None or quantity.text == text
