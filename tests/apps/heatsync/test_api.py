"""The API: responses, error codes and messages."""

import asyncio
import json
import signal
from typing import Any

import psycopg
import pytest

from apps.heatsync.answers import error_response
from apps.heatsync.models import Extraction
from apps.heatsync.reader import find_swims, read_sheet
from batchmill import DatabaseUnavailable
from tests.apps.heatsync.conftest import MAIL, Start, Visitor, new_address, sent_from
from tests.apps.heatsync.sheets import BAD, SHEETS, SWIMMER, bomb, fifteen, fresh
from tests.apps.heatsync.web import Answer, serving
from tests.library.tools import one, rows, until
from tests.service.tools import make_key

UNKNOWN = "00000000-0000-4000-8000-000000000000"
FIRST, SECOND, *_ = SHEETS.items()

ASKER = """select user_agent, referrer, client_address
    from heatsync.askers join batchmill.batches on id = batch_id"""

# The maximum number of extractions of a batch that ran at the same time.
OVERLAP = """select max(running) from (
    select sum(change) over (order by number) as running from (
        select number, case type when 'job_started' then 1 else -1 end as change
        from batchmill.events
        where batch_id = %s
          and type in ('job_started', 'job_stage', 'job_retrying', 'job_failed', 'job_completed')
    ) steps) counted"""

BATCH = {
    "id", "swimmerName", "status", "totalJobs", "completedJobs", "failedJobs", "lastEventId",
    "createdAt", "completedAt",
}  # fmt: skip
JOB = {
    "id", "sequence", "filename", "sourceUrl", "status", "stage", "resultCode", "meetName",
    "eventCount", "cached", "error", "errorCode", "retriable", "retryCount",
}  # fmt: skip
RESULTS = {
    "success", "swimmerName", "totalEvents", "sources", "events", "warnings", "failedSources",
}  # fmt: skip
SOURCE = {
    "sequence", "filename", "sourceUrl", "meetName", "sessionDate", "venue", "eventCount",
    "resultCode",
}  # fmt: skip
SWIM = {
    "eventNumber", "eventName", "heatNumber", "heatsInEvent", "lane", "swimmerName", "age", "team",
    "seedTime", "heatStartTime", "sessionDate", "relay",
}  # fmt: skip


def renewed(sheet: tuple[str, bytes]) -> tuple[str, bytes]:
    name, pdf = sheet
    return name, fresh(pdf)


async def test_a_submitted_batch_returns_a_schedule(heatsync: Visitor) -> None:
    answer = await heatsync.submit(SWIMMER, *map(renewed, (FIRST, SECOND)))
    made = answer.json()
    assert list(made) == ["success", "batchId", "totalJobs", "streamUrl", "estimatedTime"]
    assert (made["success"], made["totalJobs"]) == (True, 2)
    assert made["streamUrl"] == f"/api/batch/{made['batchId']}/stream"
    assert made["estimatedTime"] >= 1

    results = await heatsync.results(made["batchId"])
    assert set(results) == RESULTS
    assert all(set(source) == SOURCE for source in results["sources"])
    assert [source["sequence"] for source in results["sources"]] == [1, 2]
    assert results["totalEvents"] == len(results["events"]) > 0
    assert all(set(swim) >= SWIM for swim in results["events"])
    assert results["failedSources"] == []

    state = await heatsync.get(f"/api/batch/{made['batchId']}")
    assert set(state) == {"success", "batch", "jobs"}
    assert set(state["batch"]) == BATCH
    assert all(set(job) == JOB for job in state["jobs"])
    assert state["batch"]["status"] == "completed"
    assert {(job["status"], job["stage"]) for job in state["jobs"]} == {("completed", "done")}


@pytest.mark.parametrize("path", ["/api/batch/{}", "/api/batch/{}/results"])
async def test_an_unknown_batch_is_not_found(path: str, heatsync: Visitor) -> None:
    for id in (UNKNOWN, "nonsense"):
        async with heatsync.client() as client:
            answer = await client.get(path.format(id))
            assert answer.status_code == 404
            assert answer.json() == {"success": False, "error": "Batch not found"}


