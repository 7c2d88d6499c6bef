"""The stages of a call on a real worker, from the start of an operation on.

The providers talk to a server with the protocols and the faults of the real ones, which counts what
was paid. Retries are immediate, and looks follow each other closely.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from apps.calls import app, mill, operations, routes, tasks
from apps.calls.analysis import Analysis
from apps.calls.models import CallResult, ProviderName, Recording, Transcript
from apps.calls.providers.registry import read_providers
from apps.calls.settings import TranscriptionSettings
from apps.calls.tables import CALLS
from batchmill import (
    Batch,
    BatchState,
    BatchSummary,
    Client,
    Conflict,
    DatabaseUnavailable,
    Event,
    JobRecord,
    Mill,
    ModelClient,
    NotFound,
    WorkerOptions,
)
from tests.apps.calls.conftest import SHORT, WORDS, Calls
from tests.apps.calls.fake_speechkit import FakeSpeechKit
from tests.apps.calls.providers.speech import SECONDS, generated, spoken_call
from tests.apps.calls.test_analysis_writer import PATH, answers, point
from tests.artifacts.conftest import object_server, objects
from tests.artifacts.objects import ObjectServer
from tests.fetch.site import Site, answer
from tests.library.tools import rows, until

__all__ = ["object_server", "objects"]

MANY = 1_000_000
TENANT = "acme"
OPERATIONS = "select number, failure, ended_at is not null from calls.operations order by number"
# The files that operations of the engine have left.
COPIES = """select a.name from batchmill.artifacts a
    join calls.operations o on o.operation = a.job_id::text where a.state = 'kept'"""
SETTLED = "select count(*) from batchmill.finished where task = 'calls.settle'"
INTERVAL = 0.02


@dataclass
class Stages:
    """A mill with the tasks of the application, on which a test runs a worker."""

    mill: Mill
    sql: psycopg.Connection[Any]

    def running(self, **options: Any) -> Any:
        return self.mill.running(WorkerOptions(**{"processes": 1, "grace": 1, **options}))

    async def stored(self, content: bytes, name: str) -> Any:
        return (await self.mill.artifacts.save(name, content, tenant=TENANT)).reference

    async def submit(
        self,
        provider: ProviderName = "speechkit",
        *,
        audio: bytes = b"OggS",
        words: bytes | None = None,
        **fields: Any,
    ) -> Batch:
        """A call whose audio is extracted, with its row."""
        stored = await self.stored(audio, "audio.ogg")
        recording = Recording(
            **{"name": "call", "language": "en", "duration": SECONDS, "channels": 2, **fields},
            provider=provider,
            audio=stored,
            peaks=stored,
            transcript=None if words is None else await self.stored(words, "words.txt"),
        )
        async with self.mill.transaction() as conn:
            batch = await self.mill.submit(
                tasks.transcribe_start,
                [recording],
                connection=conn,
                tenant=TENANT,
                on_finish=tasks.settle,
            )
            row = recording.model_dump(include={"name", "provider", "language"})
            row |= {"tenant": TENANT, "upload": uuid4(), "upload_size": 1}
            await CALLS.rows(conn, "add_call", id=batch.id, **row)
        return batch

    async def manual(self) -> Batch:
        return await self.submit("manual", words=WORDS)

    async def result(self, batch: Batch) -> CallResult:
        (value,) = (await batch.results()).values
        return value

    async def failed(self, batch: Batch) -> JobRecord:
        (job,) = (await batch.results()).failed
        return job

    def operations(self) -> list[tuple[Any, ...]]:
        """Number, failure and whether it has ended."""
        return rows(self.sql, OPERATIONS)

    async def until_settled(self, times: int = 1) -> None:
        """Waits until the callbacks of so many ended calls have run."""
        await until(lambda: rows(self.sql, SETTLED) == [(times,)])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    with FakeSpeechKit() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        for name, provider in read_providers().items():
            provider.interval = INTERVAL
            monkeypatch.setitem(mill.providers, name, provider)
        yield server


@pytest.fixture
async def stages(
    dsn: str, sql: psycopg.Connection[Any], objects: str, fake: FakeSpeechKit
) -> AsyncIterator[Stages]:
    own = Mill(dsn, migrate=True, schemas=[CALLS], artifacts=objects)
    for name, task in mill.mill.tasks.items():
        own.tasks[name] = replace(task, retry=replace(task.retry, base=0))
    async with own:
        yield Stages(own, sql)


async def until_looked(fake: FakeSpeechKit) -> None:
    await until(lambda: fake.counts["requests"].get("look", 0) > 0)


async def progress_of(batch: Batch) -> list[tuple[str, float | None]]:
    """Messages and percents of the stage that looks."""
    return [
        (event.data["message"], event.data["percent"])
        async for event in batch.events()
        if event.type == "job_progress" and event.data["stage"] == "transcribe_poll"
    ]


async def until_event(batch: Batch, condition: Callable[[Event], bool]) -> None:
    async for event in batch.events():
        if condition(event):
            return
    raise AssertionError("The call ended before that event.")


# Looking


async def test_a_call_is_transcribed_and_counted(stages: Stages, fake: FakeSpeechKit) -> None:
    fake.behave(looks=2)
    async with stages.running():
        batch = await stages.submit()
        result = await stages.result(batch)
    transcript = Transcript.model_validate_json(await stages.mill.artifacts.read(result.transcript))
    assert "Platinum Motors" in transcript.text
    assert await batch.usage() == {"transcribed_seconds": SECONDS}
    assert (fake.paid, stages.operations()) == (1, [(1, None, True)])


async def test_a_transcript_of_the_user_is_not_counted_as_transcribed(stages: Stages) -> None:
    async with stages.running():
        batch = await stages.manual()
        await stages.result(batch)
    assert await batch.usage() == {}


async def test_an_operation_in_flight_holds_no_worker(stages: Stages, fake: FakeSpeechKit) -> None:
    fake.behave(looks=MANY)
    async with stages.running(concurrency=1):
        first = await stages.submit()
        await until_looked(fake)
        await stages.result(await stages.manual())
        assert (await first.get()).state is BatchState.PROCESSING
        fake.behave(looks=0)
        await stages.result(first)


async def test_looks_report_progress_only_if_it_has_changed(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.behave(looks=5)
    async with stages.running():
        batch = await stages.submit()
        await stages.result(batch)
    assert fake.counts["requests"]["look"] == 6
    assert await progress_of(batch) == [("Transcribing call", None)]


async def test_the_progress_of_a_local_operation_reaches_the_stream_of_the_call(
    stages: Stages, tmp_path: Path
) -> None:
    async with stages.running():
        batch = await stages.submit("local", audio=spoken_call(tmp_path))
        result = await stages.result(batch)
    transcript = Transcript.model_validate_json(await stages.mill.artifacts.read(result.transcript))
    assert "Jack" in transcript.text
    shown = await progress_of(batch)
    assert ("Transcribing on this machine", 0) in shown
    assert len(shown) == len(set(shown)), "Each percent is reported once."
    assert rows(stages.sql, COPIES) == []


async def test_an_operation_that_waits_for_its_turn_is_looked_at_less_often(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    await stages.mill.limits.pause("task:calls_operations.openai")
    async with stages.running():
        batch = await stages.submit("openai")
        await until(stages.operations)
        stages.sql.execute("update calls.operations set started_at = started_at - interval '1 h'")
        await until_snoozed(batch, lambda seconds: 14 < seconds < 16)
        await batch.cancel()
        await stages.until_settled()
    assert await progress_of(batch) == [("Waiting to transcribe call", None)]


async def until_snoozed(batch: Batch, condition: Callable[[float], bool]) -> None:
    await until_event(
        batch, lambda event: event.type == "job_snoozed" and condition(event.data["delay"])
    )


@pytest.mark.parametrize(
    ("asked", "least", "most"), [("1000", 999, 1_001), ("80000", 3_599, 3_601)]
)
async def test_a_busy_provider_is_looked_at_when_it_asks_for_it_within_an_hour(
    stages: Stages, fake: FakeSpeechKit, asked: str, least: float, most: float
) -> None:
    fake.fail("look", "busy", retry_after=asked)
    async with stages.running():
        batch = await stages.submit()
        await until_snoozed(batch, lambda seconds: least < seconds < most)
        (job,) = [job async for job in batch.jobs()]
    assert least - 60 < (job.run_at - datetime.now(UTC)).total_seconds() < most
    assert job.attempts == [], "A look that fails is not a failed attempt."
    assert stages.operations() == [(1, None, False)]


async def test_looks_that_fail_are_shown_and_logged_once_for_each_reason(
    stages: Stages, fake: FakeSpeechKit, caplog: pytest.LogCaptureFixture
) -> None:
    fake.fail("look", "broken", times=3)
    fake.fail("look", "garbage", times=2)
    fake.behave(looks=1)
    fake.fail("look", "broken", times=2, after=1)
    async with stages.running():
        batch = await stages.submit()
        with caplog.at_level(logging.WARNING):
            await stages.result(batch)
    assert await progress_of(batch) == [
        ("SpeechKit is not available; trying again", None),
        ("SpeechKit's answer is not valid; trying again", None),
        ("Transcribing call", None),
        ("SpeechKit is not available; trying again", None),
    ]
    ((operation,),) = rows(stages.sql, "select operation from calls.operations")
    logged = [each.getMessage() for each in caplog.records if operation in each.getMessage()]
    assert [line.partition("trying again: ")[2] for line in logged] == [
        "SpeechKit is not available.",
        "SpeechKit's answer is not valid.",
        "SpeechKit is not available.",
    ]


# Operations that fail


async def test_a_failed_operation_is_followed_by_another_one(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.fail("look", "empty")
    async with stages.running():
        batch = await stages.submit()
        await stages.result(batch)
        (job,) = [job async for job in batch.jobs()]
    assert [attempt["code"] for attempt in job.attempts] == ["OPERATION_FAILED"]
    failure = "The operation failed at SpeechKit."
    assert (fake.paid, stages.operations()) == (2, [(1, failure, True), (2, None, True)])


async def test_the_retry_policy_bounds_the_operations(stages: Stages, fake: FakeSpeechKit) -> None:
    fake.fail("look", "empty", times=MANY)
    async with stages.running():
        job = await stages.failed(await stages.submit())
    assert job.error is not None and job.error.code == "OPERATION_FAILED"
    assert (job.attempt, fake.paid) == (tasks.RETRY.attempts, tasks.RETRY.attempts)


async def test_an_operation_that_never_ends_is_given_up(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.behave(looks=MANY)
    async with stages.running():
        batch = await stages.submit()
        await until_looked(fake)
        stages.sql.execute("update calls.operations set started_at = started_at - interval '2 d'")
        await until(lambda: fake.counts["cancelled"])
        fake.behave(looks=0)
        await stages.result(batch)
    failure = "The provider has not finished the transcript within 1440 minutes."
    assert (fake.paid, stages.operations()) == (2, [(1, failure, True), (2, None, True)])


async def test_a_wrong_address_buys_no_other_operation(stages: Stages, fake: FakeSpeechKit) -> None:
    fake.fail("look", "nowhere")
    async with stages.running():
        batch = await stages.submit()
        job = await stages.failed(batch)
        assert job.error is not None and job.error.code == "PROVIDER_REJECTED"
        assert stages.operations() == [(1, None, False)]
        await batch.retry()
        await stages.result(batch)
    assert fake.paid == 1


async def test_an_answer_that_is_not_understood_buys_no_other_operation(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    """The operation has its transcript, which is paid for."""
    fake.fail("look", "unknown")
    async with stages.running():
        batch = await stages.submit()
        job = await stages.failed(batch)
        assert job.error is not None and job.error.code == "ANSWER_NOT_UNDERSTOOD"
        assert (job.attempt, stages.operations()) == (1, [(1, None, False)])
        await batch.retry()
        await stages.result(batch)
    assert (fake.paid, fake.counts["requests"]["look"]) == (1, 2)


async def test_a_retry_by_hand_continues_an_operation_of_the_engine(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    """The service is not available for the second channel until the operation has failed."""
    attempts = stages.mill.tasks["calls_operations.openai"].retry.attempts
    fake.fail("transcribe", "broken", times=attempts, after=1)
    async with stages.running():
        batch = await stages.submit("openai", audio=stereo())
        job = await stages.failed(batch)
        assert job.error is not None and job.error.code == "OPERATION_REFUSED"
        assert job.error.message == "The transcription service is not available."
        await batch.retry()
        await stages.result(batch)
        await until(lambda: rows(stages.sql, COPIES) == [])
    assert [sent["file"] for sent in fake.counts["transcriptions"]] == [0, 1]


def stereo() -> bytes:
    return generated("aevalsrc=0.3*sin(440*2*PI*t)|0.3*sin(330*2*PI*t):s=48000:d=1")


# Cancelling


async def test_a_cancelled_call_cancels_its_operation(stages: Stages, fake: FakeSpeechKit) -> None:
    fake.behave(looks=MANY)
    async with stages.running():
        batch = await stages.submit()
        await until_looked(fake)
        await batch.cancel()
        await stages.until_settled()
    assert fake.counts["cancelled"] == 1
    assert stages.operations() == [(1, "The call was cancelled.", True)]


@pytest.mark.parametrize("patience", [60.0, 0.0])
async def test_a_call_that_is_cancelled_while_its_operation_starts_cancels_it(
    stages: Stages, fake: FakeSpeechKit, patience: float
) -> None:
    """The provider answers after the cancel. Without patience, the callback of the call has run by
    then."""
    fake.behave(looks=MANY)
    fake.fail("start", "held")
    async with stages.running(patience=patience):
        batch = await stages.submit()
        await until(lambda: fake.paid == 1)
        await batch.cancel()
        if not patience:
            await stages.until_settled()
        assert fake.counts["cancelled"] == 0
        fake.release()
        await until(lambda: fake.counts["cancelled"] == 1)
        await stages.until_settled()
    assert stages.operations() == [(1, "The call was cancelled.", True)]


async def test_a_call_that_is_still_stopping_cannot_be_deleted(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.fail("start", "held")
    caller: Any = SimpleNamespace(client=stages.mill.as_tenant(TENANT))
    async with stages.running(patience=60):
        batch = await stages.submit()
        await until(lambda: fake.paid == 1)
        with pytest.raises(Conflict, match="has not ended. Cancel it first"):
            await routes.delete_call(caller, batch.id)
        await batch.cancel()
        with pytest.raises(Conflict, match="is still stopping. Try again in a few seconds"):
            await routes.delete_call(caller, batch.id)
        fake.release()
        await stages.until_settled()
        await routes.delete_call(caller, batch.id)


async def test_a_call_that_is_deleted_while_its_operation_starts_cancels_it(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.fail("start", "held")
    async with stages.running():
        batch = await stages.submit()
        await until(lambda: fake.paid == 1)
        await CALLS.rows(stages.mill, "delete_call", id=batch.id)
        fake.release()
        job = await stages.failed(batch)
    assert job.error is not None and job.error.code == "NOT_A_CALL"
    assert fake.counts["cancelled"] == 1


async def test_a_cancelled_call_leaves_no_copy_of_its_transcript(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    """The answer for the first channel is stored, and the request for the second one runs."""
    fake.fail("transcribe", "silent", after=1)
    async with stages.running():
        batch = await stages.submit("openai", audio=stereo())
        await until(lambda: fake.counts["requests"].get("transcribe") == 2)
        await batch.cancel()
        await stages.until_settled()
        assert rows(stages.sql, COPIES) == []


async def test_copies_of_earlier_operations_are_released_too(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.fail("transcribe", "silent", after=1)
    async with stages.running():
        batch = await stages.submit("openai", audio=stereo())
        await until(lambda: fake.counts["requests"].get("transcribe") == 2)
        ((operation,),) = rows(stages.sql, "select operation from calls.operations")
        await stages.mill.job(int(operation)).cancel()
        await stages.result(batch)
        await until(lambda: rows(stages.sql, COPIES) == [])
    assert len(stages.operations()) == 2


async def test_a_call_is_abandoned_for_its_own_organisation_only(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.fail("look", "forbidden")
    async with stages.running():
        batch = await stages.submit()
        await stages.failed(batch)
        assert stages.operations() == [(1, None, False)]
        other = stages.mill.as_tenant("another")
        await operations.abandon(other, batch.id)
        summary = summary_of(batch.id, BatchState.CANCELLED)
        settling = await other.enqueue(tasks.settle, summary)
        await settling.result()
        assert fake.counts["cancelled"] == 0
        for _ in range(2):
            await operations.abandon(stages.mill.as_tenant(TENANT), batch.id)
    assert (fake.counts["cancelled"], fake.counts["requests"]["cancel"]) == (1, 1)
    assert stages.operations() == [(1, "The call was cancelled.", True)]


async def test_a_call_that_is_being_deleted_cannot_be_retried(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    """A retry would buy another operation, because the first one is cancelled."""
    fake.fail("look", "forbidden")
    fake.fail("cancel", "held")
    async with stages.running():
        batch = await stages.submit()
        await stages.failed(batch)
        caller: Any = SimpleNamespace(client=stages.mill.as_tenant(TENANT))
        deleting = asyncio.create_task(routes.delete_call(caller, batch.id))
        await until(lambda: fake.counts["cancelled"])
        with pytest.raises(NotFound):
            await batch.retry()
        fake.release()
        await deleting
    assert fake.paid == 1
    assert rows(stages.sql, "select from calls.calls") == []


# Erasing


async def test_operations_of_an_organisation_that_is_erased_are_cancelled(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.behave(looks=MANY)
    async with stages.running():
        await stages.result(await stages.manual())
        await stages.submit()
        await until_looked(fake)
        await stages.mill.tenants.erase(TENANT)
        assert rows(stages.sql, "select provider from calls.orphans") == [("speechkit",)]
        await (await stages.mill.enqueue(tasks.cancel_orphans)).result()
    assert fake.counts["cancelled"] == 1
    assert rows(stages.sql, "select from calls.orphans") == []


async def test_an_operation_that_starts_during_the_erasure_is_cancelled(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    fake.fail("start", "held")
    async with stages.running():
        await stages.submit()
        await until(lambda: fake.paid == 1)
        erasing = asyncio.create_task(stages.mill.tenants.erase(TENANT))
        await until(lambda: rows(stages.sql, "select from batchmill.erasures"))
        fake.release()
        await until(lambda: fake.counts["cancelled"] == 1)
        await erasing
    assert rows(stages.sql, "select from calls.orphans") == []


def summary_of(batch: UUID, state: BatchState) -> BatchSummary:
    return BatchSummary(
        batch_id=batch,
        tenant=TENANT,
        state=state,
        total=1,
        completed=0,
        failed=0,
        cancelled=1,
        generation=1,
    )


# Rows


async def test_calls_that_are_gone_are_forgotten_with_their_operations(
    stages: Stages, fake: FakeSpeechKit
) -> None:
    """One call was deleted while its server died, one is new, and one still exists."""
    fake.fail("look", "forbidden", times=2)
    async with stages.running():
        gone, new = [await stages.submit() for _ in range(2)]
        for batch in (gone, new):
            await stages.failed(batch)
            await batch.delete()
        exists = await stages.manual()
        await stages.result(exists)
        stages.sql.execute(
            "update calls.calls set created_at = created_at - interval '2 d' where id <> %s",
            [new.id],
        )
        await (await stages.mill.enqueue(tasks.forget)).result()
    left = rows(stages.sql, "select id from calls.calls")
    assert {id for (id,) in left} == {new.id, exists.id}
    assert fake.counts["cancelled"] == 1


async def test_a_call_that_cannot_be_forgotten_does_not_keep_the_others(
    stages: Stages, fake: FakeSpeechKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.fail("look", "forbidden", times=2)
    release, refused = mill.providers["speechkit"].release, list[str]()

    async def release_all_but_one(client: Client, operation: str) -> None:
        if not refused:
            refused.append(operation)
            raise DatabaseUnavailable("The database does not answer.")
        await release(client, operation)

    async with stages.running():
        for batch in [await stages.submit() for _ in range(2)]:
            await stages.failed(batch)
            await batch.delete()
        stages.sql.execute("update calls.calls set created_at = created_at - interval '2 d'")
        monkeypatch.setattr(mill.providers["speechkit"], "release", release_all_but_one)
        await (await stages.mill.enqueue(tasks.forget)).result()
        assert rows(stages.sql, "select operation from calls.operations") == [(refused[0],)]
        await (await stages.mill.enqueue(tasks.forget)).result()
    assert rows(stages.sql, "select from calls.calls") == []


# The model


@asynccontextmanager
async def with_model(page: bytes, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    async with Site() as site:
        site.pages[PATH] = page
        model = ModelClient(site.url("/v1"), "gpt-4o-mini", api_key="sk-secret")
        monkeypatch.setattr(tasks, "model", model)
        yield site


async def analysis_of(stages: Stages, batch: Batch) -> Analysis:
    result = await stages.result(batch)
    return Analysis.model_validate_json(await stages.mill.artifacts.read(result.analysis))


async def test_a_model_writes_the_summary_and_its_tokens_are_counted(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = answers([point("The boiler is broken.", "My boiler is broken.")], [])
    async with with_model(page, monkeypatch) as site, stages.running():
        batch = await stages.manual()
        analysis = await analysis_of(stages, batch)
        assert len(site.requests) == 1
    assert [item.text for item in analysis.summary.items] == ["The boiler is broken."]
    assert analysis.summary.method == "model:gpt-4o-mini"
    assert await batch.usage() == {"prompt_tokens": 100, "completion_tokens": 10}


async def test_a_model_that_rejects_the_key_fails_no_call(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_model(answer(status=401), monkeypatch), stages.running():
        analysis = await analysis_of(stages, await stages.manual())
    assert analysis.model_error == "model_bad_status"
    assert analysis.summary.method == "textrank"


# Jobs that are no calls


async def test_a_batch_without_a_call_buys_nothing(
    dsn: str, objects: str, object_server: ObjectServer, fake: FakeSpeechKit
) -> None:
    """Every key that may submit can submit to the first stage through the engine's own API."""
    environment = {
        **object_server.environment,
        **fake.environment,
        "BATCHMILL_ARTIFACTS": objects,
        "CALLS_RETRY_SECONDS": "1",
        "SPEECHKIT_POLL_INTERVAL_MS": "20",
    }
    async with Mill(dsn, migrate=True, schemas=[CALLS]) as own, Calls(dsn, environment) as server:
        async with httpx.AsyncClient(base_url=f"{server.url}/mill/v1") as client:
            stored = await client.put("/artifacts", params={"name": "a.wav"}, content=SHORT)
            known = ("name", "media_type", "size", "sha256")
            file = {"artifact": stored.json()["id"], **{n: stored.json()[n] for n in known}}
            payload = {"name": "a", "provider": "speechkit", "language": "en-US", "file": file}
            body = {"task": "calls.extract_audio", "items": [payload]}
            submitted = await client.post("/batches", json=body)
            assert submitted.status_code == 202, submitted.text
        (job,) = (await own.batch(submitted.json()["id"]).results()).failed
    assert job.error is not None and job.error.code == "NOT_A_CALL"
    assert (job.attempt, fake.paid) == (1, 0)


# Settings


def test_a_failed_stage_is_retried_after_30_60_120_and_240_seconds() -> None:
    stages = ("extract_audio", "transcribe_start", "transcribe_poll", "analyze")
    for policy in [mill.mill.tasks[f"calls.{stage}"].retry for stage in stages]:
        delays = [policy.delay(attempt, random=0.9) for attempt in range(1, policy.attempts)]
        assert delays == [30, 60, 120, 240]
        assert policy.delay(1, random=0.9, retry_after=7_200) == 3_600
        assert policy.cap == 600


def test_speechkit_is_asked_every_ten_seconds() -> None:
    assert read_providers()["speechkit"].interval == 10


def test_stages_have_slots_beside_conversions_and_operations() -> None:
    settings = TranscriptionSettings.read()
    assert app.WORKER.concurrency >= app.WORKER.processes + settings.concurrency + 20
    assert app.WORKER.grace == mill.settings.grace_seconds == 30


async def test_a_start_waits_for_its_answer_although_it_is_interrupted() -> None:
    answered = asyncio.Event()
    work = asyncio.create_task(operations.to_its_end(answered.wait()))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.sleep(0)
    assert not work.done()
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await work
