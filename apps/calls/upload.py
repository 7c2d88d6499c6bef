"""What a request uploads: a form with recordings, or one recording as the body."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

from fastapi import Request
from pydantic import ValidationError

from apps.calls.audio import EmptyFile
from apps.calls.mill import providers, settings
from apps.calls.models import Choice, SubmittedRecording
from apps.calls.tables import CALLS
from apps.calls.tasks import extract_audio, settle
from apps.calls.transcript import check_size
from batchmill import Artifact, ArtifactRecord, Batch, Client, IdempotencyConflict, Item
from batchmill.service import BadRequest, Caller, Form, TooLarge

log = logging.getLogger("calls.upload")

# Uploads with the same idempotency key have the same id.
NAMESPACE = UUID("6f6ad0e3-5f0b-4f7e-9a53-2f1c3c0f6a11")
# What each option must be.
OPTIONS = {
    "provider": f"provider must be one of {', '.join(providers)}.",
    "language": "language must be a code with 2 to 20 characters, such as en or pt-BR.",
}


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
    client, query = caller.client, request.query_params
    is_form = request.headers.get("content-type", "").lower().startswith("multipart/form-data")
    if not is_form or query.keys() >= set(OPTIONS):
        # Invalid options are refused before the files arrive. If an option is missing here, a field
        # of the form may set it, so it is checked later.
        await chosen(client, query)
    async with (form_of if is_form else body_of)(request, client) as files:
        recordings = submitted(files, await chosen(client, files.options))
        try:
            return Upload(id, await submit(client, id, recordings, key))
        except IdempotencyConflict:
            # Each call has a key of its own, which the client does not know.
            raise IdempotencyConflict(
                f'The idempotency key "{key}" was used for another upload.'
            ) from None


@asynccontextmanager
async def form_of(request: Request, client: Client) -> AsyncIterator[Files]:
    form = Form(
        request,
        client,
        fields=[*OPTIONS, "transcript"],
        files=("recordings", "transcript"),
        # A transcript is not a recording, but is counted here.
        max_files=settings.max_files + 1,
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
        await asyncio.shield(discard(client, [stored.reference]))
        raise


async def discard(client: Client, files: Iterable[Artifact]) -> None:
    """Deletes files that no call needs. Errors are logged, and do not fail the request."""
    for file in files:
        try:
            await client.artifacts.delete(file)
        except Exception as error:
            log.warning(
                "The uploaded file %s is not deleted. If no call needs it, the upkeep deletes it "
                "after a day: %s",
                file.artifact,
                error,
            )


async def chosen(client: Client, options: Mapping[str, str]) -> Choice:
    """The options of an upload. Refuses at once what the stages would refuse later."""
    if "transcript" in options:
        raise BadRequest("transcript must be a file of the form, not a text.")
    try:
        choice = Choice.model_validate(
            {name: options.get(name) or getattr(settings, name) for name in OPTIONS}
        )
    except ValidationError as error:
        raise BadRequest(OPTIONS[str(error.errors()[0]["loc"][0])]) from None
    await providers[choice.provider].check(client, choice.language)
    return choice


def submitted(files: Files, choice: Choice) -> list[SubmittedRecording]:
    if not files.recordings:
        raise BadRequest("Send at least one file in the field recordings.")
    if len(files.recordings) > settings.max_files:
        raise TooLarge(
            f"The form has {len(files.recordings)} recordings. The limit is {settings.max_files}."
        )
    for file in files.recordings:
        if file.size == 0:
            raise EmptyFile(file.name)
    transcript = given_transcript(files, choice)
    return [
        SubmittedRecording(
            **choice.model_dump(), name=file.name, file=file.reference, transcript=transcript
        )
        for file in files.recordings
    ]


def given_transcript(files: Files, choice: Choice) -> Artifact | None:
    if choice.provider != "manual":
        if files.transcripts:
            raise BadRequest("A transcript is only for the provider manual. Send provider=manual.")
        return None
    if (len(files.transcripts), len(files.recordings)) != (1, 1):
        raise BadRequest(
            "The provider manual needs exactly one recording, and one file in the field transcript."
        )
    check_size(files.transcripts[0].size)
    return files.transcripts[0].reference


async def submit(
    client: Client, id: UUID, recordings: list[SubmittedRecording], key: str | None = None
) -> list[UploadedCall]:
    """Submits all calls in one transaction. A request that is repeated gets the calls of the first
    one, and its files are deleted."""
    calls = list[UploadedCall]()
    labels = {"application": "calls", "upload": str(id)}
    async with client.transaction(idempotency_key=key) as conn:
        for number, recording in enumerate(recordings):
            # A key may already have the greatest length, so the number is not appended to it.
            options: Any = {"idempotency_key": str(uuid5(id, str(number)))} if key else {}
            batch = await client.submit(
                extract_audio,
                [Item(recording, digest=digest_of(recording, len(recordings)))],
                connection=conn,
                labels=labels,
                on_finish=settle,
                **options,
            )
            await CALLS.rows(
                conn,
                "add_call",
                id=batch.id,
                tenant=client.tenant,
                upload=id,
                upload_size=len(recordings),
                **recording.model_dump(include={"name", "provider", "language"}),
            )
            calls.append(UploadedCall(batch, recording.name))
    for call, recording in zip(calls, recordings, strict=True):
        if call.batch.is_existing:
            await discard(client, uploaded_files(recording))
    return calls


def uploaded_files(recording: SubmittedRecording) -> list[Artifact]:
    return [file for file in (recording.file, recording.transcript) if file is not None]


def digest_of(recording: SubmittedRecording, count: int) -> str:
    """What makes two requests the same: the content of the files, not their ids. A request with
    more or fewer recordings is another one."""
    files = [file.sha256 for file in uploaded_files(recording)]
    return json.dumps([count, recording.name, recording.provider, recording.language, *files])
