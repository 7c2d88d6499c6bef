"""Visitors take turns, and none of them uses up what is meant for all."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from apps.heatsync.samples import Layout, draw, make_meet
from tests.apps.heatsync.conftest import HeatSync, Start
from tests.apps.heatsync.sheets import SHEETS, SWIMMER, fifteen
from tests.apps.heatsync.web import serving
from tests.invariants import violations
from tests.library.tools import one, rows, until
from tests.notify.mailbox import Mailbox

FIRST = next(iter(SHEETS.items()))
LETTERS = str.maketrans("0123456789", "ABCDEFGHJK")
PROXY = {"BATCHMILL_TRUSTED_PROXIES": "127.0.0.0/8"}
STARTS = """select b.tenant from batchmill.events e join batchmill.batches b on b.id = e.batch_id
    where e.type = 'job_started' and e.data ->> 'task' = 'heatsync.extract' order by e.at, e.number"""

# How many sheets of other batches were begun between a batch's submit and its own first one.
BEGUN_MEANWHILE = """with starts as (
        select batch_id, at from batchmill.events
        where type = 'job_started' and data ->> 'task' = 'heatsync.extract')
    select count(*) from starts s join batchmill.batches mine on s.batch_id <> mine.id
    where mine.id = %s and s.at between mine.created_at
        and (select min(at) from starts where batch_id = mine.id)"""


def at(address: str) -> dict[str, Any]:
    return {"X-Forwarded-For": address}


class Dripping:
    """A server that sends a byte now and then, for as long as somebody reads."""

    def __init__(self) -> None:
        self.port = 0
        self.clients = 0

    def urls(self, count: int) -> list[str]:
        return [f"http://127.0.0.1:{self.port}/{self.port}-{n}.pdf" for n in range(count)]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.clients += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n%PDF-1.7")
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.2)
        except ConnectionError:
            pass
        finally:
            self.clients -= 1
            writer.close()


@asynccontextmanager
async def dripping() -> AsyncIterator[Dripping]:
    site = Dripping()
    server = await asyncio.start_server(site.handle, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


async def test_slow_downloads_of_others_keep_nobody_waiting(start: Start) -> None:
    """Four visitors fill the slots of downloads; another one's file does not need any of them."""
    async with (
        dripping() as site,
        start(**PROXY, HEATSYNC_ALLOWED=f"127.0.0.1:{site.port}") as heatsync,
    ):
        for n in range(4):
            await heatsync.batch(SWIMMER, urls=site.urls(15), **at(f"198.51.100.{n}"))
        await until(lambda: site.clients == 10)
        batch = await heatsync.batch(SWIMMER, FIRST, **at("203.0.113.1"))
        assert (await heatsync.results(batch))["events"]
        # They were all still at it.
        assert site.clients > 0


async def test_one_visitor_has_three_downloads_at_once_however_many_batches(
    start: Start,
) -> None:
    async with (
        dripping() as site,
        start(**PROXY, HEATSYNC_ALLOWED=f"127.0.0.1:{site.port}") as heatsync,
    ):
        for _ in range(4):
            await heatsync.batch(SWIMMER, urls=site.urls(5), **at("198.51.100.1"))
        await until(lambda: site.clients == 3)
        batch = await heatsync.batch(SWIMMER, urls=site.urls(1), **at("203.0.113.1"))
        await until(lambda: site.clients == 4)
        await heatsync.post(f"/api/batch/{batch}/cancel")


