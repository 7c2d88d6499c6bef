"""Values that Python and SQL both contain are the same in both."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from batchmill import submission
from batchmill.domain import quota
from batchmill.domain.job import Claim
from batchmill.domain.priority import PRIORITIES
from batchmill.events import log
from batchmill.store import errors, migrate, topics
from tests.store.engine import Engine

# Two functions raise it and catch it themselves, to undo what they did.
CAUGHT_IN_SQL = "BM012"
LANE_FIELDS = ["lane", *Claim._fields[-5:]]


def sent_by_sql(pattern: str) -> set[str]:
    return set(re.findall(pattern, migrate.functions()))


def test_sql_sends_the_topics_that_python_listens_to() -> None:
    named = [topics.batch_events(UUID(int=0)), topics.batch_end(UUID(int=0))]
    named += [topics.job_end(1), topics.cancels(1), topics.grants(1)]
    made = {topic.partition(":")[0] for topic in named}
    assert sent_by_sql(r"topic\('(\w+):'") == made
    assert sent_by_sql(r"pg_notify\('\w+', '(\w+)'\)") == topics.PLAIN
    assert sent_by_sql(r"pg_notify\('(\w+)'") == {topics.CHANNEL}


def test_every_error_code_of_sql_has_an_exception() -> None:
    raised = sent_by_sql(r"errcode = '(BM\d+)'")
    assert raised == {*errors.OWN, errors.OVER_QUOTA, CAUGHT_IN_SQL}


def test_a_claim_has_the_columns_of_python(engine: Engine) -> None:
    names = "select proargnames from pg_proc where oid = %s::regproc"
    assert engine.value(names, "batchmill.job_columns") == list(Claim._fields[:10])
    assert engine.value(names, "batchmill.lane_columns") == LANE_FIELDS


@pytest.mark.parametrize(
    ("option", "last", "step"),
    [
        ("priority", PRIORITIES[0], -1),
        ("priority", PRIORITIES[-1], 1),
        ("delay", submission.LONGEST, 1),
        ("expires_in", submission.LONGEST, 1),
        ("run_at", datetime(submission.YEARS[0], 1, 1, tzinfo=UTC), -timedelta(seconds=1)),
    ],
)
def test_options_have_the_same_bounds(engine: Engine, option: str, last: Any, step: Any) -> None:
    def check(value: Any) -> None:
        written = value.isoformat() if isinstance(value, datetime) else value
        engine.call("check_options", Jsonb({option: written}))

    check(last)
    with pytest.raises(psycopg.Error):
        check(last + step)


def test_quotas_have_the_same_defaults(engine: Engine) -> None:
    row = engine.rows("select schedules, schedule_seconds, webhooks from batchmill.quota_of('ada')")
    assert row == [(quota.SCHEDULES, quota.SCHEDULE_SECONDS, quota.WEBHOOKS)]


def test_a_channel_renews_its_request_for_notifications_in_time(engine: Engine) -> None:
    engine.task("work")
    engine.call("watch_batch", engine.batch("work", 1))
    watched = engine.value(
        "select extract(epoch from watched_until - batchmill.clock()) from batchmill.batches"
    )
    assert float(watched) / 2 > log.WATCH_SECONDS
