"""The API: uploads, states, files, streams, search, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import psycopg
import pytest

from apps.calls.tables import CALLS
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
from tests.apps.calls.providers.speech import SECONDS, spoken_call

STAGES = ["extract_audio", "transcribe_start", "transcribe_poll", "analyze"]


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


async def stored(calls: SharedCalls, organisation: Organisation) -> int:
    """The number of files that the organisation has in the store."""
    async with await psycopg.AsyncConnection.connect(calls.dsn) as conn:
        cursor = await conn.execute(
            "select count(*) from batchmill.artifacts where tenant = %s and state <> 'gone'",
            [organisation.name],
        )
        return (await cursor.fetchone() or (0,))[0]


async def until_stored(calls: SharedCalls, organisation: Organisation, count: int) -> None:
    while await stored(calls, organisation) != count:
        await asyncio.sleep(0.02)


async def test_a_call_goes_through_its_stages_and_has_its_files(
    calls: SharedCalls, organisation: Organisation
) -> None:
    answer = await organisation.upload(("boiler.wav", SHORT), words=WORDS, language="en")
    assert answer.status_code == 202
    (call,) = answer.json()["calls"]
    assert call == {
        "id": call["id"],
        "name": "boiler.wav",
        "status": "queued",
        "stage": "extract_audio",
        "streamUrl": f"/api/calls/{call['id']}/stream",
    }
    events = await organisation.events(call["streamUrl"])
    stages = [each["data"]["stage"] for each in events if each["event"] == "stage"]
    assert list(dict.fromkeys(stages)) == STAGES
    assert events[-1]["event"] == "done"
    found = (await organisation.get(f"/api/calls/{call['id']}")).json()
    assert (found["status"], found["stage"], found["error"]) == ("done", "analyze", None)
    assert (found["uploadId"], found["channels"]) == (answer.json()["uploadId"], 2)
    assert found["duration"] == pytest.approx(2, abs=0.1)
    assert found["usage"] == {}
    assert [each["kind"] for each in found["files"]] == ["audio", "peaks", "transcript", "analysis"]
    for file in found["files"]:
        async with httpx.AsyncClient(base_url=calls.server.url) as anyone:
            linked = await anyone.get(file["url"])
        assert (linked.status_code, len(linked.content)) == (200, file["size"])
    # The upkeep deletes the recording itself, which is no longer needed.
    await until_stored(calls, organisation, 5)
    analysis = (await organisation.get(f"/api/calls/{call['id']}/analysis")).json()
    assert [each["quote"]["text"] for each in analysis["questions"]["items"]] == [
        "Maple Heating, how can I help?"
    ]


async def test_a_recording_is_transcribed_on_this_machine_through_all_stages(
    organisation: Organisation, tmp_path: Path
) -> None:
    answer = await organisation.upload(("jack.ogg", spoken_call(tmp_path)), provider="local")
    assert answer.status_code == 202, answer.text
    (call,) = answer.json()["calls"]
    events = await organisation.events(call["streamUrl"])
    stages = [each["data"]["stage"] for each in events if each["event"] == "stage"]
    assert list(dict.fromkeys(stages)) == STAGES
    path = f"/api/calls/{call['id']}"
    found = (await organisation.get(path)).json()
    assert (found["status"], found["provider"], found["channels"]) == ("done", "local", 2)
    assert float(found["usage"]["transcribed_seconds"]) == pytest.approx(SECONDS, abs=0.1)
    text = (await organisation.get(f"{path}/transcript?format=txt")).text
    said = {name: line for name, _, line in (line.partition(": ") for line in text.splitlines())}
    assert said.keys() == {"Speaker 1", "Speaker 2"}
    assert said["Speaker 1"].startswith("Thank you for calling")
    assert "my name is Jack" in said["Speaker 2"]
    analysis = (await organisation.get(f"{path}/analysis")).json()
    (question,) = analysis["questions"]["items"]
    assert question["quote"]["text"] == "How can I help you today?"
    assert [each["seconds"] > 1 for each in analysis["talk"]["speakers"]] == [True, True]
    (other,) = (await organisation.get("/api/calls?q=jack")).json()["calls"]
    assert other["id"] == call["id"]


async def test_a_transcript_has_four_formats(organisation: Organisation) -> None:
    id = await organisation.done()
    path = f"/api/calls/{id}/transcript"
    found = {
        format: await organisation.get(f"{path}?format={format}")
        for format in ("json", "txt", "srt", "vtt")
    }
    assert [segment["speaker"] for segment in found["json"].json()["segments"]] == [1, 2]
    assert found["txt"].text.startswith("Speaker 1: Maple Heating, how can I help?\n")
    assert found["srt"].text.startswith("1\n00:00:00,")
    assert found["vtt"].text.startswith("WEBVTT\n")
    assert (await organisation.get(f"{path}?format=pdf")).status_code == 422
    assert (await organisation.get(path)).json() == found["json"].json()


async def test_audio_is_sent_in_ranges(organisation: Organisation) -> None:
    id = await organisation.done()
    whole = await organisation.get(f"/api/calls/{id}/audio")
    assert whole.headers["content-type"] == "audio/ogg"
    assert whole.content.startswith(b"OggS")
    part = await organisation.get(f"/api/calls/{id}/audio", Range="bytes=4-9")
    assert (part.status_code, part.content) == (206, whole.content[4:10])
    peaks = (await organisation.get(f"/api/calls/{id}/peaks")).json()
    assert len(peaks) == 2 and max(peaks[0]) > 0


async def test_one_recording_can_be_the_body(organisation: Organisation) -> None:
    async with organisation.client() as client:
        answer = await client.post("/api/calls?name=a%20b.wav&language=xx", content=SHORT)
        assert refused(answer) == (422, "UNSUPPORTED_LANGUAGE")
        assert (await client.post("/api/calls", content=SHORT)).status_code == 400
        answer = await client.post("/api/calls?name=a%20b.wav", content=SHORT)
    assert answer.status_code == 202
    assert answer.json()["calls"][0]["name"] == "a b.wav"
    await organisation.post(f"/api/calls/{answer.json()['calls'][0]['id']}/cancel")


@pytest.mark.parametrize(
    ("recordings", "fields", "expected"),
    [
        ([("a.wav", b"")], {}, (422, "EMPTY_FILE")),
        ([("a.wav", SHORT), ("b.wav", b"")], {}, (422, "EMPTY_FILE")),
        ([("a.wav", SHORT)], {"language": "xx"}, (422, "UNSUPPORTED_LANGUAGE")),
        ([("a.wav", SHORT)], {"provider": "speechkit"}, (422, "PROVIDER_NOT_CONFIGURED")),
        ([("a.wav", SHORT)], {"provider": "openai"}, (422, "PROVIDER_NOT_CONFIGURED")),
        ([("a.wav", SHORT)], {"provider": "manual"}, (400, "bad_request")),
        ([("a.wav", SHORT)], {"provider": "nobody"}, (400, "bad_request")),
        ([("a.wav", SHORT)], {"language": "x"}, (400, "bad_request")),
        ([("a.wav", SHORT)], {"language": "x" * 21}, (400, "bad_request")),
        ([("a.wav", SHORT)], {"words": WORDS, "language": "no words"}, (400, "bad_request")),
        ([("a.wav", SHORT)], {"words": b"x" * 20_000_001}, (422, "INVALID_TRANSCRIPT")),
        ([], {"language": "en"}, (400, "bad_request")),
    ],
)
async def test_a_refused_upload_stores_nothing(
    calls: SharedCalls,
    organisation: Organisation,
    recordings: list[tuple[str, bytes]],
    fields: dict[str, Any],
    expected: tuple[int, str],
) -> None:
    assert refused(await organisation.upload(*recordings, **fields)) == expected
    assert await stored(calls, organisation) == 0
    assert (await organisation.get("/api/calls")).json()["calls"] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"This is no recording.", "NOT_AUDIO"),
        (SHORT[: len(SHORT) // 2], "TRUNCATED"),
        (tone(amplitude=0), "SILENT_CHANNEL"),
    ],
)
async def test_a_bad_recording_fails_with_its_code_and_leaves_no_file(
    calls: SharedCalls, organisation: Organisation, content: bytes, code: str
) -> None:
    answer = await organisation.upload(("a.wav", content), words=WORDS)
    call = await organisation.ended(answer.json()["calls"][0]["id"])
    assert (call["status"], call["stage"], call["error"]["code"]) == ("failed", STAGES[0], code)
    assert call["files"] == []
    # The upload and the transcript, for a retry.
    assert await stored(calls, organisation) == 2


async def test_a_failed_stage_is_retried_with_its_input(organisation: Organisation) -> None:
    answer = await organisation.upload(("a.wav", SHORT), words=b"1\n00:00:05,000 --> broken\nHi\n")
    id = answer.json()["calls"][0]["id"]
    failed = await organisation.ended(id)
    assert (failed["stage"], failed["error"]["code"]) == ("transcribe_poll", "INVALID_TRANSCRIPT")
    retried = await organisation.post(f"/api/calls/{id}/retry")
    assert retried.json()["stage"] == "transcribe_poll"
    again = await organisation.ended(id)
    assert (again["status"], again["error"]) == ("failed", failed["error"])


async def test_the_stream_of_a_call_resumes_after_every_event(organisation: Organisation) -> None:
    id = await organisation.submit()
    events = await organisation.events(f"/api/calls/{id}/stream")
    for place, event in enumerate(events):
        rest = await organisation.events(f"/api/calls/{id}/stream", event["id"])
        assert rest == events[place + 1 :]


async def first(
    client: httpx.AsyncClient, path: str, count: int, after: str | None = None
) -> list[dict[str, Any]]:
    """The first events of a stream that does not end."""
    headers = {} if after is None else {"Last-Event-ID": after}
    found: list[dict[str, Any]] = []
    async with client.stream("GET", path, headers=headers) as stream:
        async for event in events_in(stream):
            found.append(event)
            if len(found) == count:
                return found
    return found


async def test_a_cancelled_call_ends_and_can_be_deleted(
    calls: SharedCalls, organisation: Organisation
) -> None:
    async with Mill(calls.dsn, schemas=[CALLS]) as mill:
        await mill.limits.pause(f"tenant:{organisation.name}")
        id = await organisation.submit()
        assert (await organisation.delete(f"/api/calls/{id}")).status_code == 409
        cancelled = await organisation.post(f"/api/calls/{id}/cancel")
        assert cancelled.json()["status"] == "cancelled"
        await mill.limits.resume(f"tenant:{organisation.name}")
    assert (await organisation.delete(f"/api/calls/{id}")).status_code == 204
    for path in ("", "/stream", "/audio", "/transcript"):
        assert (await organisation.get(f"/api/calls/{id}{path}")).status_code == 404
    assert await stored(calls, organisation) == 0


async def test_calls_are_listed_in_pages_and_found_by_their_words(
    organisation: Organisation,
) -> None:
    ids = [await organisation.done(name=f"{n}.wav") for n in range(3)]
    other = await organisation.done(words=b"Agent: Good morning, this is about your invoices.\n")
    newest = [other, *reversed(ids)]
    page = (await organisation.get("/api/calls?count=2")).json()
    assert [call["id"] for call in page["calls"]] == newest[:2]
    assert quote(page["next"]) == page["next"], "It can be put into an address as it is."
    rest = (await organisation.get(f"/api/calls?before={page['next']}")).json()
    assert ([call["id"] for call in rest["calls"]], rest["next"]) == (newest[2:], None)
    assert (await organisation.get("/api/calls?before=nonsense")).status_code == 400
    (found,) = (await organisation.get("/api/calls?q=invoice")).json()["calls"]
    assert found["id"] == other
    assert [each["text"] for each in found["moments"]] == [
        "Good morning, this is about your invoices."
    ]
    assert len((await organisation.get("/api/calls?q=boilers")).json()["calls"]) == 3
    for words in ("nothing", "' or 1=1 --", "a & | !", '"unclosed'):
        async with organisation.client() as client:
            assert (await client.get("/api/calls", params={"q": words})).json()["calls"] == []
    assert len((await organisation.get("/api/calls?status=done")).json()["calls"]) == 4
    assert (await organisation.get("/api/calls?status=failed")).json()["calls"] == []


async def test_a_repeated_request_gets_the_same_calls(
    calls: SharedCalls, organisation: Organisation
) -> None:
    async def send() -> list[str]:
        parts = [("recordings", ("a.wav", SHORT)), ("transcript", ("t.txt", WORDS))]
        async with organisation.client() as client:
            answer = await client.post(
                "/api/calls?provider=manual", files=parts, headers={"Idempotency-Key": "k1"}
            )
            assert answer.status_code == 202, answer.text
            return [call["id"] for call in answer.json()["calls"]]

    assert await send() == await send()
    (call,) = (await organisation.get("/api/calls")).json()["calls"]
    await organisation.ended(call["id"])
    await until_stored(calls, organisation, 5)


async def test_another_organisation_sees_nothing(
    calls: SharedCalls, organisation: Organisation
) -> None:
    answer = (await organisation.upload(("a.wav", SHORT), words=WORDS)).json()
    id, upload = answer["calls"][0]["id"], answer["uploadId"]
    files = (await organisation.ended(id))["files"]
    other = await calls.organisation()
    assert (await other.get("/api/calls")).json()["calls"] == []
    assert (await other.get("/api/calls?q=boiler")).json()["calls"] == []
    assert (await other.get(f"/api/calls?upload={upload}")).json()["calls"] == []
    for path in ("", "/transcript", "/analysis", "/audio", "/peaks", "/stream"):
        assert (await other.get(f"/api/calls/{id}{path}")).status_code == 404
    for path in ("retry", "cancel"):
        assert (await other.post(f"/api/calls/{id}/{path}")).status_code == 404
    assert (await other.delete(f"/api/calls/{id}")).status_code == 404
    for file in files:
        path = file["url"].partition("?")[0]
        assert (await other.get(path)).status_code == 404
    mine = await other.submit(name="mine.wav")
    async with other.client() as client:
        (event,) = await first(client, "/api/stream", 1)
        assert event["data"]["id"] == mine
        later = (await client.get(f"/api/calls/{mine}")).json()
    assert later["name"] == "mine.wav"


async def test_a_key_that_only_reads_changes_nothing(
    calls: SharedCalls, organisation: Organisation
) -> None:
    reader = await calls.organisation("read")
    answer = await reader.upload(("a.wav", SHORT), words=WORDS)
    assert refused(answer) == (403, "forbidden")
    assert (await reader.get("/api/calls")).status_code == 200
    for path in (f"/api/calls/{uuid4()}/cancel", f"/api/calls/{uuid4()}/retry"):
        assert (await reader.post(path)).status_code == 403


async def test_a_new_user_needs_no_key_and_an_organisation_can_be_erased(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    files = tmp_path / "artifacts"
    environment = {"BATCHMILL_ARTIFACTS": str(files)}
    opened = Mill(dsn, migrate=True, schemas=[CALLS], artifacts=files)
    async with opened as mill, Calls(dsn, environment) as server:
        nobody = Organisation("default", "", server.url)
        async with server.client() as client:
            assert (await client.get("/api/session")).json()["orgId"] == "default"
        schedules = {each.name for each in await mill.schedules.all()}
        assert schedules == {"calls.forget", "calls.cancel_orphans"}
        key, _ = await mill.keys.create("web", tenant="acme")
        assert (await nobody.get("/api/calls")).status_code == 401
        acme = Organisation("acme", key, server.url)
        await acme.done()
        await mill.tenants.erase("acme")
        assert await mill.tenants.remains("acme") == {}
        assert (await acme.get("/api/calls")).status_code == 401
        assert [path for path in files.rglob("*") if path.is_file()] == []
    for table in ("calls", "operations", "sentences", "transcripts"):
        assert sql.execute(f"select count(*) from calls.{table}").fetchone() == (0,)
