"""How long it will take."""

from datetime import UTC, datetime, timedelta
from typing import cast

from apps.heatsync.estimate import seconds_for
from batchmill import BatchRecord

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


class Ended:
    def __init__(self, total: int, seconds: float):
        self.total, self.started_at = total, BEGAN
        self.finished_at = BEGAN + timedelta(seconds=seconds)


def estimate(jobs: int, *batches: Ended) -> int:
    return seconds_for(jobs, cast("list[BatchRecord]", batches), at_once=3)


def test_the_first_batch_is_a_guess() -> None:
    assert (estimate(1), estimate(15)) == (1, 5)


def test_it_goes_by_rounds_of_what_runs_at_once() -> None:
    assert estimate(15, Ended(3, 4.0)) == 20


def test_one_slow_batch_does_not_decide() -> None:
    assert estimate(3, Ended(3, 2.0), Ended(3, 2.0), Ended(6, 600.0)) == 2
