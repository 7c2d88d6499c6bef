"""What the service offers to the routes of an application."""

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote_to_bytes
from uuid import UUID
from zipfile import ZipFile

import httpx
import psycopg
import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from batchmill import Event, Mill, NotFound, Permanent
from batchmill.config import ServiceSettings
from batchmill.service import (
    ByKeyOrLink,
    EventStreams,
    Form,
    GuardedRoute,
    LastEventId,
    Reader,
    Submitter,
    problem_of,
    send_file,
    send_zip,
    service_router,
    signed_url,
)
from tests.library.tools import one, until
from tests.service.conftest import OPTIONS, running
from tests.service.tools import UNKNOWN_ID, problem

LARGE = 300_000
JSON = {"Content-Type": "application/json"}
ENCODED = {"Content-Type": "application/x-www-form-urlencoded"}
KEPT = "select count(*) from batchmill.artifacts where state <> 'gone'"


class Body(BaseModel):
    text: str


class OwnRoute(GuardedRoute):
    anonymous = True
    max_body = 1_000

    def error_response(self, error: Exception) -> Response:
        found = problem_of(error)
        return JSONResponse({"oops": found.code}, found.status, found.headers)


async def shown(event: Event) -> tuple[str, Any] | None:
    return ("done", {"of": event.position}) if event.type == "job_completed" else None


def app_on(mill: Mill, downloads: int = 0) -> FastAPI:
    api = APIRouter(prefix="/api", route_class=GuardedRoute)
    own = APIRouter(prefix="/own", route_class=OwnRoute)
    plain = APIRouter(prefix="/plain")

    @api.post("/form")
    async def read_form(request: Request, caller: Submitter, end: str = "") -> dict[str, Any]:
        form = Form(
            request, caller.client, fields={"note"}, files={"a", "b"}, max_files=2, max_file=1_000
        )
        async with form.read():
            found = [(file.field, file.record.name, file.record.size) for file in form.files]
            if end == "submit and raise":
                sheet = {"file": form.files[1].record.reference}
                await caller.client.submit("shout", [sheet], delay=3_600)
            if end.endswith("raise"):
                raise NotFound("stop")
            if end == "discard":
                await form.discard()
            return {"fields": form.fields, "files": found}

    @api.get("/batches/{id}/stream")
    async def stream(
        streams: EventStreams, viewer: ByKeyOrLink, id: UUID, after: LastEventId
    ) -> Response:
        return await streams.follow(viewer, id, after, show=shown)

    @api.get("/uploads/{upload}/stream")
    async def follow_upload(
        streams: EventStreams, caller: Reader, upload: str, after: LastEventId, of: int
    ) -> Response:
        """Each event has the number of jobs that have ended so far. The stream ends with the
        last of them."""
        ended = list[Any]()

        async def counted(event: Event) -> tuple[str, Any] | None:
            if event.type == "feed_restarted":
                ended.clear()
                return "restarted", {}
            if event.type != "job_completed":
                return None
            ended.append((event.batch_id, event.position))
            return "done", {"ended": len(ended)}

        feed = caller.client.feed("upload", upload)
        return await streams.follow(
            caller, feed, after, show=counted, whole=True, until=lambda: len(ended) >= of
        )

    @api.get("/batches/{id}/several")
    async def several(
        streams: EventStreams, caller: Reader, id: UUID, after: LastEventId
    ) -> Response:
        async def twice(event: Event) -> list[tuple[str, Any]]:
            done = await shown(event)
            return [("almost", {}), done] if done else []

        return await streams.follow(caller, id, after, show=twice)

    @api.api_route("/batches/{id}/state", methods=["GET", "HEAD", "POST", "PUT", "DELETE"])
    async def state(viewer: ByKeyOrLink, id: UUID) -> str:
        return (await viewer.client.batch(id).get()).state

    @api.post("/batches/{id}/link")
    async def link(request: Request, caller: Reader, id: UUID, route: str = "stream") -> str:
        return await signed_url(request, caller, route, 60, id=id)

    @api.get("/files/{id}")
    async def get_file(request: Request, viewer: ByKeyOrLink, id: UUID) -> Response:
        return await send_file(request, viewer, id)

    @api.get("/zips/{id}")
    async def get_zip(request: Request, caller: Reader, id: UUID) -> Response:
        chunks = await caller.client.artifacts.zip([(id, "a.txt")], lambda names: names)
        return send_zip(request, caller, "all.zip", chunks)

    @api.get("/refused")
    async def refuse() -> None:
        raise Permanent("The file is empty.", code="EMPTY_FILE")

    @own.post("/body")
    async def read_body(body: Body) -> str:
        return body.text

    @own.get("/missing")
    async def missing() -> None:
        raise NotFound("There is no such thing.")

    @own.get("/large")
    async def large() -> str:
        return "x" * LARGE

    @plain.get("/broken")
    async def broken() -> None:
        raise NotFound("Not handled here.")

    app = FastAPI()
    for router in (api, own, plain):
        app.include_router(router)
    settings = ServiceSettings(downloads_per_tenant=downloads)
    app.include_router(service_router(mill, settings=settings, worker=OPTIONS))
    return app


