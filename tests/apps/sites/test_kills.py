"""Server processes with their workers are killed throughout many runs.

`SITES_KILLS=40 SITES_SITES=50 pytest -s tests/apps/sites/test_kills.py` kills more often than a
test run has time for, and prints figures.
"""

import asyncio
import itertools
import json
import os
import random
import signal
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.sites.mill import SPARE_SECONDS
from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.backend import logged, misplaced
from tests.apps.sites.crawl.website import Website, html
from tests.apps.sites.llm import (
    RETRY_AFTER,
    SECONDS,
    Models,
    Request,
    most_at_once,
    most_in_window,
)
from tests.apps.sites.sites import Sites, User
from tests.invariants import violations
from tests.library.tools import one, rows, until
from tests.store.ledger import exceeded, open_ledger

KILLS = int(os.environ.get("SITES_KILLS", "5"))
COUNT = int(os.environ.get("SITES_SITES", "6"))
PROMPTS = 7
ANSWERS = COUNT * len(SECONDS) * PROMPTS
# Slots, and starts in a second, of each model.
BOUNDS = {"quick": (2, 18), "steady": (3, 20), "slow": (5, 15)}

# When each answer was recorded, and when each request was granted.
LOGS = """
create table public.recorded (name text, at timestamptz);
create table public.grants (name text, at timestamptz);
create function public.note_recorded() returns trigger language plpgsql as $$
begin
    insert into public.recorded
    select key, clock_timestamp() from jsonb_object_keys(new.checkpoints) as key
    where not coalesce(old.checkpoints ? key, false);
    return null;
end $$;
create trigger note_recorded after update on batchmill.jobs for each row
when (new.checkpoints is distinct from old.checkpoints) execute function public.note_recorded();
create function public.note_grant() returns trigger language plpgsql as $$
begin
    insert into public.grants select p.name, new.granted_at
    from batchmill.providers p where p.id = new.provider_id;
    return null;
end $$;
create trigger note_grant after update on batchmill.holds for each row
when (old.granted_at is null and new.granted_at is not null)
execute function public.note_grant();
"""
RECORDED = "select name, extract(epoch from at)::float8 from public.recorded"
GRANTS = "select name, extract(epoch from at)::float8 from public.grants order by at"
ENDED = "select count(*) from batchmill.batches where finished_at is not null"
# The jobs of a worker, and their highest attempt.
RUNNING = """select count(*), coalesce(max(j.attempt), 0) from batchmill.jobs j
    join batchmill.workers w on w.id = j.worker_id
    where j.state = 'running' and w.state = 'live' and w.name like '%%:' || %s"""


def question(site: int, number: int) -> str:
    return f"Question {number} about bakery {site}?"


def providers(models: Models) -> str:
    return json.dumps(
        [
            {
                "name": name,
                "model": name,
                "baseUrl": f"{models.url}/v1",
                "slots": slots,
                "rate": {"starts": rate, "period": 1},
            }
            for name, (slots, rate) in BOUNDS.items()
        ]
    )


async def begin(user: User, site: Website, number: int) -> str:
    name = f"Bakery {number}"
    head = f"<title>{name}</title>"
    site.pages |= {
        "/": html("/bread", "/visit", head=head, text=f"<h1>{name}</h1>"),
        "/bread": html(text=f"Bread of {name}"),
        "/visit": html(text=f"Visit {name}"),
    }
    prompts = [
        {"id": f"s{number}-q{n}", "text": question(number, n)} for n in range(1, PROMPTS + 1)
    ]
    (id,) = await user.begin(site.url(), prompts=prompts)
    return id


async def kill(servers: list[Sites], sql: psycopg.Connection[Any]) -> list[float]:
    """Kills one of the servers, again and again, each time after more answers were recorded, and
    starts it again. Returns the times."""
    times = list[float]()
    for number in range(KILLS):
        enough = ANSWERS * number // (KILLS + 2)
        await until(lambda enough=enough: has_ended(sql) or is_time(servers, sql, enough))
        await asyncio.sleep(random.uniform(0, 0.1))
        server = next(iter(killable(servers, sql)), None)
        if has_ended(sql) or server is None:
            continue
        await server.end(signal.SIGKILL)
        times.append(time.time())
        await server.start()
    return times


def has_ended(sql: psycopg.Connection[Any]) -> bool:
    return one(sql, ENDED) == (COUNT,)


def is_time(servers: list[Sites], sql: psycopg.Connection[Any], enough: int) -> bool:
    return one(sql, "select count(*) from public.recorded")[0] >= enough and bool(
        killable(servers, sql)
    )


def killable(servers: list[Sites], sql: psycopg.Connection[Any]) -> list[Sites]:
    """The servers that run jobs, the busiest first. The engine lets a job fail that was running in
    four crashes, so a server whose job was running in two of them is left alone."""
    running = {server: one(sql, RUNNING, str(server.pid)) for server in servers}
    found = [server for server, (count, attempt) in running.items() if count and attempt <= 2]
    return sorted(found, key=lambda server: -running[server][0])


