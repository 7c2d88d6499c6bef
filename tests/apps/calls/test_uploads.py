"""Uploads of several recordings: their stream, their limits, and requests that are repeated."""

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import psycopg
import pytest
from fastapi import Request

from apps.calls import routes
from apps.calls.models import Segment, Transcript
from apps.calls.tables import CALLS
from apps.calls.upload import body_of
from batchmill import Mill
from tests.apps.calls.conftest import (
    SHORT,
    WORDS,
    Calls,
    Organisation,
    SharedCalls,
    events_in,
    tone,
)
from tests.apps.calls.test_api import refused, stored, until_stored
from tests.apps.heatsync.web import Web, serving
from tests.postgres import Server, create_database, drop_database, free_port

MAX_FILES, MAX_BYTES = 2, 100_000
OPERATION = "calls_operations.openai"
NOT_AUDIO = b"This is no recording."
ANSWER = json.dumps(
    {"text": "Hello.", "segments": [{"start": 0.1, "end": 1.5, "text": "Hello."}]}
).encode()


class SmallCalls(SharedCalls):
    """A server with small limits, whose transcription service listens on `port`."""

    def __init__(self, server: Calls, dsn: str, port: int):
        super().__init__(server, dsn)
        self.port = port

    @asynccontextmanager
    async def transcribing(self) -> AsyncIterator[Web]:
        async with serving({"/audio/transcriptions": ANSWER}, self.port) as service:
            yield service

    @asynccontextmanager
    async def paused(self, *tasks: str) -> AsyncIterator[None]:
        """No job begins one of these tasks."""
        async with Mill(self.dsn, schemas=[CALLS]) as mill:
            for task in tasks:
                await mill.limits.pause(f"task:{task}")
            try:
                yield
            finally:
                for task in tasks:
                    await mill.limits.resume(f"task:{task}")

    async def operations(self, organisation: Organisation) -> list[str]:
        """The states of the operations that calls of the organisation have started."""
        async with await psycopg.AsyncConnection.connect(self.dsn) as conn:
            cursor = await conn.execute(
                """select state::text from batchmill.jobs where task = %(task)s and tenant = %(tenant)s
                union all
                select state::text from batchmill.finished where task = %(task)s and tenant = %(tenant)s""",
                {"task": OPERATION, "tenant": organisation.name},
            )
            return [state for (state,) in await cursor.fetchall()]


@pytest.fixture(scope="module")
def calls(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SmallCalls]:
    dsn, port = create_database(server.dsn, "calls_uploads", template), free_port()
    process = Calls(
        dsn,
        {
            "BATCHMILL_ARTIFACTS": str(tmp_path_factory.mktemp("uploads") / "artifacts"),
            "CALLS_MAX_FILES": str(MAX_FILES),
            "CALLS_MAX_BYTES": str(MAX_BYTES),
            "CALLS_TRANSCRIPTION_URL": f"http://127.0.0.1:{port}",
        },
    )

    async def start() -> None:
        async with Mill(dsn, migrate=True, schemas=[CALLS]):
            await process.start()

    asyncio.run(start())
    yield SmallCalls(process, dsn, port)
    asyncio.run(process.end(signal.SIGKILL))
    drop_database(server.dsn, "calls_uploads")


@pytest.fixture
async def organisation(calls: SmallCalls) -> Organisation:
    return await calls.organisation()


class Frame(NamedTuple):
    """A message of a stream. One without a name only has an id."""

    id: str
    name: str | None = None
    data: Any = None


class Received(NamedTuple):
    status: int
    frames: list[Frame]

    @property
    def names(self) -> list[str]:
        return [frame.name for frame in self.frames if frame.name]


async def follow(organisation: Organisation, path: str, after: str | None = None) -> Received:
    """Reads a stream to its end."""
    headers = {} if after is None else {"Last-Event-ID": after}
    async with organisation.client() as client:
        answer = await client.get(path, headers=headers)
    return Received(answer.status_code, [*frames_in(answer.text)])


def frames_in(text: str) -> Iterator[Frame]:
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "id" in fields:
            yield Frame(fields["id"], fields.get("event"), json.loads(fields.get("data", "null")))


async def post(
    organisation: Organisation, *recordings: tuple[str, bytes], key: str, **fields: str
) -> httpx.Response:
    """An upload with an idempotency key."""
    parts = [("recordings", each) for each in recordings]
    async with organisation.client() as client:
        return await client.post(
            "/api/calls", files=parts, data=fields, headers={"Idempotency-Key": key}
        )


