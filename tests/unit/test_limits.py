import math

import pytest

from batchmill.domain.limits import LARGEST, Limits, Rate, check_name
from batchmill.errors import InvalidLimit

NOT_COUNTS = [-1, 1.5, "3", True, LARGEST + 1]


@pytest.mark.parametrize("field", ["total", "per_batch", "per_tenant", "per_key"])
@pytest.mark.parametrize("count", NOT_COUNTS)
def test_slots_are_whole_numbers_from_zero_on(field: str, count: object):
    with pytest.raises(InvalidLimit) as refused:
        Limits(**{field: count})  # pyright: ignore[reportArgumentType]
    assert str(refused.value) == f"{field} must be a whole number from 0 on, not {count!r}."


def test_no_slots_at_all_is_a_limit_and_none_is_not():
    assert Limits(total=0).to_json()[""]["slots"] == 0
    assert Limits(total=None).to_json()[""]["slots"] is None


@pytest.mark.parametrize("starts", [0, *NOT_COUNTS])
def test_a_rate_lets_something_start(starts: object):
    with pytest.raises(InvalidLimit, match="The starts of a rate must be a whole number from 1"):
        Rate(starts)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("period", [0, -1, math.inf, math.nan, 86_400 * 367])
def test_a_rate_has_a_period(period: float):
    with pytest.raises(InvalidLimit, match="The period of a rate must be seconds over 0"):
        Rate(1, period)


def test_each_limit_is_written_under_the_ending_of_its_name():
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
    ],
)
def test_the_names_that_limits_have(name: str):
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "systems", "task:", "task:no spaces", "tenant:", "task:t/batch:0b9f", "task:t/x:y"),
        *("x:y", "tenant:\0", "key:\ud800", "task:t/", "system:*", "task:*"),
    ],
)
def test_any_other_name_is_refused_with_those_that_there_are(name: str):
    with pytest.raises(InvalidLimit, match="names no limit: use system, task:NAME, tenant:NAME"):
        check_name(name)