async def test_unknown_batches_jobs_and_codes_are_not_found(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, FIRST)
    for path in (f"/api/batch/{UNKNOWN}/cancel", f"/api/batch/{UNKNOWN}/retry"):
        answer = await heatsync.post(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "Batch not found")
    for job in ("0", "999999", "x", "9" * 30):
        answer = await heatsync.post(f"/api/batch/{batch}/jobs/{job}/retry")
        assert (answer.status_code, answer.json()["error"]) == (404, "Job not found")
    for code in ("ABCDEFGH", "x", "../etc"):
        async with heatsync.client() as client:
            assert (await client.get(f"/api/result/{code}")).status_code == 404


async def test_an_invalid_batch_is_refused_and_stores_nothing(heatsync: Visitor) -> None:
    many = [(f"{n}.pdf", b"%PDF-") for n in range(250)]
    twenty = many[:20]
    for swimmer, pdfs, urls, error, message in (
        (" ", [FIRST], None, "MISSING_SWIMMER", "Swimmer name is required."),
        (SWIMMER, [], None, "NO_PDFS", "At least one PDF file or URL is required."),
        (SWIMMER, [], [], "NO_PDFS", "At least one PDF file or URL is required."),
        (
            SWIMMER, twenty, None,
            "BATCH_TOO_LARGE", "Maximum 15 PDFs per batch. You submitted 20.",
        ),
        (
            SWIMMER, many, None,
            "BATCH_TOO_LARGE", "Maximum 15 PDFs per batch. You submitted 250.",
        ),
        (
            SWIMMER, twenty[:10], [f"https://example.com/{n}.pdf" for n in range(6)],
            "BATCH_TOO_LARGE", "Maximum 15 PDFs per batch. You submitted 16.",
        ),
        (SWIMMER, [FIRST], ["ftp://x"], "INVALID_URLS", "urls must be a JSON array of http(s) URLs."),
    ):  # fmt: skip
        answer = await heatsync.submit(swimmer, *pdfs, urls=urls)
        assert answer.status_code == 400
        assert answer.json() == {"success": False, "error": error, "message": message}
    assert heatsync.count("batches") == 0
    assert heatsync.count("artifacts", "state = 'kept'") == 0


async def test_uploads_over_the_storage_quota_are_refused(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.quotas (tenant, storage_bytes) values ('*', 1000000)")
    files = [(f"{n}.pdf", b"%PDF-1.7" + bytes([n]) * 300_000) for n in range(5)]
    async with start() as heatsync:
        answer = await heatsync.submit("Ada", *files)
    assert (answer.status_code, answer.json()["error"]) == (507, "STORAGE_EXCEEDED")
    assert one(sql, "select sum(stored_bytes) <= 1000000 from batchmill.usage") == (True,)


async def test_a_body_that_is_not_a_form_is_refused(heatsync: Visitor) -> None:
    for kind in (
        "application/json",
        "text/plain",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
    ):
        async with heatsync.client(headers={"Content-Type": kind}) as client:
            answer = await client.post("/api/batch/extract", content=b'{"swimmer": "x"}')
            assert (answer.status_code, answer.json()["success"]) == (400, False)
            assert "JSON" not in answer.json()["message"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "MISSING_SWIMMER"),
        ({"swimmer": " ", "urls": "[]"}, "MISSING_SWIMMER"),
        ({"swimmer": SWIMMER}, "NO_PDFS"),
        ({"swimmer": SWIMMER, "urls": "x"}, "INVALID_URLS"),
        ({str(n): "x" for n in range(2_000)}, "BAD_REQUEST"),
    ],
)
async def test_the_error_for_a_form_without_files_names_what_is_missing(
    heatsync: Visitor, fields: dict[str, str], error: str
) -> None:
    async with heatsync.client() as client:
        answer = await client.post("/api/batch/extract", data=fields)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_repeated_fields_and_fields_that_are_too_long_in_total_are_refused(
    heatsync: Visitor,
) -> None:
    half = "x" * 600_000
    for fields, status, word in (
        ([("swimmer", "Doe, Jane"), ("swimmer", "Doe, Jim")], 400, "swimmer occurs twice"),
        ([("urls", "[]"), ("urls", "[]")], 400, "urls occurs twice"),
        ([("swimmer", half), ("urls", half)], 413, "The field urls is larger"),
        # Unknown fields are ignored.
        ([("other", half), ("other", half)], 400, "Swimmer name is required."),
    ):
        async with heatsync.client() as client:
            parts = [(name, (None, text)) for name, text in fields]
            answer = await client.post("/api/batch/extract", files=parts)
        assert answer.status_code == status
        assert word in answer.json()["message"]


