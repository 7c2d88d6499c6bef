"""The original pace, for those who want it: by what is stored, without waiting for it."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.sites.pace import PACES
from apps.sites.phases import PHASES, task_of
from apps.sites.settings import SitesSettings
from apps.sites.tables import SITES
from batchmill import ConfigurationError, Mill
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import Website
from tests.library.tools import later, one, rows, until

TASKS = [task_of(phase) for phase in PHASES]
LIMITS = "select name, slots, rate, period from batchmill.limits where name = any(%s)"
RETRIES = "select name, (retry ->> 'attempts')::int from batchmill.tasks where name = any(%s)"
LEASES = """select extract(epoch from lease_until - started_at)::float8 from batchmill.workers
    order by id desc limit 1"""
DELAYS = """select extract(epoch from j.run_at - r.created_at)::float8, j.state::text
    from sites.runs r join batchmill.jobs j on j.batch_id = r.id"""
STATES = "select state::text from batchmill.batches"


async def test_the_original_pace(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any], website: Website
) -> None:
    files = tmp_path / "artifacts"
    async with Mill(dsn, migrate=True, schemas=[SITES], artifacts=files):
        async with Sites(dsn, files, SITES_PACE="original") as server:
            user = User("default", "", server.url)
            (id,) = await user.begin(website.url)
            found = await user.get(f"/runs/{id}")
            assert (found["status"], found["currentStep"]) == ("not-started", "Waiting to start")
            ((delay, state),) = rows(sql, DELAYS)
            assert (round(delay), state) == (30, "scheduled")
            names = [f"task:{name}" for name in TASKS]
            assert sorted(rows(sql, LIMITS, names)) == sorted((name, 10, 3, 5.0) for name in names)
            assert dict(rows(sql, RETRIES, TASKS)) == dict.fromkeys(TASKS, 3)
            assert one(sql, LEASES)[0] >= 300
        assert website.asked == []
        # The clock of this server is past the delay.
        async with Sites(later(dsn, "31s"), files, SITES_PACE="original"):
            await until(lambda: rows(sql, STATES) == [("completed",)])
    assert website.asked != []


def test_without_a_pace_nothing_waits() -> None:
    pace = PACES[SitesSettings().pace]
    assert (pace.delay, pace.rate) == (0, None)


def test_a_pace_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITES_PACE", "faster")
    with pytest.raises(ConfigurationError, match="SITES_PACE"):
        SitesSettings.read()
