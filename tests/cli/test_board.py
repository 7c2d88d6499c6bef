"""The board computes the progress of a batch from its events."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console

from batchmill import Event
from batchmill.cli.bars import Bar, draw_board
from batchmill.cli.board import Board
from batchmill.domain.batch import BatchState

START = datetime(2030, 1, 1, tzinfo=UTC)
ERROR = {"code": "gone", "message": "It is gone."}


class Log:
    def __init__(self, total: int):
        self.board = Board(total, BatchState.PENDING)
        self._number = 0
        self.add("batch_started", task="fetch", total=total)

    def add(self, type: str, job_id: int | None = None, **data: Any) -> None:
        self._number += 1
        at = START + timedelta(seconds=self._number)
        self.board.see(Event(uuid4(), self._number, type, job_id, job_id, data, at))


@pytest.fixture
def log() -> Log:
    return Log(total=3)


def test_a_job_is_counted_in_each_stage_it_leaves(log: Log) -> None:
    log.add("job_started", 1, task="fetch", attempt=1)
    assert log.board.stages["fetch"].running == 1
    log.add("job_stage", 1, **{"from": "fetch"}, task="read")
    log.add("job_started", 1, task="read", attempt=1)
    log.add("job_progress", 1, stage="half", percent=50)
    log.add("job_completed", 1, task="read", attempt=1)
    fetch, read = log.board.stages.values()
    assert (fetch.advanced, fetch.left, fetch.running) == (1, 1, 0)
    assert (read.completed, read.left, read.running) == (1, 1, 0)
    assert (log.board.completed, log.board.ended) == (1, 1)
    assert log.board.state is BatchState.PROCESSING
    assert log.board.seconds == 5


def test_a_later_stage_does_not_expect_jobs_that_ended_in_an_earlier_stage(log: Log) -> None:
    log.add("job_failed", 1, task="fetch", attempt=1, **ERROR)
    log.add("job_stage", 2, **{"from": "fetch"}, task="read")
    fetch, read = log.board.stages.values()
    assert log.board.expected(fetch) == 3
    assert log.board.expected(read) == 2


def test_a_state_sync_event_replaces_the_counts(log: Log) -> None:
    log.add("job_started", 1, task="fetch", attempt=1)
    counts = {"completed": 1, "failed": 1, "cancelled": 0}
    log.add("state_sync", batch={"state": "processing", "task": "fetch"} | counts, jobs=[])
    log.add("job_completed", 3, task="read", attempt=1)
    assert (log.board.completed, log.board.failed, log.board.ended) == (2, 1, 3)
    assert log.board.stages["fetch"].running == 0


def test_an_automatic_retry_is_counted_and_a_manual_retry_removes_the_failure(log: Log) -> None:
    log.add("job_retrying", 1, task="fetch", attempt=1, delay=1, **ERROR)
    log.add("job_failed", 1, task="fetch", attempt=2, **ERROR)
    log.add("job_failed", 2, task="fetch", attempt=1, **ERROR)
    assert (log.board.retries, log.board.failed) == (1, 2)
    log.add("job_retrying", 1, task="fetch", manual=True)
    assert (log.board.retries, log.board.failed) == (1, 1)
    assert [failure.job_id for failure in log.board.failures] == [2]


@pytest.mark.parametrize("type", ["job_snoozed", "job_released", "job_retrying", "job_cancelled"])
def test_a_job_whose_attempt_ended_is_not_running(log: Log, type: str) -> None:
    log.add("job_started", 1, task="fetch", attempt=1)
    log.add(type, 1, task="fetch", attempt=1)
    assert log.board.stages["fetch"].running == 0


def test_only_the_newest_failures_are_kept(log: Log) -> None:
    for job in range(20):
        log.add("job_failed", job, task="fetch", attempt=1, **ERROR)
    assert [failure.job_id for failure in log.board.failures] == [15, 16, 17, 18, 19]


@pytest.mark.parametrize(
    ("parts", "drawn"),
    [
        ((), "----------"),
        (((5, ""),), "━━━━━-----"),
        (((999, ""),), "━━━━━━━━━-"),
        (((500, ""), (500, "")), "━━━━━━━━━━"),
        (((2_000, ""),), "━━━━━━━━━━"),
    ],
)
def test_a_bar_is_full_only_when_all_jobs_have_ended(parts: Any, drawn: str) -> None:
    total = 10 if parts == ((5, ""),) else 1_000
    assert drawn_text(Bar(parts, total), width=10).replace("─", "-").strip() == drawn


def test_markup_in_error_messages_is_shown_unchanged(log: Log) -> None:
    log.add("job_failed", 1, task="fetch", attempt=1, code="x", message="[bold]:smile:")
    assert "[bold]:smile:" in drawn_text(draw_board(log.board, "Batch", 0), width=80)


def test_the_board_shows_how_long_there_was_no_event(log: Log) -> None:
    assert "no events for 12 s" in drawn_text(draw_board(log.board, "Batch", 12), width=80)


def drawn_text(drawn: Any, width: int) -> str:
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(drawn)
    return capture.get()