async def test_unknown_paths_and_methods_are_answered_in_the_format_of_the_api(
    heatsync: Visitor,
) -> None:
    async with heatsync.client() as client:
        unknown = await client.get("/api/nothing")
        wrong = await client.get("/api/batch/x/cancel")
        elsewhere = await client.get("/nothing")
    assert unknown.status_code == 404
    assert unknown.json() == {
        "success": False,
        "error": "NOT_FOUND",
        "message": "The API has no GET /api/nothing. See /docs for what it has.",
    }
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["error"] == "METHOD_NOT_ALLOWED"
    assert elsewhere.json() == {"detail": "Not Found"}


async def test_a_form_that_is_sent_again_with_its_key_returns_the_same_batch(
    heatsync: Visitor,
) -> None:
    key: dict[str, Any] = {"Idempotency-Key": "made-up"}
    first = await heatsync.batch(SWIMMER, FIRST, urls=["https://192.0.2.1/a.pdf"], **key)
    assert await heatsync.batch(SWIMMER, FIRST, urls=["https://192.0.2.1/a.pdf"], **key) == first
    other = await heatsync.submit(SWIMMER, SECOND, **key)
    assert (other.status_code, other.json()["error"]) == (422, "IDEMPOTENCY_CONFLICT")
    assert heatsync.count("batches") == 1
    assert heatsync.count("artifacts", "state = 'kept'") == 1


async def test_thirty_concurrent_requests_with_one_key_do_not_block_other_requests(
    heatsync: Visitor,
) -> None:
    key: dict[str, Any] = {"Idempotency-Key": "made-up"}
    # The server now knows this visitor's tenant.
    assert (await heatsync.submit(SWIMMER)).status_code == 400
    with heatsync.sql.transaction():
        hold = "select batchmill.hold_request(%s, 'made-up')"
        assert one(heatsync.sql, hold, heatsync.tenant) == (True,)
        sent = [
            asyncio.create_task(heatsync.batch(SWIMMER, urls=["https://192.0.2.1/a.pdf"], **key))
            for _ in range(30)
        ]
        for _ in range(10):
            assert "error" in await heatsync.get(f"/api/batch/{UNKNOWN}")
        # The other requests were answered while all of these waited for the key.
        assert not any(each.done() for each in sent)
    assert len(set(await asyncio.gather(*sent))) == 1
    assert heatsync.count("batches") == 1


def test_an_unavailable_database_is_answered_with_retry_after() -> None:
    answer = error_response(DatabaseUnavailable("The password is wrong."), "/api/batch/extract")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


async def test_a_hanging_upload_does_not_prevent_the_server_from_stopping(start: Start) -> None:
    async with start() as heatsync:
        _, writer = await asyncio.open_connection("127.0.0.1", heatsync.port)
        writer.write(
            b"POST /api/batch/extract HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
        )
        await writer.drain()
        await heatsync.get(f"/api/batch/{UNKNOWN}")
        async with asyncio.timeout(20):
            assert await heatsync.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        writer.close()


async def test_a_repeated_url_counts_once(heatsync: Visitor) -> None:
    url = "https://192.0.2.1/a.pdf"
    answer = await heatsync.submit(SWIMMER, FIRST, urls=[url, f"{url}#page=2", url])
    assert answer.json()["totalJobs"] == 2


async def test_repeated_urls_do_not_count_against_the_limit_of_a_batch(heatsync: Visitor) -> None:
    urls = [f"https://192.0.2.1/{n % 15}.pdf" for n in range(30)]
    answer = await heatsync.submit(SWIMMER, urls=urls)
    assert answer.json()["totalJobs"] == 15