@pytest.fixture
async def client(shop: Mill) -> AsyncIterator[httpx.AsyncClient]:
    async with running(app_on(shop)) as client:
        yield client


# Errors


async def test_a_router_answers_errors_in_its_own_format(client: httpx.AsyncClient) -> None:
    for answer, status, code in (
        (await client.get("/own/missing"), 404, "not_found"),
        (await client.post("/own/body", content=b"{", headers=JSON), 400, "bad_request"),
        (await client.post("/own/body", json={"text": "x" * 2_000}), 413, "too_large"),
        (await client.post("/own/body", json={"text": 1}), 422, "invalid_request"),
    ):
        assert (answer.status_code, answer.json()) == (status, {"oops": code})
        assert answer.headers["cache-control"] == "no-store"


async def test_a_large_answer_over_the_limit_is_refused_in_the_own_format(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/own/large")
    assert (answer.status_code, answer.json()) == (429, {"oops": "too_many_downloads"})
    assert answer.headers["retry-after"] == "30"


async def test_other_routers_keep_their_format(client: httpx.AsyncClient) -> None:
    assert problem(await client.get(f"/api/batches/{UNKNOWN_ID}/stream")) == (404, "not_found")
    assert problem(await client.get(f"/v1/batches/{UNKNOWN_ID}")) == (404, "not_found")
    assert (await client.get("/plain/broken")).status_code == 500


# Forms


def files(*names: str, size: int = 10) -> list[tuple[str, tuple[str, bytes]]]:
    return [(name, (f"{name}.txt", b"x" * size)) for name in names]


async def test_a_form_has_its_fields_and_files_and_ignores_others(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    answer = await client.post(
        "/api/form", data={"note": "hello", "more": "x"}, files=files("a", "b", "c")
    )
    assert answer.json() == {
        "fields": {"note": "hello"},
        "files": [["a", "a.txt", 10], ["b", "b.txt", 10]],
    }
    assert one(sql, KEPT) == (2,)
    text = await client.post("/api/form", data={"note": "ä & ö", "more": "x"})
    assert text.json() == {"fields": {"note": "ä & ö"}, "files": []}


@pytest.mark.parametrize(
    ("sent", "end", "expected", "word"),
    [
        (files("a", "b", "a"), "", (413, "too_large"), "3 files. The limit is 2"),
        (files("a") + files("b", size=2_000), "", (413, "artifact_too_large"), "b.txt is larger"),
        (files("a"), "raise", (404, "not_found"), "stop"),
    ],
)
async def test_a_form_that_fails_leaves_no_file(
    client: httpx.AsyncClient,
    sql: psycopg.Connection[Any],
    sent: Any,
    end: str,
    expected: tuple[int, str],
    word: str,
) -> None:
    answer = await client.post("/api/form", params={"end": end}, files=sent)
    assert problem(answer) == expected
    assert word in answer.json()["detail"]
    assert one(sql, KEPT) == (0,)


async def test_a_form_that_fails_after_its_submit_keeps_what_the_batch_needs(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The file that cannot be deleted changes neither the answer nor what happens to the others."""
    query = {"end": "submit and raise"}
    answer = await client.post("/api/form", params=query, files=files("a", "b"))
    assert problem(answer) == (404, "not_found")
    assert answer.json()["detail"] == "stop"
    names = sql.execute("select name from batchmill.artifacts where state <> 'gone'").fetchall()
    assert names == [("b.txt",)]
    assert caplog.text.count("of a form that failed is not deleted") == 1


async def test_a_cancelled_form_stays_cancelled(shop: Mill, sql: psycopg.Connection[Any]) -> None:
    """The error of a file that the batch needs must not replace the cancellation."""
    app, submitted = app_on(shop), asyncio.Event()
    async with running(app) as client:
        sent = client.build_request("POST", "/", files=files("a", "b"))
        body = await sent.aread()

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        kind = sent.headers["Content-Type"].encode()
        scope = {"type": "http", "headers": [(b"content-type", kind)], "app": app}
        form = Form(Request(scope, receive), shop, files={"a", "b"})

        async def handle() -> None:
            async with form.read():
                await shop.submit("shout", [{"file": form.files[1].record.reference}], delay=3_600)
                submitted.set()
                await asyncio.Event().wait()

        handling = asyncio.create_task(handle())
        await until(lambda: submitted.is_set() or handling.done())
        handling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handling
        assert one(sql, KEPT) == (1,)


async def test_files_of_a_form_can_be_discarded(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    answer = await client.post("/api/form", params={"end": "discard"}, files=files("a", "b"))
    assert answer.status_code == 200
    assert one(sql, KEPT) == (0,)


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        ("note=a%00b", "NUL"),
        ("note=%FF", "not valid UTF-8"),
        ("note=\xff", "not valid UTF-8"),
        ("note=a&more=x&note=a", "The field note occurs twice"),
        ("note=&note=a", "The field note occurs twice"),
        ("n%00te=a", "NUL"),
        ("%FF=a", "not valid UTF-8"),
    ],
)
async def test_a_form_without_files_is_refused_for_the_same_reasons_as_one_with_files(
    client: httpx.AsyncClient, sent: str, detail: str
) -> None:
    raw = sent.encode("latin-1")
    plain = await client.post("/api/form", content=raw, headers=ENCODED)
    pairs = [pair.split(b"=") for pair in unquote_to_bytes(raw).split(b"&")]
    parts = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name, value)
        for name, value in pairs
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    other = await client.post("/api/form", content=parts + b"--b--\r\n", headers=headers)
    for answer in (plain, other):
        assert problem(answer) == (400, "bad_request")
        assert detail in answer.json()["detail"]


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        ("", {}),
        ("note", {"note": ""}),
        ("note=", {"note": ""}),
        ("&note=a=b&&", {"note": "a=b"}),
        ("note=a+b%2B%C3%A4\xc3\xa4%zz", {"note": "a b+ää%zz"}),
        ("n%6Fte=a&more=1&more=%00&=x", {"note": "a"}),
    ],
)
async def test_a_form_without_files_is_decoded(
    client: httpx.AsyncClient, sent: str, fields: dict[str, str]
) -> None:
    answer = await client.post("/api/form", content=sent.encode("latin-1"), headers=ENCODED)
    assert answer.json() == {"fields": fields, "files": []}


async def test_the_fields_of_a_form_without_files_are_limited(client: httpx.AsyncClient) -> None:
    for sent in (b"a=1&" * 2_000, b"&" * 2_000):
        answer = await client.post("/api/form", content=sent, headers=ENCODED)
        assert problem(answer) == (400, "bad_request")
        assert "the limit is 1000" in answer.json()["detail"]


async def test_a_body_that_is_not_a_form_is_refused(client: httpx.AsyncClient) -> None:
    for kind in ("application/json", "multipart/form-data", "multipart/mixed; boundary=x"):
        answer = await client.post("/api/form", content=b"{}", headers={"Content-Type": kind})
        assert problem(answer) == (400, "bad_request")


# Streams and links


async def test_events_that_are_left_out_send_only_their_id(
    client: httpx.AsyncClient, shop: Mill
) -> None:
    """A client that reconnects continues after them, and misses none of the others."""
    batch = await shop.submit("double", [1, 2, 3])
    await batch.wait()
    stream = (await client.get(f"/api/batches/{batch.id}/stream")).text
    log = [event async for event in batch.events()]
    assert re.findall(r"id: (\d+)", stream) == [str(event.number) for event in log]
    names = dict(re.findall(r"id: (\d+)\nevent: (\w+)\ndata: ", stream))
    done = [event for event in log if event.type == "job_completed"]
    assert names == {str(event.number): "done" for event in done}
    for event in log[:-1]:
        headers = {"Last-Event-ID": str(event.number)}
        rest = (await client.get(f"/api/batches/{batch.id}/stream", headers=headers)).text
        assert rest.split("\n\n", 1)[1] == stream[stream.index(f"id: {event.number + 1}\n") :]


async def test_a_stream_may_depend_on_the_log_so_far_and_end_with_an_event(
    client: httpx.AsyncClient, shop: Mill
) -> None:
    """A client that reconnects after any event gets the same answers as one that stayed."""
    labels = {"upload": "u-7"}
    batches = [await shop.submit("double", [1, 2, 3], labels=labels) for _ in range(2)]
    for batch in batches:
        await batch.wait()
    path = "/api/uploads/u-7/stream?of=6"
    stream = (await client.get(path)).text
    frames = stream.split("\n\n")[1:-1]
    assert [int(n) for n in re.findall(r'"ended":(\d)', stream)] == [1, 2, 3, 4, 5, 6]
    assert '"ended":6' in frames[-1]
    for place, frame in enumerate(frames[:-1]):
        headers = {"Last-Event-ID": id_of(frame)}
        rest = (await client.get(path, headers=headers)).text
        assert rest.split("\n\n")[1:-1] == frames[place + 1 :]
    answer = await client.get(path, headers={"Last-Event-ID": id_of(frames[-1])})
    assert (answer.status_code, answer.text) == (204, "")


async def test_a_stream_that_depends_on_its_log_survives_deleted_batches(
    client: httpx.AsyncClient, shop: Mill
) -> None:
    labels = {"upload": "u-8"}
    first = await shop.submit("double", [1], labels=labels)
    await first.wait()
    position = await shop.feed("upload", "u-8").position()
    await first.delete()
    await (await shop.submit("double", [1, 2], labels=labels)).wait()
    headers = {"Last-Event-ID": position}
    after = (await client.get("/api/uploads/u-8/stream?of=2", headers=headers)).text
    assert re.findall(r'"ended":(\d)', after) == ["1", "2"]


async def test_a_stream_that_depends_on_its_log_starts_again_after_an_unknown_id(
    client: httpx.AsyncClient, shop: Mill
) -> None:
    await (await shop.submit("double", [1, 2], labels={"upload": "u-9"})).wait()
    headers = {"Last-Event-ID": "999999-1"}
    text = (await client.get("/api/uploads/u-9/stream?of=2", headers=headers)).text
    assert re.findall(r"event: (\w+)", text) == ["restarted", "done", "done"]
    assert re.findall(r'"ended":(\d)', text) == ["1", "2"]


def id_of(frame: str) -> str:
    return re.findall(r"id: (\S+)", frame)[0]


async def test_of_an_event_that_is_shown_as_several_the_last_one_has_the_id(
    client: httpx.AsyncClient, shop: Mill
) -> None:
    """A client that loses the connection in between gets all of them again."""
    batch = await shop.submit("double", [1, 2])
    await batch.wait()
    stream = (await client.get(f"/api/batches/{batch.id}/several")).text
    log = [event async for event in batch.events()]
    assert re.findall(r"id: (\d+)", stream) == [str(event.number) for event in log]
    done = [event.number for event in log if event.type == "job_completed"]
    for number in done:
        assert f"\n\nevent: almost\ndata: {{}}\n\nid: {number}\nevent: done\ndata: " in stream
        rest = await client.get(f"/api/batches/{batch.id}/several?after={number - 1}")
        assert rest.text.split("\n\n", 1)[1].startswith("event: almost\n")
    assert stream.count("event: almost") == len(done) == 2


async def test_a_link_to_a_route_of_the_application_works_without_a_key(
    client: httpx.AsyncClient, shop: Mill
) -> None:
    key, _ = await shop.keys.create("page", tenant="ada")
    batch = await shop.submit("double", [1], tenant="ada")
    other = await shop.submit("double", [1], tenant="bob")
    await batch.wait()
    headers = {"Authorization": f"Bearer {key}"}
    made = await client.post(f"/api/batches/{batch.id}/link", headers=headers)
    url = made.json()
    assert "event: done" in (await client.get(url)).text
    assert problem(await client.get(url.replace(str(batch.id), str(other.id))))[0] == 403
    assert problem(await client.get(url.replace("tenant=ada", "tenant=bob")))[0] == 403
    assert problem(await client.get(f"/api/batches/{batch.id}/stream"))[0] == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_a_link_is_refused_for_methods_that_may_change_something(
    client: httpx.AsyncClient, shop: Mill, method: str
) -> None:
    key, _ = await shop.keys.create("page", tenant="ada")
    headers = {"Authorization": f"Bearer {key}"}
    batch = await shop.submit("double", [1], tenant="ada", delay=3_600)
    made = await client.post(f"/api/batches/{batch.id}/link?route=state", headers=headers)
    url = made.json()
    assert (await client.get(url)).json() == "pending"
    assert (await client.head(url)).status_code == 200
    assert problem(await client.request(method, url)) == (403, "invalid_link")
    path = url.partition("?")[0]
    assert (await client.request(method, path, headers=headers)).status_code == 200


# Files


@pytest.fixture
async def downloading(shop: Mill) -> AsyncIterator[httpx.AsyncClient]:
    async with running(app_on(shop, downloads=10)) as client:
        yield client


async def test_a_route_sends_a_file_in_ranges_to_its_tenant_only(
    downloading: httpx.AsyncClient, shop: Mill
) -> None:
    client = downloading
    file = await shop.artifacts.save("a.txt", b"0123456789", tenant="default")
    url = f"/api/files/{file.id}"
    whole = await client.get(url)
    assert (whole.status_code, whole.content) == (200, b"0123456789")
    part = await client.get(url, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    beyond = await client.get(url, headers={"Range": "bytes=10-"})
    assert beyond.status_code == 416
    known = await client.get(url, headers={"If-None-Match": whole.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")
    changed = {"Range": "bytes=2-4", "If-Range": '"other"'}
    assert (await client.get(url, headers=changed)).status_code == 200
    other = await shop.artifacts.save("b.txt", b"secret", tenant="other")
    assert problem(await client.get(f"/api/files/{other.id}")) == (404, "not_found")


async def test_a_route_sends_a_zip_to_its_tenant_only(
    downloading: httpx.AsyncClient, client: httpx.AsyncClient, shop: Mill
) -> None:
    file = await shop.artifacts.save("x", b"0123456789", tenant="default")
    answer = await downloading.get(f"/api/zips/{file.id}")
    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="all.zip"' in answer.headers["content-disposition"]
    with ZipFile(io.BytesIO(answer.content)) as zipped:
        assert zipped.read("a.txt") == b"0123456789"
        assert json.loads(zipped.read("manifest.json")) == ["a.txt"]
    other = await shop.artifacts.save("b.txt", b"secret", tenant="other")
    with ZipFile(io.BytesIO((await downloading.get(f"/api/zips/{other.id}")).content)) as zipped:
        assert zipped.namelist() == ["manifest.json"]
        assert json.loads(zipped.read("manifest.json")) == [None]
    refused = await client.get(f"/api/zips/{file.id}")
    assert problem(refused) == (429, "too_many_downloads")


async def test_a_route_refuses_what_a_handler_would_refuse(client: httpx.AsyncClient) -> None:
    refused = await client.get("/api/refused")
    assert problem(refused) == (422, "EMPTY_FILE")
    assert refused.json()["detail"] == "The file is empty."


@pytest.mark.parametrize("has_key", [True, False])
async def test_erasing_the_last_tenant_with_a_key_does_not_open_the_service(
    client: httpx.AsyncClient, shop: Mill, has_key: bool
) -> None:
    batch = await shop.submit("double", [1])
    path = f"/api/batches/{batch.id}/state"
    assert (await client.get(path)).status_code == 200
    if has_key:
        await shop.keys.create("web", tenant="ada")
    await shop.tenants.erase("ada")
    assert (await client.get(path)).status_code == (401 if has_key else 200)