# The stream


async def test_the_stream_of_an_upload_ends_and_resumes_after_every_event(
    calls: SmallCalls, organisation: Organisation
) -> None:
    async with calls.transcribing():
        answer = await organisation.upload(
            ("a.wav", SHORT), ("b.wav", NOT_AUDIO), provider="openai"
        )
        path = answer.json()["streamUrl"]
        whole = await follow(organisation, path)
    ends = {frame.data["id"]: frame.name for frame in whole.frames if frame.data}
    assert ends == dict(
        zip((call["id"] for call in answer.json()["calls"]), ("done", "failed"), strict=True)
    )
    done = (await organisation.get(f"/api/calls/{answer.json()['calls'][0]['id']}")).json()
    assert done["usage"] == {"transcribed_seconds": "2"}
    assert await follow(organisation, path) == whole
    for at, frame in enumerate(whole.frames[:-1]):
        rest = await follow(organisation, path, frame.id)
        assert rest == (200, whole.frames[at + 1 :])
    assert await follow(organisation, path, whole.frames[-1].id) == (204, [])


async def test_the_stream_of_an_upload_resumes_exactly_after_a_call_was_deleted(
    calls: SmallCalls, organisation: Organisation
) -> None:
    """The feed keeps the numbers of the deleted events. Another server has none of them in its
    memory."""
    answer = (await organisation.upload(("a.wav", NOT_AUDIO), ("b.wav", NOT_AUDIO))).json()
    path = answer["streamUrl"]
    whole = (await follow(organisation, path)).frames
    deleted = answer["calls"][0]["id"]
    assert (await organisation.delete(f"/api/calls/{deleted}")).status_code == 204
    async with Calls(calls.dsn) as server:
        elsewhere = Organisation(organisation.name, organisation.key, server.url)
        left = (await follow(elsewhere, path)).frames
        assert left == [frame for frame in whole if frame in left] != whole
        for at, frame in enumerate(whole):
            rest = [each for each in whole[at + 1 :] if each in left]
            expected = (200, rest) if rest else (204, [])
            assert await follow(elsewhere, path, frame.id) == expected


async def test_a_retry_is_followed_with_a_new_stream(organisation: Organisation) -> None:
    answer = (await organisation.upload(("a.wav", NOT_AUDIO), ("b.wav", NOT_AUDIO))).json()
    path, call = answer["streamUrl"], answer["calls"][1]["id"]
    before = await follow(organisation, path)
    last = before.frames[-1].id
    assert (await follow(organisation, path, last)).status == 204
    await organisation.post(f"/api/calls/{call}/retry")
    again = await follow(organisation, path, last)
    assert (again.status, again.names[-1]) == (200, "failed")
    assert {frame.data["id"] for frame in again.frames if frame.data} == {call}
    # A manual retry is not reported as an automatic retry.
    assert again.frames[0].name is None and again.frames[1] == Frame(
        again.frames[1].id,
        "stage",
        {"id": call, "status": "processing", "stage": "extract_audio"},
    )
    assert "retrying" not in again.names
    assert await follow(organisation, path) == (200, before.frames + again.frames)
    assert (await follow(organisation, path, again.frames[-1].id)).status == 204


async def test_a_deleted_call_does_not_keep_the_stream_of_its_upload_open(
    organisation: Organisation,
) -> None:
    answer = (await organisation.upload(("a.wav", NOT_AUDIO), ("b.wav", NOT_AUDIO))).json()
    path = answer["streamUrl"]
    before = await follow(organisation, path)
    ended = [frame.data["id"] for frame in before.frames if frame.name == "failed"]
    assert (await organisation.delete(f"/api/calls/{ended[0]}")).status_code == 204
    again = await follow(organisation, path)
    assert (again.status, again.frames[-1]) == (200, before.frames[-1])
    assert (await organisation.delete(f"/api/calls/{ended[1]}")).status_code == 204
    assert (await follow(organisation, path)).status == 404


async def test_only_its_organisation_can_follow_an_upload(
    calls: SmallCalls, organisation: Organisation
) -> None:
    answer = (await organisation.upload(("a.wav", NOT_AUDIO))).json()
    path = answer["streamUrl"]
    assert (await follow(organisation, path)).status == 200
    other = await calls.organisation()
    assert refused(await other.get(path)) == (404, "not_found")
    nobody = Organisation("", "", organisation.url)
    assert refused(await nobody.get(path)) == (401, "not_authenticated")
    assert refused(await organisation.get(f"/api/uploads/{uuid4()}/stream")) == (404, "not_found")