async def test_the_same_sheet_and_swimmer_have_the_same_share_code(heatsync: Visitor) -> None:
    pdf = fresh(FIRST[1])
    first = await heatsync.batch(SWIMMER, ("a.pdf", pdf))
    (source,) = (await heatsync.results(first))["sources"]
    second = await heatsync.batch(SWIMMER.upper(), ("other-name.pdf", pdf))
    assert (await heatsync.results(second))["sources"][0]["resultCode"] == source["resultCode"]
    (job,) = (await heatsync.get(f"/api/batch/{second}"))["jobs"]
    assert (job["cached"], job["filename"]) == (True, "other-name.pdf")

    shared = await heatsync.get(f"/api/result/{source['resultCode'].lower()}")
    assert len(source["resultCode"]) == 8
    assert shared["resultCode"] == source["resultCode"]
    assert len(shared["events"]) == shared["eventCount"] == source["eventCount"]


async def test_only_one_of_two_identical_sheets_in_a_batch_is_new(heatsync: Visitor) -> None:
    pdf = fresh(FIRST[1])
    batch = await heatsync.batch(SWIMMER, ("a.pdf", pdf), ("again.pdf", pdf))
    await heatsync.events(batch)
    jobs = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    assert sorted(job["cached"] for job in jobs) == [False, True]
    assert jobs[0]["resultCode"] == jobs[1]["resultCode"]


async def test_an_unreadable_sheet_fails_alone_with_its_reason(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, renewed(FIRST), BAD)
    results = await heatsync.results(batch)
    (failed,) = results["failedSources"]
    assert set(failed) == {"sequence", "filename", "errorMessage", "retriable"}
    assert (failed["sequence"], failed["filename"], failed["retriable"]) == (2, BAD[0], False)
    assert results["totalEvents"] > 0
    state = await heatsync.get(f"/api/batch/{batch}")
    assert state["batch"]["status"] == "partial"
    assert state["jobs"][1]["errorCode"] == "INVALID_PDF"
    assert state["jobs"][1]["stage"] == "failed"


async def test_a_swimmer_who_is_not_in_the_sheet_is_not_found(heatsync: Visitor) -> None:
    batch = await heatsync.batch("Nobody Atall", FIRST)
    await heatsync.events(batch)
    (job,) = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    assert (job["errorCode"], job["retriable"]) == ("SWIMMER_NOT_FOUND", False)


async def test_failed_sheets_can_be_retried_one_by_one_or_together(heatsync: Visitor) -> None:
    unavailable: dict[str, Answer] = {f"/{name}.pdf": 503 for name in "ab"}
    async with heatsync.web(unavailable) as web:
        batch = await heatsync.batch(SWIMMER, BAD, urls=[web.url + path for path in unavailable])
        await heatsync.events(batch)
        jobs = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
        assert [job["retriable"] for job in jobs] == [False, True, True]
        web.answers = dict.fromkeys(unavailable, FIRST[1])
        at = f"/api/batch/{batch}/jobs/{jobs[1]['id']}/retry"
        assert (await heatsync.post(at)).json() == {"success": True}
        await heatsync.events(batch)
        assert (await heatsync.post(at)).json()["error"] == "CONFLICT"
        answer = await heatsync.post(f"/api/batch/{batch}/retry")
        assert answer.json() == {"success": True, "retriedJobs": 2}
        assert (await heatsync.events(batch))[-1]["completedJobs"] == 2
        other = await heatsync.batch(SWIMMER, FIRST)
        answer = await heatsync.post(f"/api/batch/{other}/jobs/{jobs[0]['id']}/retry")
        assert answer.status_code == 404


async def test_the_number_of_retries_of_a_batch_is_limited(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, BAD)
    await heatsync.events(batch)
    heatsync.sql.execute("update batchmill.batches set generation = 11 where id = %s", [batch])
    (job,) = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    for path in ("retry", f"jobs/{job['id']}/retry"):
        answer = await heatsync.post(f"/api/batch/{batch}/{path}")
        assert (answer.status_code, answer.json()["error"]) == (409, "TOO_MANY_RETRIES")


