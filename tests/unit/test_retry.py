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


def test_the_first_attempt_counts():
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
def test_common_policies_have_the_expected_delays(retry: Retry, expected: list[float]):
    assert delays(retry, len(expected)) == expected


def test_a_base_of_zero_means_no_delay_for_any_attempt():
    assert Retry(base=0).delay(10**6, MIDDLE) == 0


def test_jitter_shortens_or_extends_the_capped_delay():
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
def test_a_policy_can_be_written_as_json_and_read_back(retry: Retry):
    assert Retry.from_json(json.loads(json.dumps(retry.to_json()))) == retry


def test_the_database_does_not_get_what_earlier_versions_cannot_read():
    assert Retry(max_retry_after=5).to_json() == Retry().to_json()
    assert "max_retry_after" not in Retry().to_json()


@pytest.mark.parametrize(
    ("retry_after", "most", "delay"),
    [(None, 600, 4), (0, 600, 4), (3, 600, 4), (60, 600, 60), (9_000, 600, 600), (60, 0, 4)],
)
def test_a_retry_after_makes_a_delay_longer_up_to_its_own_limit(
    retry_after: float | None, most: float, delay: float
):
    retry = Retry(base=4, cap=4, jitter=0, max_retry_after=most)
    assert retry.delay(1, 0.5, retry_after) == delay


@pytest.mark.parametrize("attempts", [0, -1, 1.5, "3", None])
def test_attempts_must_be_a_whole_number_from_one(attempts: object):
    with pytest.raises(InvalidInput, match="attempts must be a whole number of at least 1"):
        replace(Retry(), attempts=attempts)


@pytest.mark.parametrize(
    ("field", "value", "valid_range"),
    [
        ("base", -1, "from 0 to 31,536,000"),
        ("base", math.nan, "from 0 to 31,536,000"),
        ("base", "1", "from 0 to 31,536,000"),
        ("factor", 0.5, "of at least 1"),
        ("factor", math.inf, "of at least 1"),
        ("cap", -1, "from 0 to 31,536,000"),
        ("cap", None, "from 0 to 31,536,000"),
        ("cap", 1e300, "from 0 to 31,536,000"),
        ("jitter", -0.1, "from 0 to 1"),
        ("jitter", 1.1, "from 0 to 1"),
        ("max_retry_after", -1, "from 0 to 86,400"),
        ("max_retry_after", 86_401, "from 0 to 86,400"),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_range(
    field: str, value: object, valid_range: str
):
    with pytest.raises(InvalidInput) as refused:
        replace(Retry(), **{field: value})
    assert str(refused.value) == f"{field} must be a number {valid_range}, not {value!r}."