# Limits


@pytest.mark.parametrize(
    ("recordings", "fields", "expected"),
    [
        ([("a.wav", SHORT)] * 3, {}, (413, "too_large")),
        ([("a.wav", SHORT)] * 4, {}, (413, "too_large")),
        ([("a.wav", b"x" * (MAX_BYTES + 1))], {}, (413, "artifact_too_large")),
        # A transcript is not counted as a recording.
        ([("a.wav", SHORT)] * 2, {"words": WORDS}, (400, "bad_request")),
        ([("a.wav", SHORT)], {"words": WORDS, "provider": "openai"}, (400, "bad_request")),
    ],
)
async def test_an_upload_over_a_limit_stores_nothing(
    calls: SmallCalls,
    organisation: Organisation,
    recordings: list[tuple[str, bytes]],
    fields: dict[str, Any],
    expected: tuple[int, str],
) -> None:
    assert refused(await organisation.upload(*recordings, **fields)) == expected
    assert await stored(calls, organisation) == 0
    assert (await organisation.get("/api/calls")).json()["calls"] == []


async def test_a_body_over_the_limit_is_refused(
    calls: SmallCalls, organisation: Organisation
) -> None:
    async with organisation.client() as client:
        large = await client.post("/api/calls?name=a.wav", content=b"x" * (MAX_BYTES + 1))
        assert refused(large) == (413, "artifact_too_large")
        empty = await client.post("/api/calls?name=a.wav", content=b"")
        assert refused(empty) == (422, "EMPTY_FILE")
        assert empty.json()["detail"].startswith("a.wav is empty.")
        assert await stored(calls, organisation) == 0
        whole = await client.post("/api/calls?name=a.wav", content=b"x" * MAX_BYTES)
        assert whole.status_code == 202


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("name=a.wav&language=xx", "audio/wav"),
        ("provider=speechkit&language=en", "multipart/form-data; boundary=x"),
    ],
)
async def test_options_in_the_address_are_refused_before_the_body_arrives(
    calls: SmallCalls, organisation: Organisation, query: str, kind: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", calls.server.port)
    headers = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {organisation.key}",
        "Content-Type": kind,
        "Content-Length": str(MAX_BYTES),
    }
    lines = [f"POST /api/calls?{query} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    # No byte of the body follows.
    assert await reader.readline() == b"HTTP/1.1 422 Unprocessable Entity\r\n"
    writer.close()


async def test_an_upload_that_fails_keeps_its_own_error(dsn: str, tmp_path: Path) -> None:
    """Another request has deleted the file meanwhile, so this one cannot delete it."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": SHORT, "more_body": False}

    scope = {"type": "http", "method": "POST", "headers": [], "query_string": b"name=a.wav"}
    async with Mill(dsn, migrate=True, artifacts=tmp_path / "artifacts") as mill:
        client = mill.as_tenant("acme")
        with pytest.raises(ZeroDivisionError):
            async with body_of(Request(scope, receive), client) as files:
                await client.artifacts.delete(files.recordings[0])
                raise ZeroDivisionError


# Requests that are repeated


async def test_a_repeated_request_shows_how_far_its_calls_are(
    calls: SmallCalls, organisation: Organisation
) -> None:
    recordings = [("a.wav", SHORT), ("b.wav", NOT_AUDIO)]
    async with calls.transcribing():
        one = (await post(organisation, *recordings, key="k", provider="openai")).json()
        await follow(organisation, one["streamUrl"])
    other = (await post(organisation, *recordings, key="k", provider="openai")).json()
    states = [(call["status"], call["stage"]) for call in other["calls"]]
    assert states == [("done", "analyze"), ("failed", "extract_audio")]
    unchanged = [{**call, "status": "queued", "stage": "extract_audio"} for call in other["calls"]]
    assert one == {**other, "calls": unchanged}
    # Four files of the call that is done, and the recording of the one that failed.
    await until_stored(calls, organisation, 5)


async def test_a_key_may_have_500_characters(calls: SmallCalls, organisation: Organisation) -> None:
    async with calls.paused("calls.extract_audio"):
        answers = [await post(organisation, ("a.wav", SHORT), key="k" * 500) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [202, 202]
        assert answers[0].json() == answers[1].json()
        (call,) = answers[0].json()["calls"]
        await organisation.post(f"/api/calls/{call['id']}/cancel")


async def test_another_request_with_the_same_key_is_refused(
    calls: SmallCalls, organisation: Organisation
) -> None:
    first = [("a.wav", SHORT), ("b.wav", NOT_AUDIO)]
    async with calls.paused("calls.extract_audio"):
        answer = await post(organisation, *first, key="k")
        assert answer.status_code == 202
        for recordings, fields in (
            ([("a.wav", tone(1)), first[1]], {}),
            ([("c.wav", SHORT), first[1]], {}),
            ([*reversed(first)], {}),
            ([first[0]], {}),
            (first, {"provider": "openai"}),
            (first, {"language": "en-US"}),
        ):
            again = await post(organisation, *recordings, key="k", **fields)
            assert refused(again) == (422, "idempotency_conflict")
        assert (await post(organisation, first[0], key="one")).status_code == 202
        again = await post(organisation, *first, key="one")
        assert refused(again) == (422, "idempotency_conflict")
        assert len((await organisation.get("/api/calls")).json()["calls"]) == 3
        assert await stored(calls, organisation) == 3
        other = await calls.organisation()
        assert (await post(other, ("c.wav", SHORT), key="k")).status_code == 202
        # Nobody waits for these calls.
        for owner in (organisation, other):
            for call in (await owner.get("/api/calls")).json()["calls"]:
                await owner.post(f"/api/calls/{call['id']}/cancel")


# Deleting


async def test_deleting_a_cancelled_call_cancels_its_operation(
    calls: SmallCalls, organisation: Organisation
) -> None:
    """The delete comes before the callback of the cancelled call, which would cancel it too."""
    async with calls.paused(OPERATION, "calls.settle"):
        id = (await organisation.upload(("a.wav", SHORT), provider="openai")).json()["calls"][0][
            "id"
        ]
        await until_stage(organisation, id, "transcribe_poll")
        assert (await organisation.delete(f"/api/calls/{id}")).status_code == 409
        assert await calls.operations(organisation) == ["ready"]
        await organisation.post(f"/api/calls/{id}/cancel")
        assert (await organisation.delete(f"/api/calls/{id}")).status_code == 204
        assert await calls.operations(organisation) == ["cancelled"]


async def test_deleting_a_call_deletes_the_transcript_of_its_operation(
    calls: SmallCalls, organisation: Organisation
) -> None:
    async with calls.transcribing(), calls.paused("calls.transcribe_poll", "calls.settle"):
        id = (await organisation.upload(("a.wav", SHORT), provider="openai")).json()["calls"][0][
            "id"
        ]
        while await calls.operations(organisation) != ["completed"]:
            await asyncio.sleep(0.02)
        await organisation.post(f"/api/calls/{id}/cancel")
        assert (await organisation.delete(f"/api/calls/{id}")).status_code == 204
        await until_stored(calls, organisation, 0)


async def until_stage(organisation: Organisation, id: str, stage: str) -> None:
    async with (
        organisation.client() as client,
        client.stream("GET", f"/api/calls/{id}/stream") as stream,
    ):
        async for event in events_in(stream):
            if event["data"].get("stage") == stage:
                return


# Transcripts


async def test_a_transcript_is_written_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long transcript takes seconds, during which the server would answer no request."""
    threads = list[int]()

    def formatted(transcript: Transcript, format: str) -> str:
        threads.append(threading.get_ident())
        return transcript.text

    monkeypatch.setattr(routes, "formatted", formatted)
    segment = Segment(speaker=1, start=0, end=1, text="Hello.")
    given = Transcript(provider="manual", language="en", duration=1, speakers=1, segments=[segment])
    assert await routes.rendered(given.model_dump_json().encode(), "txt") == b"Hello."
    assert threads != [threading.get_ident()]


async def test_a_transcript_that_is_not_a_file_is_refused(organisation: Organisation) -> None:
    """It would be ignored, and the recording would be transcribed by the default provider."""
    texts: list[Any] = [{"transcript": "Agent: Hello."}, {"transcript": "x", "provider": "manual"}]
    for given in texts:
        answer = await organisation.upload(("a.wav", SHORT), **given)
        assert (answer.status_code, answer.json()["detail"]) == (
            400,
            "transcript must be a file of the form, not a text.",
        )
