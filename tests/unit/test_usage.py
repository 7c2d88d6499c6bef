"""The amounts that an attempt records: exact, with valid names, and bounded."""

from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.domain.usage import MOST, MOST_NAMES, Usage, check_groups
from batchmill.errors import InvalidInput


def total(*amounts: Any) -> Decimal:
    usage = Usage()
    for amount in amounts:
        usage.add("eur", amount)
    return usage.amounts["eur"]


@given(st.lists(st.decimals(0, 10**9, places=12), min_size=1, max_size=50))
def test_a_sum_is_exact_whatever_the_decimal_context(amounts: list[Decimal]) -> None:
    with localcontext(prec=80):
        expected = sum(amounts)
    with localcontext(prec=3):
        assert total(*amounts) == expected


def test_a_float_counts_as_the_number_that_is_written() -> None:
    assert total(*10 * [0.1]) == 1
    assert total(1, 0.25, Decimal("0.005")) == Decimal("1.255")


def test_more_than_twelve_places_are_rounded() -> None:
    assert total(Decimal("0.00000000000149")) == Decimal("0.000000000001")
    assert total(0.1 + 0.2) == Decimal("0.3")


@pytest.mark.parametrize(
    "amount",
    [
        *(-1, -0.01, float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")),
        *(MOST + 1, 10**5_000, True, "1", None),
    ],
    # pytest cannot write a number of 5,000 digits.
    ids=lambda amount: type(amount).__name__,
)
def test_an_amount_must_be_a_number_within_the_bounds(amount: Any) -> None:
    with pytest.raises(InvalidInput, match="An amount must be"):
        total(amount)


@pytest.mark.parametrize("name", ["", " tokens", "a b", "-a", "é", "a\n", "x" * 101, "a\x00"])
def test_a_name_must_be_short_and_plain(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid name"):
        Usage().add(name, 1)


def test_the_number_of_names_is_bounded_but_not_the_number_of_amounts() -> None:
    usage = Usage()
    for n in range(MOST_NAMES):
        usage.add(f"gpt-4o-mini:{n}", 1)
    usage.add("gpt-4o-mini:0", 1)
    with pytest.raises(InvalidInput, match="up to 20 names"):
        usage.add("one_more", 1)
    assert usage.amounts["gpt-4o-mini:0"] == 2 and len(usage.amounts) == MOST_NAMES


def test_the_total_is_bounded_and_a_refused_amount_adds_nothing() -> None:
    usage = Usage()
    usage.add("tokens", MOST)
    with pytest.raises(InvalidInput, match="up to"):
        usage.add("tokens", Decimal("0.000000000001"))
    assert usage.amounts == {"tokens": MOST}


@pytest.mark.parametrize("which", [{"by": "day"}, {"by": ["week"]}, {"batch": "x", "by": ["day"]}])
def test_unknown_groups_are_refused(which: Any) -> None:
    with pytest.raises(InvalidInput):
        check_groups(which)
