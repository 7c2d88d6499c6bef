"""A worker process is killed while answers are in flight."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import psycopg
import pytest

from apps.sites.answers import ProviderAnswers
from tests.apps.sites.providers.endpoint import Endpoint
from tests.apps.sites.providers.worker import PROMPTS, mill_on
from tests.library.tools import one, until
from tests.streams.processes import ROOT

SLOTS = 2
STOPS = (2, 4, 6)
RECORDED = """select coalesce(array_agg(name), '{}') from batchmill.jobs,
    jsonb_object_keys(checkpoints) as name"""


@contextmanager
def worker(dsn: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.apps.sites.providers.worker", dsn]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def recorded(sql: psycopg.Connection) -> set[str]:
    return set(one(sql, RECORDED)[0])


async def test_no_recorded_answer_is_bought_twice(
    dsn: str, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each kill, as many answers are in flight as the provider has slots. The window that the
    module documents is exactly these."""
    async with AsyncExitStack() as stack:
        endpoints = [await stack.enter_async_context(Endpoint()) for _ in range(3)]
        providers = [
            {"name": f"p{n}", "baseUrl": it.url, "model": "small", "slots": SLOTS}
            for n, it in enumerate(endpoints)
        ]
        monkeypatch.setenv("SITES_PROVIDERS", json.dumps(providers))
        mill = await stack.enter_async_context(mill_on(dsn))
        batch = await mill.submit("analyse", [None])
        lost = Counter[str]()
        for stop in STOPS:
            lost += await kill_at(stop, dsn, sql, endpoints)
        with worker(dsn):
            (found,) = (await batch.results()).values
    assert [ProviderAnswers.model_validate(it).state for it in found] == ["answered"] * 3
    bought = Counter({prompt.text: len(endpoints) for prompt in PROMPTS}) + lost
    assert sum((Counter(it.asked) for it in endpoints), Counter()) == bought
    assert 0 < lost.total() <= len(STOPS) * len(endpoints) * SLOTS


async def kill_at(
    stop: int, dsn: str, sql: psycopg.Connection, endpoints: list[Endpoint]
) -> Counter[str]:
    """Kills a worker after every endpoint has answered `stop` questions and their answers are
    recorded. Returns the questions that were in flight."""
    for endpoint in endpoints:
        endpoint.stop_after(stop)
    with worker(dsn) as process:
        await until(lambda: len(recorded(sql)) == stop * len(endpoints))
        await until(lambda: all(len(it.held) == min(SLOTS, 7 - stop) for it in endpoints))
        await asyncio.to_thread(process.kill)
    held = Counter(question for endpoint in endpoints for question in endpoint.held)
    for endpoint in endpoints:
        endpoint.drop()
    return held
