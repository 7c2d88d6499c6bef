"""What waits, runs and has ended, for each phase and in total."""

import statistics
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.sites.phases import PHASES
from apps.sites.statistics import numbers, total
from apps.sites.tables import SITES
from batchmill import Mill, TaskStatistics
from tests.apps.sites.backend import refused, until_status
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import Website
from tests.library.tools import later, one, rows

EVENTS = """select batch_id::text, type, coalesce(data ->> 'from', data ->> 'task'), at
    from batchmill.events where type in ('job_started', 'job_stage', 'job_completed', 'job_failed')
    order by batch_id, number"""
OLDEST = "select extract(epoch from batchmill.clock() - min(run_at))::float8 from batchmill.jobs"
COUNTS = ("waiting", "running", "completed", "failed", "cancelled")


def run_seconds(sql: psycopg.Connection[Any]) -> dict[str, list[float]]:
    """How long each phase ran, from the events."""
    found = dict[str, list[float]]()
    started: datetime | None = None
    for _, type, task, at in rows(sql, EVENTS):
        if type == "job_started":
            started = at
        elif started is not None:
            seconds = (at - started).total_seconds()
            found.setdefault(task.removeprefix("sites."), []).append(seconds)
    return found


def counts(found: dict[str, Any]) -> tuple[int, ...]:
    return tuple(found[name] for name in COUNTS)


async def test_phases_are_counted_and_timed(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any], website: Website
) -> None:
    files = tmp_path / "artifacts"
    async with (
        Mill(dsn, migrate=True, schemas=[SITES], artifacts=files) as mill,
        Sites(dsn, files) as server,
    ):
        user = User("default", "", server.url)
        empty = await user.get("/statistics")
        assert [counts(each) for each in (*empty["phases"], empty["total"])] == [(0,) * 5] * 4
        for _ in range(3):
            await user.completed(website.url)
        (failed,) = await user.begin(f"{website.url}/nothing.html")
        assert (await user.ended(failed))["status"] == "failed"
        # One is cancelled while it waits for the second phase.
        await mill.limits.pause("task:sites.prompt-forming")
        (cancelled,) = await user.begin(website.url)
        async for name, data in user.events(cancelled):
            if (name, data["status"]) == ("phase", "prompt-forming"):
                break
        await user.send("POST", f"/runs/{cancelled}/cancel")
        # One runs, and two wait.
        website.gate.clear()
        (running,) = await user.begin(website.url)
        await until_status(user, running, "website-analysis")
        await mill.limits.pause("task:sites.website-analysis")
        waiting = await user.begin(website.url, f"{website.url}/bread.html")
        (oldest,) = one(sql, OLDEST + " where state <> 'running'")
        found = await user.get("/statistics?minutes=10")
        (still_oldest,) = one(sql, OLDEST + " where state <> 'running'")
        for id in (running, *waiting):
            await user.send("POST", f"/runs/{id}/cancel")
        website.gate.set()

    assert [phase["phase"] for phase in found["phases"]] == [*PHASES]
    assert [counts(phase) for phase in found["phases"]] == [
        (2, 1, 4, 1, 0),
        (0, 0, 3, 0, 1),
        (0, 0, 3, 0, 0),
    ]
    assert counts(found["total"]) == (2, 1, 10, 1, 1)
    for shown in (found["phases"][0], found["total"]):
        assert oldest <= shown["oldestSeconds"] <= still_oldest
    assert [phase["oldestSeconds"] for phase in found["phases"][1:]] == [None, None]
    assert found["total"]["perMinute"] == 1.1
    times = run_seconds(sql)
    for phase in found["phases"]:
        ran = sorted(times[phase["phase"]])
        assert phase["runSeconds"]["p50"] == pytest.approx(statistics.median_low(ran))
        assert phase["runSeconds"]["p95"] == pytest.approx(ran[-1])
        assert 0 <= phase["waitSeconds"]["p50"] <= phase["waitSeconds"]["p95"]
    everything = sorted(seconds for ran in times.values() for seconds in ran)
    assert found["total"]["runSeconds"]["p95"] == pytest.approx(everything[-1])

    async with Mill(later(dsn, "11m"), schemas=[SITES]) as ahead:
        (nothing,) = await SITES.rows(ahead, "phase_times", minutes=10)
        assert (nothing["completed"], nothing["failed"], nothing["cancelled"]) == (0, 0, 0)


@pytest.mark.parametrize("minutes", ["0", "1441", "x", "-1"])
async def test_a_window_that_is_not_valid(sites: SharedSites, minutes: str) -> None:
    user = await sites.user()
    answer = await user.send("GET", f"/statistics?minutes={minutes}")
    assert refused(answer) == (422, "invalid_request")


def test_a_phase_without_any_job_has_zeros() -> None:
    found = numbers(None, None, 60)
    assert counts(found) == (0,) * 5
    assert (found["oldestSeconds"], found["perMinute"]) == (None, 0)
    assert found["waitSeconds"] == found["runSeconds"] == {"p50": None, "p95": None}
    assert total([], None, 60) == found


def test_the_total_has_the_oldest_of_all_phases() -> None:
    def waits(seconds: float | None) -> TaskStatistics:
        known = dict.fromkeys(TaskStatistics.__dataclass_fields__, 0)
        return TaskStatistics(**(known | {"name": "x", "oldest_ready_seconds": seconds}))  # type: ignore[arg-type]

    assert total([waits(None), waits(3), waits(7)], None, 1)["oldestSeconds"] == 7
    assert total([waits(None)], None, 1)["oldestSeconds"] is None