async def test_sheets_are_downloaded_from_their_urls(heatsync: Visitor) -> None:
    answers = {
        "/Heat%20Sheet.pdf": fresh(FIRST[1]),
        "/page.pdf": b"<html><body>Login</body></html>",
    }
    async with heatsync.web(answers) as web:
        paths = ("/Heat%20Sheet.pdf", "/page.pdf", "/gone.pdf")
        batch = await heatsync.batch(SWIMMER, urls=[f"{web.url}{path}" for path in paths])
        await heatsync.events(batch)
        jobs = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    assert [job["filename"] for job in jobs] == ["Heat Sheet.pdf", "page.pdf", "gone.pdf"]
    assert [job["sourceUrl"] for job in jobs] == [f"{web.url}{path}" for path in paths]
    assert [job["errorCode"] for job in jobs] == [None, "INVALID_PDF", "NOT_FOUND"]


async def test_a_failed_download_has_a_code_and_a_message_with_advice(heatsync: Visitor) -> None:
    answers: dict[str, Answer] = {"/403": 403, "/418": 418, "/410": 410, "/503": 503, "/429": 429}
    async with heatsync.web(answers) as web:
        batch = await heatsync.batch(SWIMMER, urls=[web.url + path for path in (*answers, "/404")])
        await heatsync.events(batch)
        jobs = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    errors = {job["filename"]: (job["errorCode"], job["retriable"]) for job in jobs}
    assert errors == {
        "403": ("NOT_ALLOWED", False),
        "418": ("NOT_ALLOWED", False),
        "410": ("NOT_FOUND", False),
        "404": ("NOT_FOUND", False),
        "503": ("SERVICE_UNAVAILABLE", True),
        "429": ("RATE_LIMIT", True),
    }
    assert all(job["error"].endswith("download the PDF and choose it here.") for job in jobs)


async def test_urls_of_this_machine_are_refused(heatsync: Visitor) -> None:
    async with serving({"/a.pdf": FIRST[1]}) as web:
        batch = await heatsync.batch(SWIMMER, urls=[f"{web.url}/a.pdf"])
        await heatsync.events(batch)
        answer = await heatsync.post("/api/meets/discover", {"url": f"{web.url}/a.pdf"})
        assert web.requested == []
    (job,) = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    assert job["errorCode"] == "ADDRESS_REFUSED"
    assert (answer.status_code, answer.json()["error"]) == (422, "ADDRESS_REFUSED")


async def test_a_download_that_fails_with_503_is_retried_after_a_second(
    heatsync: Visitor,
) -> None:
    asked = 0

    async def unavailable(_: bytes) -> bytes | int:
        nonlocal asked
        asked += 1
        return FIRST[1] if asked > 1 else 503

    async with heatsync.web({"/a.pdf": unavailable}) as web:
        batch = await heatsync.batch(SWIMMER, urls=[f"{web.url}/a.pdf"])
        events = await heatsync.events(batch)
        (job,) = (await heatsync.get(f"/api/batch/{batch}"))["jobs"]
    assert any("Retrying in 1 s" in event.get("message", "") for event in events)
    assert (events[-1]["completedJobs"], job["retryCount"]) == (1, 1)


async def test_the_sender_of_a_batch_is_stored(start: Start, sql: psycopg.Connection[Any]) -> None:
    headers = {
        "User-Agent": "Swim/1",
        "Referer": "https://club.example/",
        "X-Forwarded-For": "1.1.1.1",
    }
    async with start() as heatsync:
        await heatsync.batch(SWIMMER, FIRST, **headers)
    assert one(sql, ASKER) == ("Swim/1", "https://club.example/", "127.0.0.1")


async def test_the_address_comes_from_a_trusted_proxy(heatsync: Visitor) -> None:
    address = new_address()
    batch = await heatsync.batch(SWIMMER, FIRST, **sent_from(f"9.9.9.9, {address}"))
    assert one(heatsync.sql, f"{ASKER} where id = %s", batch)[2] == address