async def test_visitors_take_turns_however_many_batches_one_has(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    """Nothing is read until all have handed in; then one sheet at a time."""
    async with start(**PROXY) as heatsync:
        sql.execute("select batchmill.set_limit('task:heatsync.extract', 0, null, null, null)")
        many = fifteen()
        for name, pdf in many:
            await heatsync.batch(SWIMMER, (name, pdf), **at("198.51.100.1"))
        waiting = "select count(*) from batchmill.jobs where task = 'heatsync.extract'"
        await until(lambda: one(sql, waiting) == (15,))
        batch = await heatsync.batch(SWIMMER, ("b.pdf", FIRST[1]), **at("203.0.113.1"))
        await until(lambda: one(sql, waiting) == (16,))
        sql.execute("select batchmill.set_limit('task:heatsync.extract', 1, null, null, null)")
        await heatsync.results(batch)
        (theirs,) = one(sql, f"select tenant from batchmill.batches where id = '{batch}'")
        assert theirs in [tenant for (tenant,) in rows(sql, STARTS)][:3]


async def test_heavy_sheets_of_one_visitor_keep_another_waiting_for_two_rounds_at_most(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    """All slots are taken by sheets of many pages, and more wait in batches of their own."""
    pdf = draw(make_meet(1, events=40), Layout(columns=1))
    async with start(**PROXY) as heatsync:
        sql.execute("select batchmill.set_limit('task:heatsync.extract', 3, null, null, null)")
        theirs = [
            await heatsync.batch(SWIMMER, (f"{n}.pdf", pdf + b"%% %d" % n), **at("198.51.100.1"))
            for n in range(15)
        ]
        batch = await heatsync.batch(SWIMMER, FIRST, **at("203.0.113.1"))
        assert (await heatsync.results(batch))["events"]
        for id in theirs:
            await heatsync.post(f"/api/batch/{id}/cancel")
    assert one(sql, BEGUN_MEANWHILE, batch)[0] <= 6
    states = "select count(*) from batchmill.batches where state = 'cancelled'"
    assert one(sql, states)[0] > 0, "None of them was heavy."


async def test_a_visitor_is_a_tenant_whose_name_does_not_tell_the_address(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    async with start(**PROXY) as heatsync:
        addresses = ["198.51.100.1", "198.51.100.1", "198.51.100.2", "2001:db8::1", "2001:db8::2"]
        ids = [await heatsync.batch(SWIMMER, FIRST, **at(address)) for address in addresses]
        # Whoever has the link sees the batch.
        assert [(await heatsync.get(f"/api/batch/{id}"))["success"] for id in ids] == [True] * 5
    found = dict(rows(sql, "select id::text, tenant from batchmill.batches"))
    tenants = [found[id] for id in ids]
    assert [tenants.index(tenant) for tenant in tenants] == [0, 0, 2, 3, 3]
    assert all(tenant.startswith("default/") for tenant in tenants)
    assert not any(address in tenant for tenant in tenants for address in addresses)
    assert (
        rows(sql, "select distinct tenant from batchmill.artifacts where tenant = 'default'") == []
    )


async def test_files_of_all_visitors_count_against_the_quota_of_the_default_tenant(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('default', 1000000)")
    async with start(**PROXY) as heatsync:
        name, pdf = FIRST
        large = [(f"{n}-{name}", pdf + b"% " + bytes(300_000)) for n in range(15)]
        answer = await heatsync.submit(SWIMMER, *large, **at("198.51.100.1"))
        assert (answer.status_code, answer.json()["error"]) == (507, "STORAGE_EXCEEDED")
        assert (await heatsync.submit(SWIMMER, FIRST, **at("198.51.100.2"))).status_code == 200


def heavy_files(count: int) -> dict[str, bytes]:
    """Sheets of 0.3 MB, of which none is like another."""
    return {f"/{n}.pdf": FIRST[1] + b"%% %d" % n + bytes(300_000) for n in range(count)}


def stored(sql: psycopg.Connection[Any]) -> int:
    assert violations(sql) == []
    return one(sql, "select coalesce(sum(size), 0)::bigint from batchmill.artifacts")[0]


async def test_visitors_who_upload_at_once_cannot_pass_the_quota_together(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('default', 1000000)")
    async with start(**PROXY) as heatsync:
        answers = await asyncio.gather(
            *(
                heatsync.submit(SWIMMER, (name, pdf), **at(f"198.51.100.{n}"))
                for n, (name, pdf) in enumerate(heavy_files(12).items())
            )
        )
        found = sorted((answer.status_code, answer.json().get("error")) for answer in answers)
        accepted = [answer for answer in found if answer == (200, None)]
        assert 1 <= len(accepted) <= 3
        assert found == accepted + [(507, "STORAGE_EXCEEDED")] * (12 - len(accepted))
    assert stored(sql) <= 1_000_000


async def test_what_is_downloaded_counts_against_the_quota_of_all_visitors(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('default', 1000000)")
    async with (
        serving(heavy_files(8)) as web,
        start(**PROXY, HEATSYNC_ALLOWED=web.address) as heatsync,
    ):
        urls = [web.url + path for path in web.answers]
        batches = [
            await heatsync.batch(SWIMMER, urls=urls[:4], **at("198.51.100.1")),
            await heatsync.batch(SWIMMER, urls=urls[4:], **at("198.51.100.2")),
        ]
        codes = []
        for batch in batches:
            await heatsync.results(batch)
            jobs = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
            codes += [job["errorCode"] for job in jobs]
    assert 1 <= codes.count(None) <= 3
    assert codes.count("STORAGE_EXCEEDED") == 8 - codes.count(None)
    # Nobody asks for a file twice that there is no room for.
    assert len(web.asked) == 8
    assert stored(sql) <= 1_000_000


def mailing(mailbox: Mailbox) -> dict[str, str]:
    return {
        "BATCHMILL_SMTP_URL": mailbox.url,
        "BATCHMILL_MAIL_FROM": "HeatSync <heats@club.example>",
        "BATCHMILL_PUBLIC_URL": "https://club.example",
    }


async def test_a_stranger_gets_few_mails_from_however_many_batches(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sent = """select count(*) from batchmill.jobs where task = 'batchmill.email'"""
    async with Mailbox() as mailbox, start(**PROXY, **mailing(mailbox)) as heatsync:
        answers = []
        for n in range(8):
            batch = await heatsync.batch(SWIMMER, FIRST, **at(f"198.51.100.{n}"))
            await heatsync.results(batch)
            answer = await heatsync.post(
                f"/api/batch/{batch}/notify", {"email": "stranger@example.com"}
            )
            answers.append((answer.status_code, answer.json().get("error")))
            await until(lambda: one(sql, sent) == (0,))
    assert answers == [(200, None)] * 5 + [(429, "QUOTA_EXCEEDED")] * 3
    assert len(mailbox.mails) == 5


async def test_share_codes_cannot_be_guessed_for_long(start: Start) -> None:
    async with start(**PROXY) as heatsync, heatsync.client() as client:
        batch = await heatsync.batch(SWIMMER, FIRST)
        code = (await heatsync.results(batch))["sources"][0]["resultCode"]
        eve = at("198.51.100.1")
        statuses = [
            (
                await client.get(f"/api/result/AAAAAA{n:02}".replace("0", "A"), headers=eve)
            ).status_code
            for n in range(22)
        ]
        assert statuses == [404] * 20 + [429] * 2
        answer = await client.get(f"/api/result/{code}", headers=eve)
        assert (answer.status_code, answer.json()["error"]) == (429, "TOO_MANY_REQUESTS")
        assert int(answer.headers["retry-after"]) > 0
        for _ in range(30):
            answer = await client.get(f"/api/result/{code}", headers=at("203.0.113.1"))
            assert answer.status_code == 200


async def test_share_codes_cannot_be_guessed_in_parallel_either(start: Start) -> None:
    async with start(**PROXY) as heatsync, heatsync.client() as client:
        codes = [f"{n:08}".translate(LETTERS) for n in range(100)]
        answers = await asyncio.gather(*(client.get(f"/api/result/{code}") for code in codes))
    assert Counter(each.status_code for each in answers) == {404: 20, 429: 80}


async def test_pages_of_meets_are_fetched_so_often_for_one_visitor(start: Start) -> None:
    async with start(**PROXY) as heatsync, heatsync.client() as client:
        body = {"url": "http://127.0.0.1:1/"}
        statuses = [
            (await client.post("/api/meets/discover", json=body, headers=at(address))).status_code
            for address in [*["198.51.100.1"] * 11, "203.0.113.1"]
        ]
    assert statuses == [422] * 10 + [429, 422]


async def test_old_visitors_are_forgotten(heatsync: HeatSync, sql: psycopg.Connection[Any]) -> None:
    await heatsync.results(await heatsync.batch(SWIMMER, FIRST))
    sql.execute("update heatsync.visitors set used_at = used_at - interval '31 days'")
    sql.execute("select batchmill.enqueue('heatsync.forget', 'null')")
    await until(lambda: rows(sql, "select from heatsync.visitors") == [])