@pytest.mark.timeout(1800)
async def test_kills_lose_nothing_and_buy_no_recorded_answer_twice(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    files = tmp_path / "artifacts"
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(Models(tmp_path))
        websites = [await stack.enter_async_context(Website()) for _ in range(COUNT)]
        await stack.enter_async_context(Mill(dsn, migrate=True, schemas=[SITES]))
        settings = {
            "SITES_PROVIDERS": providers(models),
            # A kill interrupts few runs, so that there can be many kills.
            "SITES_POOL": "4",
            "SITES_LEASE_SECONDS": "2",
            "SITES_RETRY_SECONDS": "0.2",
        }
        servers = [Sites(dsn, files, **settings) for _ in range(2)]
        for server in servers:
            await stack.enter_async_context(server)
        open_ledger(sql)
        sql.execute(LOGS.encode())
        user = User("default", "", servers[0].url)
        began = time.time()
        ids = [await begin(user, site, number) for number, site in enumerate(websites)]
        kills = await kill(servers, sql)
        await until(lambda: has_ended(sql))
        seconds = time.time() - began
        runs = [await user.get(f"/runs/{id}") for id in ids]
        reports = [await user.get(f"/runs/{id}/report") for id in ids]
        log = models.log()

    assert [run["status"] for run in runs] == ["completed"] * COUNT
    for number, report in enumerate(reports):
        asked = [question(number, n) for n in range(1, PROMPTS + 1)]
        assert [prompt["text"] for prompt in report["prompts"]] == asked
        states = {each["provider"]: each["state"] for each in report["modelAnalysis"]["providers"]}
        assert states == dict.fromkeys(BOUNDS, "answered")
        assert len(report["modelAnalysis"]["answers"]) == len(BOUNDS) * PROMPTS
        assert len(report["website"]["pages"]) >= 3
    for id in ids:
        assert misplaced(logged(sql, id)) == []
    lost = lost_answers(log, recorded_at(sql), kills)
    late = check_limits(log, sql)
    assert early(log, kills) == []
    assert exceeded(sql) == [] and violations(sql) == []
    assert len(kills) > KILLS // 3
    print_figures(log, kills, lost, seconds, late)


def recorded_at(sql: psycopg.Connection[Any]) -> dict[tuple[str, str], float]:
    """When the answer of a model to a question was recorded. Each was once."""
    found = dict[tuple[str, str], float]()
    for name, at in rows(sql, RECORDED):
        _, model, prompt = name.split(":")
        site, number = (int(part[1:]) for part in prompt.split("-"))
        assert (model, question(site, number)) not in found, name
        found[model, question(site, number)] = at
    assert len(found) == ANSWERS
    return found


def lost_answers(
    log: list[Request], recorded: dict[tuple[str, str], float], kills: list[float]
) -> int:
    """How many answers were bought and not recorded. Each of them was in flight at a kill."""
    bought: defaultdict[tuple[str, str], list[Request]] = defaultdict(list)
    for request in log:
        assert request.came <= recorded[request.model, request.question], request
        if request.status == 200:
            bought[request.model, request.question].append(request)
    assert bought.keys() == recorded.keys()
    lost = 0
    for requests in bought.values():
        for request, following in itertools.pairwise(requests):
            assert any(request.came <= at <= following.came for at in kills), requests
            lost += 1
    return lost


def early(log: list[Request], kills: list[float]) -> list[Request]:
    """The questions that were asked again before the time that the model had asked for. An attempt
    that is killed does not tell the next one."""
    found = list[Request]()
    last: dict[tuple[str, str], Request] = {}
    for request in log:
        before = last.get((request.model, request.question))
        last[request.model, request.question] = request
        if before is not None and before.status == 429:
            was_killed = any(before.came <= at <= request.came for at in kills)
            if not was_killed and request.came < before.ready + RETRY_AFTER:
                found.append(request)
    return found


def check_limits(log: list[Request], sql: psycopg.Connection[Any]) -> float:
    """By the log of the models: never more at once than slots, no request without a grant, and no
    more starts in any second than the rate. Returns the longest time from a grant to its request.
    If requests are later than the limits allow for, the windows are shorter by that much."""
    granted: defaultdict[str, list[float]] = defaultdict(list)
    for name, at in rows(sql, GRANTS):
        granted[name.removeprefix("provider:")].append(at)
    longest = 0.0
    for model, (slots, rate) in BOUNDS.items():
        own = [request for request in log if request.model == model]
        came = [request.came for request in own]
        late = lateness(came, granted[model])
        assert most_at_once((request.came, request.ready) for request in own) <= slots
        assert most_in_window(granted[model], 1 + SPARE_SECONDS) <= rate
        assert most_in_window(came, min(1.0, 1 + SPARE_SECONDS - late)) <= rate
        longest = max(longest, late)
    return longest


def lateness(came: list[float], granted: list[float]) -> float:
    """The longest time from a grant to its request. Each request has a grant of its own, and some
    grants have none: their server was killed. The latest ones that fit are taken."""
    place, late = len(granted), 0.0
    for at in reversed(came):
        place -= 1
        while place >= 0 and granted[place] > at:
            place -= 1
        assert place >= 0, "a request without a grant"
        late = max(late, at - granted[place])
    return late


def print_figures(
    log: list[Request], kills: list[float], lost: int, seconds: float, late: float
) -> None:
    print(f"\n{COUNT} sites, {len(kills)} kills, {seconds:.0f} s, {ANSWERS} recorded answers")
    statuses = {code: sum(it.status == code for it in log) for code in (200, 429, 500)}
    print(f"requests: {len(log)} {statuses}; answers that were in flight at a kill: {lost}")
    print(f"longest time from a grant to its request: {late:.3f} s")
    for model, (slots, rate) in BOUNDS.items():
        own = [request for request in log if request.model == model]
        at_once = most_at_once((request.came, request.ready) for request in own)
        starts = most_in_window((request.came for request in own), 1)
        print(f"{model}: {at_once} of {slots} at once, {starts} of {rate} starts in a second")
