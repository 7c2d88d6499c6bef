import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.domain.retry import Retry
from batchmill.errors import InvalidInput

policies = st.builds(
    Retry,
    attempts=st.integers(1, 10**6),
    base=st.floats(0, 1e6),
    factor=st.one_of(st.floats(1, 1e9), st.integers(1, 100)),
    cap=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
)
randoms = st.floats(0, 1, exclude_max=True)
MIDDLE = 0.5


def delays(retry: Retry, count: int) -> list[float]:
    return [retry.delay(attempt, MIDDLE) for attempt in range(1, count + 1)]


def test_attempts_count_the_first_one():
    retry = Retry(attempts=4)
    assert [retry.exhausted(attempt) for attempt in (1, 3, 4, 5)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        (Retry(base=1), [1, 2, 4, 8]),
        (Retry(base=30, cap=600), [30, 60, 120, 240, 480, 600, 600]),
        (Retry(base=60, cap=3600, jitter=0.2), [60, 120, 240, 480, 960, 1920, 3600, 3600]),
        (Retry(base=5, factor=1), [5, 5, 5]),
        (Retry(base=0), [0, 0, 0]),
    ],
)
def test_the_policies_that_users_ask_for(retry: Retry, expected: list[float]):
    assert delays(retry, len(expected)) == expected


def test_no_base_is_no_delay_however_often_it_failed():
    assert Retry(base=0).delay(10**6, MIDDLE) == 0


def test_jitter_spreads_the_capped_delay_to_both_sides():
    retry = Retry(base=60, cap=3600, jitter=0.2)
    assert retry.delay(20, 0.0) == pytest.approx(2880)
    assert retry.delay(20, math.nextafter(1, 0)) == pytest.approx(4320)


@given(policies, st.integers(1, 10**9), randoms)
def test_a_delay_stays_within_the_jittered_cap(retry: Retry, attempt: int, random: float):
    delay = retry.delay(attempt, random)
    assert math.isfinite(delay)
    assert 0 <= delay <= retry.cap * (1 + retry.jitter) * (1 + 1e-12)


@given(policies, st.integers(1, 10**9), randoms)
def test_a_later_attempt_never_waits_less(retry: Retry, attempt: int, random: float):
    assert retry.delay(attempt, random) <= retry.delay(attempt + 1, random)


@given(policies)
def test_a_policy_survives_json(retry: Retry):
    assert Retry.from_json(json.loads(json.dumps(retry.to_json()))) == retry


@pytest.mark.parametrize("attempts", [0, -1, 1.5, "3", None])
def test_attempts_must_be_a_whole_number_from_one(attempts: object):
    with pytest.raises(InvalidInput, match="attempts must be a whole number from 1 on"):
        replace(Retry(), attempts=attempts)


@pytest.mark.parametrize(
    ("field", "value", "range_named"),
    [
        ("base", -1, "from 0 to 31,536,000"),
        ("base", math.nan, "from 0 to 31,536,000"),
        ("base", "1", "from 0 to 31,536,000"),
        ("factor", 0.5, "from 1 on"),
        ("factor", math.inf, "from 1 on"),
        ("cap", -1, "from 0 to 31,536,000"),
        ("cap", None, "from 0 to 31,536,000"),
        ("cap", 1e300, "from 0 to 31,536,000"),
        ("jitter", -0.1, "from 0 to 1"),
        ("jitter", 1.1, "from 0 to 1"),
    ],
)
def test_a_number_out_of_range_is_named_with_its_range(field: str, value: object, range_named: str):
    with pytest.raises(InvalidInput) as refused:
        replace(Retry(), **{field: value})
    assert str(refused.value) == f"{field} must be a number {range_named}, not {value!r}."