async def test_notifications_are_refused_if_mail_is_not_configured(start: Start) -> None:
    async with start() as heatsync:
        batch = await heatsync.batch(SWIMMER, FIRST)
        answer = await heatsync.post(f"/api/batch/{batch}/notify", {"email": "ada@example.com"})
        assert (answer.status_code, answer.json()["error"]) == (503, "MAIL_NOT_CONFIGURED")
        for wrong in (
            {"email": "nobody"},
            {},
            {"email": ["x"]},
            None,
            {"email": "https://x.example/?a@b"},
        ):
            answer = await heatsync.post(f"/api/batch/{batch}/notify", wrong)
            assert (answer.status_code, answer.json()["success"]) == (422, False)


async def test_text_that_cannot_be_stored_is_refused(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, FIRST)
    async with heatsync.client() as client:
        for path, text in (
            (f"/api/batch/{batch}/notify", '{"email": "a\\u0000b@example.com"}'),
            (f"/api/batch/{batch}/notify", '{"email": "a\\ud800b@example.com"}'),
            ("/api/meets/discover", '{"url": "https://example.com/\\u0000"}'),
        ):
            as_json = {"Content-Type": "application/json"}
            answer = await client.post(path, content=text, headers=as_json)
            assert (answer.status_code, answer.json()["success"]) == (400, False)
            assert answer.headers["Cache-Control"] == "no-store"
        assert (await client.get("/api/result/a%00b")).status_code == 400
        # The server has the same limits as `batchmill serve` for a mill.
        assert (await client.get("/", headers={"X": "x" * 70_000})).status_code == 431


async def test_a_calendar_counts_the_swims_that_it_leaves_out(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, FIRST)
    swims = (await heatsync.results(batch))["events"]
    untimed = sum(not swim["heatStartTime"] for swim in swims)
    async with heatsync.client() as client:
        answer = await client.get(f"/api/batch/{batch}/calendar.ics")
    assert answer.headers["content-type"].startswith("text/calendar")
    assert answer.headers["x-untimed-events"] == str(untimed)
    assert answer.text.count("BEGIN:VEVENT") == len(swims) - untimed


