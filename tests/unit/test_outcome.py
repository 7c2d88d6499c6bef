import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.domain import outcome
from batchmill.domain.failure import DETAIL_LENGTH, Failure
from batchmill.domain.job import Claim
from batchmill.domain.outcome import Snooze
from batchmill.domain.retry import Retry
from batchmill.errors import InvalidInput

MIDDLE = 0.5
RETRY = Retry(attempts=3, base=10, factor=2, jitter=0)


def claim(attempt: int = 1) -> Claim:
    return Claim(1, 2, 3, attempt, task="task")


def failure(*, transient: bool = True, retry_after: float | None = None) -> Failure:
    return Failure("busy", transient, "Come back later.", "503 at line 7", retry_after)


def test_a_transient_failure_is_retried_after_the_delay_of_the_policy():
    ended = outcome.failed(claim(2), failure(), RETRY, MIDDLE)
    assert (ended.kind, ended.delay) == ("retry", 20)


def test_the_last_attempt_fails_the_job():
    ended = outcome.failed(claim(3), failure(), RETRY, MIDDLE)
    assert (ended.kind, ended.delay) == ("failed", None)


def test_a_permanent_failure_is_not_retried():
    assert outcome.failed(claim(), failure(transient=False), RETRY, MIDDLE).kind == "failed"


@pytest.mark.parametrize(("retry_after", "delay"), [(5, 10), (60, 60), (0, 10), (9_000, 9_000)])
def test_retry_after_extends_the_delay_beyond_the_cap_and_never_shortens_it(
    retry_after: float, delay: float
):
    assert outcome.failed(claim(), failure(retry_after=retry_after), RETRY, MIDDLE).delay == delay


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_a_job_gets_exactly_the_attempts_of_its_policy(attempts: int, attempt: int, random: float):
    ended = outcome.failed(claim(attempt), failure(), Retry(attempts=attempts), random)
    assert (ended.kind == "retry") == (attempt < attempts)


def test_an_error_has_a_message_for_users_and_a_detail_for_operators():
    ended = outcome.failed(claim(), failure(), RETRY, MIDDLE)
    assert ended.error == {
        "code": "busy",
        "message": "Come back later.",
        "detail": "503 at line 7",
        "transient": True,
    }


def test_a_lost_worker_counts_as_a_transient_failure():
    assert outcome.lost(claim(1), RETRY, MIDDLE).kind == "retry"
    last = outcome.lost(claim(3), RETRY, MIDDLE)
    assert last.kind == "failed"
    assert last.error and last.error["code"] == "worker_lost"


def test_an_unstorable_result_fails_the_job_with_a_storable_detail():
    completed = outcome.completed(claim(), "1")._replace(usage={"tokens": Decimal(1)})
    ended = outcome.unstorable(completed, "NUL \0 and \ud800" + "x" * 100_000)
    assert (ended.kind, ended.usage) == ("failed", completed.usage)
    assert ended.error is not None
    assert len(ended.error["detail"]) <= DETAIL_LENGTH
    ended.error["detail"].encode()
    assert "\0" not in ended.error["detail"]


@pytest.mark.parametrize("seconds", [-1, math.inf, math.nan, 86_400 * 367])
def test_a_snooze_with_invalid_seconds_is_refused(seconds: float):
    with pytest.raises(InvalidInput, match="A snooze must be from 0 seconds to 1 year, not"):
        Snooze(seconds)
