"""What a request uploads: a form with recordings, or one recording as the body."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

from fastapi import Request

from apps.calls.audio import EmptyFile
from apps.calls.mill import providers, settings
from apps.calls.models import SubmittedRecording
from apps.calls.tables import CALLS
from apps.calls.tasks import extract_audio, settle
from batchmill import Artifact, ArtifactRecord, Batch, Client, Item
from batchmill.service import BadRequest, Caller, Form

# Uploads with the same idempotency key have the same id.
NAMESPACE = UUID("6f6ad0e3-5f0b-4f7e-9a53-2f1c3c0f6a11")
OPTIONS = ("provider", "language")


class Files(NamedTuple):
    """The stored files of a request, and its options."""

    recordings: list[ArtifactRecord]
    transcripts: list[ArtifactRecord]
    options: Mapping[str, str]


class UploadedCall(NamedTuple):
    batch: Batch
    name: str


class Upload(NamedTuple):
    id: UUID
    calls: list[UploadedCall]


async def upload(request: Request, caller: Caller, key: str | None) -> Upload:
    """Stores the files and submits their calls. If anything is refused, nothing is stored."""
    id = uuid5(NAMESPACE, f"{caller.tenant} {key}") if key else uuid4()
    is_form = request.headers.get("content-type", "").lower().startswith("multipart/form-data")
    async with (form_of if is_form else body_of)(request, caller.client) as files:
        recordings = submitted(files)
        for recording in recordings:
            await check(caller.client, recording)
        return Upload(id, await submit(caller, id, key, recordings))


@asynccontextmanager
async def form_of(request: Request, client: Client) -> AsyncIterator[Files]:
    form = Form(
        request,
        client,
        fields=OPTIONS,
        files=("recordings", "transcript"),
        max_files=settings.max_files,
        max_file=settings.max_bytes,
    )
    async with form.read():
        yield Files(
            [file.record for file in form.files if file.field == "recordings"],
            [file.record for file in form.files if file.field == "transcript"],
            {**request.query_params, **form.fields},
        )


@asynccontextmanager
async def body_of(request: Request, client: Client) -> AsyncIterator[Files]:
    name = request.query_params.get("name", "").strip()
    if not name:
        raise BadRequest("Send a form with the field recordings, or a body with ?name=.")
    stored = await client.artifacts.save(name, request.stream(), at_most=settings.max_bytes)
    try:
        yield Files([stored], [], request.query_params)
    except BaseException:
        await client.artifacts.delete(stored)
        raise


def submitted(files: Files) -> list[SubmittedRecording]:
    if not files.recordings:
        raise BadRequest("Send at least one file in the field recordings.")
    provider = files.options.get("provider") or settings.provider
    if provider not in providers:
        raise BadRequest(f'provider is one of {", ".join(providers)}, not "{provider}".')
    if (len(files.transcripts), len(files.recordings)) != (1, 1) and provider == "manual":
        raise BadRequest(
            "The provider manual needs one recording, and its text in the field transcript."
        )
    return [
        SubmittedRecording.model_validate(
            {
                "name": file.name,
                "provider": provider,
                "language": files.options.get("language") or settings.language,
                "file": file.reference,
                "transcript": files.transcripts[0].reference if provider == "manual" else None,
            }
        )
        for file in files.recordings
    ]


async def check(client: Client, recording: SubmittedRecording) -> None:
    """Refuses at once what the stages would refuse later."""
    if recording.file.size == 0:
        raise EmptyFile
    await providers[recording.provider].check(client, recording.language)


async def submit(
    caller: Caller, id: UUID, key: str | None, recordings: list[SubmittedRecording]
) -> list[UploadedCall]:
    """Submits all calls in one transaction. A request that is repeated gets the calls of the first
    one, and its files are deleted."""
    client, calls = caller.client, list[UploadedCall]()
    labels = {"application": "calls", "upload": str(id)}
    async with client.transaction(idempotency_key=key) as conn:
        for number, recording in enumerate(recordings):
            options: Any = {"idempotency_key": f"{key} {number}"} if key else {}
            batch = await client.submit(
                extract_audio,
                [Item(recording, digest=digest_of(recording))],
                connection=conn,
                labels=labels,
                on_finish=settle,
                **options,
            )
            await CALLS.rows(conn, "add_call", **row_of(batch, caller, id, recording))
            calls.append(UploadedCall(batch, recording.name))
    for call, recording in zip(calls, recordings, strict=True):
        if call.batch.is_existing:
            for file in files_of(recording):
                await client.artifacts.delete(file)
    return calls


def files_of(recording: SubmittedRecording) -> list[Artifact]:
    return [file for file in (recording.file, recording.transcript) if file is not None]


def digest_of(recording: SubmittedRecording) -> str:
    """What makes two requests the same: the content of the files, not their ids."""
    files = [file.sha256 for file in files_of(recording)]
    return json.dumps([recording.name, recording.provider, recording.language, *files])


def row_of(batch: Batch, caller: Caller, id: UUID, recording: SubmittedRecording) -> dict[str, Any]:
    return {
        "id": batch.id,
        "tenant": caller.tenant,
        "upload": id,
        "name": recording.name,
        "provider": recording.provider,
        "language": recording.language,
    }
