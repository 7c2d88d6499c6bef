import math

import pytest

from batchmill.domain.limits import LARGEST, Limits, Rate, check_name
from batchmill.errors import InvalidLimit

NOT_COUNTS = [-1, 1.5, "3", True, LARGEST + 1]


@pytest.mark.parametrize("field", ["total", "per_batch", "per_tenant", "per_key"])
@pytest.mark.parametrize("count", NOT_COUNTS)
def test_slots_that_are_not_whole_numbers_from_zero_are_refused(field: str, count: object):
    with pytest.raises(InvalidLimit) as refused:
        Limits(**{field: count})  # pyright: ignore[reportArgumentType]
    assert str(refused.value) == f"{field} must be a whole number of at least 0, not {count!r}."


def test_zero_slots_is_a_limit_and_none_is_not():
    assert Limits(total=0).to_json()[""]["slots"] == 0
    assert Limits(total=None).to_json()[""]["slots"] is None


@pytest.mark.parametrize("starts", [0, *NOT_COUNTS])
def test_a_rate_with_invalid_starts_is_refused(starts: object):
    with pytest.raises(
        InvalidLimit, match="The starts of a rate must be a whole number of at least 1"
    ):
        Rate(starts)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("period", [0, -1, math.inf, math.nan, 86_400 * 367])
def test_a_rate_with_an_invalid_period_is_refused(period: float):
    with pytest.raises(InvalidLimit, match="The period of a rate must be greater than 0 seconds"):
        Rate(1, period)


def test_each_limit_is_written_with_the_suffix_of_its_name():
    limits = Limits(total=1, per_batch=2, per_tenant=3, per_key=4, key_rate=Rate(5, 60))
    assert limits.to_json() == {
        "": {"slots": 1, "rate": None, "period": None},
        "/batch:*": {"slots": 2, "rate": None, "period": None},
        "/tenant:*": {"slots": 3, "rate": None, "period": None},
        "/key:*": {"slots": 4, "rate": 5, "period": 60},
    }


@pytest.mark.parametrize(
    "name",
    [
        "system",
        "task:extract",
        "task:a.b-c_d",
        "tenant:club 42",
        "tenant:*",
        "batch:0b9f",
        "batch:*",
        "key:api.example.com",
        "key:*",
        "task:extract/tenant:club/42",
        "task:extract/tenant:*",
        "task:extract/key:k",
        "task:extract/batch:*",
        "provider:api.example.com/v1",
    ],
)
def test_valid_names_are_accepted(name: str):
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "systems", "task:", "task:no spaces", "tenant:", "task:t/batch:0b9f", "task:t/x:y"),
        *("pipeline:", "pipeline:a.b", "pipeline:p/batch:0b9f", "pipeline:*"),
        *("x:y", "tenant:\0", "key:\ud800", "task:t/", "system:*", "task:*"),
        *("provider:", "provider:*", "provider:a*", "providers:x"),
    ],
)
def test_invalid_names_are_refused_with_the_valid_forms(name: str):
    with pytest.raises(
        InvalidLimit,
        match="is not a valid limit name. Use system, task:NAME, pipeline:NAME, tenant",
    ):
        check_name(name)
