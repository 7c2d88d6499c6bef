"""Visitors take turns, and one visitor cannot use up shared resources."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg

from apps.heatsync.samples import Layout, draw, make_meet
from tests.apps.heatsync.conftest import PROXY, Start, Visitor, new_address, sent_from
from tests.apps.heatsync.sheets import BAD, SHEETS, SWIMMER, fifteen, fresh
from tests.apps.heatsync.web import serving
from tests.invariants import violations
from tests.library.tools import one, rows, until

FIRST = next(iter(SHEETS.items()))
LETTERS = str.maketrans("0123456789", "ABCDEFGHJK")
STARTS = """select b.tenant from batchmill.events e join batchmill.batches b on b.id = e.batch_id
    where e.type = 'job_started' and e.data ->> 'task' = 'heatsync.extract' and b.tenant = any (%s)
    order by e.at, e.number"""

# The number of sheets of other batches that started between a batch's submit and its first start.
STARTED_BEFORE = """with starts as (
        select batch_id, at from batchmill.events
        where type = 'job_started' and data ->> 'task' = 'heatsync.extract')
    select count(*) from starts s join batchmill.batches mine on s.batch_id <> mine.id
    where mine.id = %s and s.at between mine.created_at
        and (select min(at) from starts where batch_id = mine.id)"""


class SlowServer:
    """A server that sends one byte every 0.2 seconds until the client disconnects."""

    def __init__(self, port: int) -> None:
        self.port = port
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
async def slow_server(port: int) -> AsyncIterator[SlowServer]:
    site = SlowServer(port)
    server = await asyncio.start_server(site.handle, "127.0.0.1", port)
    try:
        yield site
    finally:
        server.close()


async def test_slow_downloads_of_other_visitors_do_not_delay_an_upload(heatsync: Visitor) -> None:
    """Other visitors use all download slots. An uploaded file does not need one."""
    async with slow_server(heatsync.web_port) as site:
        for _ in range(4):
            await heatsync.batch(SWIMMER, urls=site.urls(15), **sent_from(new_address()))
        await until(lambda: site.clients == 5)
        batch = await heatsync.batch(SWIMMER, ("a.pdf", fresh(FIRST[1])))
        assert (await heatsync.results(batch))["events"]
        # The slow downloads have not ended.
        assert site.clients > 0


async def test_one_visitor_has_at_most_three_downloads_at_once_in_all_batches(
    heatsync: Visitor,
) -> None:
    async with slow_server(heatsync.web_port) as site:
        for _ in range(4):
            await heatsync.batch(SWIMMER, urls=site.urls(5))
        await until(lambda: site.clients == 3)
        await heatsync.batch(SWIMMER, urls=site.urls(1), **sent_from(new_address()))
        await until(lambda: site.clients == 4)


@contextmanager
def extractions(sql: psycopg.Connection[Any]) -> Iterator[Callable[[int], object]]:
    """Yields a function that sets how many sheets are read at once. Removes the limit."""
    change = "select batchmill.set_limit('task:heatsync.extract', %s, null, null, null, %s)"
    try:
        yield lambda count: sql.execute(change, [count, False])
    finally:
        sql.execute(change, [None, True])


async def test_visitors_take_turns_whatever_the_number_of_their_batches(heatsync: Visitor) -> None:
    """Reading starts after all sheets are submitted, with one sheet at a time."""
    sql = heatsync.sql
    with extractions(sql) as set_limit:
        set_limit(0)
        for name, pdf in fifteen():
            await heatsync.batch(SWIMMER, (name, pdf))
        waiting = "select count(*) from batchmill.jobs where task = 'heatsync.extract'"
        await until(lambda: one(sql, waiting) == (15,))
        batch = await heatsync.batch(
            SWIMMER, ("b.pdf", fresh(FIRST[1])), **sent_from(new_address())
        )
        await until(lambda: one(sql, waiting) == (16,))
        set_limit(1)
        await heatsync.results(batch)
        (their_tenant,) = one(sql, "select tenant from batchmill.batches where id = %s", batch)
        started = rows(sql, STARTS, [heatsync.tenant, their_tenant])
        assert (their_tenant,) in started[:3]


async def test_large_sheets_of_one_visitor_delay_another_by_at_most_two_rounds(
    heatsync: Visitor,
) -> None:
    """Sheets with many pages use all slots, and more of them wait in separate batches."""
    pdf = draw(make_meet(1, events=40), Layout(columns=1))
    sql = heatsync.sql
    with extractions(sql) as set_limit:
        set_limit(3)
        their_batches = [await heatsync.batch(SWIMMER, (f"{n}.pdf", fresh(pdf))) for n in range(15)]
        batch = await heatsync.batch(
            SWIMMER, ("b.pdf", fresh(FIRST[1])), **sent_from(new_address())
        )
        assert (await heatsync.results(batch))["events"]
        for id in their_batches:
            await heatsync.post(f"/api/batch/{id}/cancel")
    assert one(sql, STARTED_BEFORE, batch)[0] <= 6
    assert heatsync.count("batches", "state = 'cancelled'") > 0, (
        "All large sheets were read before the cancel, so the test proves nothing."
    )


async def test_a_visitor_is_a_tenant_whose_name_does_not_contain_the_address(
    heatsync: Visitor,
) -> None:
    addresses = ["198.51.100.1", "198.51.100.1", "198.51.100.2", "2001:db8::1", "2001:db8::2"]
    ids = [await heatsync.batch(SWIMMER, FIRST, **sent_from(address)) for address in addresses]
    # Anyone who has the link can see the batch.
    assert [(await heatsync.get(f"/api/batch/{id}"))["success"] for id in ids] == [True] * 5
    tenant_of = dict(rows(heatsync.sql, "select id::text, tenant from batchmill.batches"))
    tenants = [tenant_of[id] for id in ids]
    assert [tenants.index(tenant) for tenant in tenants] == [0, 0, 2, 3, 3]
    assert all(tenant.startswith("default/") for tenant in tenants)
    assert not any(address in tenant for tenant in tenants for address in addresses)
    of_all = "select distinct tenant from batchmill.artifacts where tenant = 'default'"
    assert rows(heatsync.sql, of_all) == []


async def test_files_of_all_visitors_count_against_the_quota_of_the_default_tenant(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('default', 1000000)")
    async with start(**PROXY) as heatsync:
        name, pdf = FIRST
        large = [(f"{n}-{name}", pdf + b"% " + bytes(300_000)) for n in range(15)]
        answer = await heatsync.submit(SWIMMER, *large, **sent_from("198.51.100.1"))
        assert (answer.status_code, answer.json()["error"]) == (507, "STORAGE_EXCEEDED")
        assert (
            await heatsync.submit(SWIMMER, FIRST, **sent_from("198.51.100.2"))
        ).status_code == 200


def large_files(count: int) -> dict[str, bytes]:
    """Sheets of 0.3 MB with different checksums."""
    return {f"/{n}.pdf": FIRST[1] + b"%% %d" % n + bytes(300_000) for n in range(count)}


def stored(sql: psycopg.Connection[Any]) -> int:
    assert violations(sql) == []
    return one(sql, "select coalesce(sum(size), 0)::bigint from batchmill.artifacts")[0]


async def test_sheets_and_retries_count_against_the_quota_of_a_visitor(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    """Other visitors are not affected."""
    sql.execute("insert into batchmill.quotas (tenant, operations_per_day) values ('*', 3)")
    async with start(**PROXY) as heatsync:
        first, second = sent_from(new_address()), sent_from(new_address())
        batch = (await heatsync.submit(SWIMMER, BAD, BAD, **first)).json()["batchId"]
        await heatsync.events(batch)
        answer = await heatsync.post(f"/api/batch/{batch}/retry")
        assert (answer.status_code, answer.json()["error"]) == (429, "QUOTA_EXCEEDED")
        answer = await heatsync.submit(SWIMMER, BAD, BAD, **first)
        assert (answer.status_code, answer.json()["error"]) == (429, "QUOTA_EXCEEDED")
        assert (await heatsync.submit(SWIMMER, BAD, **first)).status_code == 200
        assert (await heatsync.submit(SWIMMER, BAD, **second)).status_code == 200


async def test_concurrent_uploads_of_visitors_cannot_exceed_the_quota(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('default', 1000000)")
    async with start(**PROXY) as heatsync:
        answers = await asyncio.gather(
            *(
                heatsync.submit(SWIMMER, (name, pdf), **sent_from(f"198.51.100.{n}"))
                for n, (name, pdf) in enumerate(large_files(12).items())
            )
        )
        outcomes = sorted((answer.status_code, answer.json().get("error")) for answer in answers)
        accepted = [answer for answer in outcomes if answer == (200, None)]
        assert 1 <= len(accepted) <= 3
        assert outcomes == accepted + [(507, "STORAGE_EXCEEDED")] * (12 - len(accepted))
    assert stored(sql) <= 1_000_000


async def test_downloaded_files_count_against_the_quota_of_all_visitors(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('default', 1000000)")
    async with (
        serving(large_files(8)) as web,
        start(**PROXY, HEATSYNC_ALLOWED=web.address) as heatsync,
    ):
        urls = [web.url + path for path in web.answers]
        batches = [
            await heatsync.batch(SWIMMER, urls=urls[:4], **sent_from("198.51.100.1")),
            await heatsync.batch(SWIMMER, urls=urls[4:], **sent_from("198.51.100.2")),
        ]
        codes = []
        for batch in batches:
            await heatsync.results(batch)
            jobs = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
            codes += [job["errorCode"] for job in jobs]
    assert 1 <= codes.count(None) <= 3
    assert codes.count("STORAGE_EXCEEDED") == 8 - codes.count(None)
    # A download that exceeds the quota is not retried.
    assert len(web.requested) == 8
    assert stored(sql) <= 1_000_000


async def test_one_address_gets_at_most_five_mails_from_all_batches(heatsync: Visitor) -> None:
    sent = """select count(*) from batchmill.jobs where task = 'batchmill.email'"""
    async with heatsync.mailbox() as mailbox:
        answers = []
        for _ in range(8):
            batch = await heatsync.batch(SWIMMER, FIRST, **sent_from(new_address()))
            await heatsync.results(batch)
            answer = await heatsync.post(
                f"/api/batch/{batch}/notify", {"email": "stranger@example.com"}
            )
            answers.append((answer.status_code, answer.json().get("error")))
            await until(lambda: one(heatsync.sql, sent) == (0,))
    assert answers == [(200, None)] * 5 + [(429, "QUOTA_EXCEEDED")] * 3
    assert len(mailbox.mails) == 5


async def test_guesses_of_share_codes_are_limited(heatsync: Visitor) -> None:
    async with heatsync.client() as client:
        batch = await heatsync.batch(SWIMMER, FIRST)
        code = (await heatsync.results(batch))["sources"][0]["resultCode"]
        attacker = sent_from(new_address())
        statuses = [
            (
                await client.get(f"/api/result/AAAAAA{n:02}".replace("0", "A"), headers=attacker)
            ).status_code
            for n in range(22)
        ]
        assert statuses == [404] * 20 + [429] * 2
        answer = await client.get(f"/api/result/{code}", headers=attacker)
        assert (answer.status_code, answer.json()["error"]) == (429, "TOO_MANY_REQUESTS")
        assert int(answer.headers["retry-after"]) > 0
        for _ in range(30):
            assert (await client.get(f"/api/result/{code}")).status_code == 200


async def test_parallel_guesses_of_share_codes_are_limited(heatsync: Visitor) -> None:
    async with heatsync.client() as client:
        codes = [f"{n:08}".translate(LETTERS) for n in range(100)]
        answers = await asyncio.gather(*(client.get(f"/api/result/{code}") for code in codes))
    assert Counter(each.status_code for each in answers) == {404: 20, 429: 80}


async def test_a_visitor_can_fetch_at_most_ten_pages_of_meets_per_minute(
    heatsync: Visitor,
) -> None:
    async with heatsync.client() as client:
        body = {"url": "http://127.0.0.1:1/"}
        statuses = [
            (
                await client.post("/api/meets/discover", json=body, headers=sent_from(address))
            ).status_code
            for address in [*[heatsync.address] * 11, new_address()]
        ]
    assert statuses == [422] * 10 + [429, 422]


async def test_visitors_are_deleted_after_30_days(heatsync: Visitor) -> None:
    await heatsync.results(await heatsync.batch(SWIMMER, FIRST))
    sql = heatsync.sql
    assert rows(sql, "select from heatsync.visitors") != []
    sql.execute("update heatsync.visitors set used_at = used_at - interval '31 days'")
    sql.execute("select batchmill.enqueue('heatsync.forget', 'null')")
    await until(lambda: rows(sql, "select from heatsync.visitors") == [])