async def test_limits_come_from_the_settings_and_an_operator_can_change_them(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    async with (
        start(MAX_CONCURRENT_AI_CALLS="4", CONCURRENT_JOBS_PER_BATCH="2") as heatsync,
        heatsync.client() as client,
    ):
        assert (await client.get("/mill/v1/limits")).status_code == 401
        client.headers["Authorization"] = f"Bearer {make_key(sql, 'default')}"
        found = (await client.get("/mill/v1/limits")).json()["limits"]
        limits = {each["name"]: each["slots"] for each in found}
        at = "/mill/v1/limits/pipeline:heatsync"
        changed = (await client.put(at, json={"slots": 7})).json()
    assert limits["pipeline:heatsync"] == 4
    assert limits["pipeline:heatsync/batch:*"] == 2
    assert changed["slots"] == 7


async def test_a_mail_has_the_link_and_no_text_from_users(heatsync: Visitor) -> None:
    async with heatsync.mailbox() as mailbox:
        batch = await heatsync.batch("Buy at evil.example", FIRST)
        answer = await heatsync.post(f"/api/batch/{batch}/notify", {"email": "ada@example.com"})
        assert answer.json() == {"success": True}
        await until(lambda: mailbox.mails)
    (mail,) = mailbox.mails
    assert mail["Subject"] == "Your heat sheets: The job failed."
    text = mail.get_body(("plain",))
    assert text and f"https://club.example/batches/{batch}" in text.get_content()
    assert "127.0.0.1" not in text.get_content()
    assert "evil" not in mail.as_string() and "heatsync.receive" not in mail.as_string()


async def test_a_batch_notifies_at_most_five_addresses(heatsync: Visitor) -> None:
    gate = asyncio.Event()

    async def late(_: bytes) -> bytes:
        await gate.wait()
        return FIRST[1]

    async with heatsync.mailbox() as mailbox, heatsync.web({"/late.pdf": late}) as web:
        at = f"/api/batch/{await heatsync.batch(SWIMMER, urls=[f'{web.url}/late.pdf'])}/notify"
        for n in (0, 1, 2, 3, 4, 0):
            answer = await heatsync.post(at, {"email": f"{n}@example.com"})
            assert answer.json() == {"success": True}
        answer = await heatsync.post(at, {"email": "5@example.com"})
        assert (answer.status_code, answer.json()["error"]) == (409, "TOO_MANY_ADDRESSES")
        gate.set()
        await until(lambda: len(mailbox.mails) == 5)
    assert "5@example.com" not in {mail["To"] for mail in mailbox.mails}


async def test_notifications_are_refused_without_a_public_url(start: Start) -> None:
    without = {"BATCHMILL_SMTP_URL": "smtp://127.0.0.1:9", "BATCHMILL_PUBLIC_URL": ""}
    async with start(**MAIL | without) as it:
        batch = await it.batch(SWIMMER, FIRST)
        answer = await it.post(f"/api/batch/{batch}/notify", {"email": "ada@example.com"})
    assert (answer.status_code, answer.json()["error"]) == (503, "MAIL_NOT_CONFIGURED")


async def test_a_sheet_can_be_read_with_a_model_and_its_tokens_are_counted(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    """The model returns what the layout reader returns, so all of it is confirmed."""
    truth = find_swims(read_sheet(FIRST[1]).swims, SWIMMER)
    failures_left = 1

    async def answer(body: bytes) -> bytes | int:
        nonlocal failures_left
        if failures_left:
            failures_left -= 1
            return 529
        assert SWIMMER in json.loads(body)["messages"][-1]["content"]
        content = Extraction(
            swimmer_name=SWIMMER, meet_name="A meet", session_date=None, venue=None, events=truth
        ).model_dump_json(by_alias=True)
        usage = {"prompt_tokens": 1_200, "completion_tokens": 300}
        choices = [{"message": {"content": content}}]
        return json.dumps({"choices": choices, "usage": usage}).encode()

    async with (
        serving({"/v1/chat/completions": answer}) as web,
        start(OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=f"{web.url}/v1") as heatsync,
    ):
        batch = await heatsync.batch(SWIMMER, FIRST)
        events = await heatsync.events(batch)
        results = await heatsync.get(f"/api/batch/{batch}/results")
    assert "uploading_to_ai" in {event.get("stage") for event in events}
    assert results["totalEvents"] == len(truth)
    assert results["sources"][0]["meetName"] == "A meet"
    used = "select name, amount from batchmill.batch_usage where batch_id = %s order by name"
    assert rows(sql, used, batch) == [("completion_tokens", 300), ("prompt_tokens", 1_200)]


async def test_a_pdf_that_decompresses_to_too_much_memory_fails_alone(
    heatsync: Visitor,
) -> None:
    batch = await heatsync.batch(SWIMMER, renewed(FIRST), ("bomb.pdf", bomb()))
    results = await heatsync.results(batch)
    assert [source["filename"] for source in results["sources"]] == [FIRST[0]]
    (job,) = [job for job in (await heatsync.get(f"/api/batch/{batch}"))["jobs"] if job["error"]]
    assert (job["errorCode"], job["retryCount"]) == ("EXTRACTION_FAILED", 0)


async def test_a_large_body_is_refused(heatsync: Visitor) -> None:
    answer = await heatsync.post("/api/meets/discover", {"url": "x" * 100_000})
    assert (answer.status_code, answer.json()["error"]) == (413, "TOO_LARGE")


async def test_batches_of_other_applications_are_not_found(heatsync: Visitor) -> None:
    (made,) = one(heatsync.sql, "select batchmill.submit('heatsync.forget', '[{}]')")
    for method, path in (("GET", ""), ("GET", "/stream"), ("GET", "/results"), ("POST", "/cancel")):
        async with heatsync.client() as client:
            answer = await client.request(method, f"/api/batch/{made['batch_id']}{path}")
        assert (answer.status_code, answer.json()["error"]) == (404, "Batch not found")


async def test_at_most_three_sheets_of_a_batch_are_worked_on_at_once_over_all_stages(
    heatsync: Visitor,
) -> None:
    batch = await heatsync.batch(SWIMMER, *fifteen())
    await heatsync.events(batch)
    (most,) = one(heatsync.sql, OVERLAP, batch)
    assert most == 3
