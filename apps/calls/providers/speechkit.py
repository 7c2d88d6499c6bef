"""Yandex SpeechKit, API v2: long-running recognition of a file in an object store.

SpeechKit reads the audio from Yandex Object Storage, with the rights of the service account of the
key. So `BATCHMILL_ARTIFACTS` has to be a bucket there. The link in the request is signed for as
long as an operation may take.

A second start with the same token sends the same `Idempotency-Key`. Yandex documents this header
for its other services, and says that SpeechKit ignores it. So there is a window: if a worker dies
after SpeechKit's answer and before the id is stored, or if the answer is lost, the next attempt
starts a second operation, which is paid too.
"""

import asyncio
import logging
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from apps.calls.models import Recording, Transcript
from apps.calls.providers.contract import (
    OperationFailed,
    OperationRefused,
    Pending,
    ProviderNotConfigured,
)
from apps.calls.providers.endpoint import (
    Answer,
    AnswerNotUnderstood,
    Endpoint,
    ProviderRejected,
    ProviderUnavailable,
    Reply,
    authorization,
    is_not_json,
    scrubbed,
)
from apps.calls.providers.languages import normal, primary, unsupported
from apps.calls.providers.recognition import (
    Operation,
    Problem,
    Refusal,
    recognised_transcript,
)
from apps.calls.settings import SpeechKitSettings
from batchmill import Client, Job, Permanent, Transient

log = logging.getLogger("calls.speechkit")

# SpeechKit promises a result within a day, also for deferred models.
LONGEST = 86_400.0
# The longest recording that it accepts, in seconds.
LONGEST_RECORDING = 4 * 3_600.0
READ_SECONDS = 60.0
MISSING = 404
# Codes of gRPC for requests that would be refused again.
REFUSALS = {
    3: "INVALID_ARGUMENT",
    5: "NOT_FOUND",
    7: "PERMISSION_DENIED",
    9: "FAILED_PRECONDITION",
    12: "UNIMPLEMENTED",
    16: "UNAUTHENTICATED",
}
# For a language without a region, or with one that is not listed, the first code is used.
CODES = (
    "auto", "de-DE", "en-US", "es-ES", "fi-FI", "fr-FR", "he-HE", "it-IT", "kk-KZ", "nl-NL",
    "pl-PL", "pt-PT", "pt-BR", "ru-RU", "sv-SE", "tr-TR", "uz-UZ",
)  # fmt: skip


class SpeechKitProvider:
    name = "speechkit"

    def __init__(self, settings: SpeechKitSettings):
        self.interval = settings.poll_interval_ms / 1_000
        self._settings = settings

    def longest(self, duration: float) -> float:
        return LONGEST

    async def check(self, mill: Client, language: str) -> None:
        self._endpoint()
        if code_of(language) is None:
            raise unsupported(self.name, language, CODES)
        if await mill.storage.signed_url("check", 60) is None:
            raise no_object_store()

    async def start(
        self, job: Job, recording: Recording, token: str, *, after: str | None = None
    ) -> str:
        if recording.duration > LONGEST_RECORDING:
            raise OperationRefused("SpeechKit accepts recordings of up to 4 hours.")
        answer = await self._endpoint().request(
            "POST",
            f"{self._settings.base_url}/speech/stt/v2/longRunningRecognize",
            headers={"Idempotency-Key": str(uuid5(NAMESPACE_URL, f"calls:{token}"))},
            json=await self._question(job, recording),
        )
        if not answer.is_success:
            raise OperationRefused("SpeechKit does not accept this recording.") from answer.reply
        return (await operation_in(answer)).id

    async def look(self, job: Job, recording: Recording, operation: str) -> Transcript | Pending:
        answer = await self._endpoint().request("GET", self._address(operation))
        if answer.status == MISSING and is_refusal(answer.content):
            raise OperationFailed("SpeechKit no longer has the operation.") from answer.reply
        if not answer.is_success:
            raise not_shown() from answer.reply
        found = await operation_in(answer)
        if not found.done:
            return Pending()
        if found.response is None:
            raise failure(found.error or Problem())
        return await asyncio.to_thread(recognised_transcript, found.response, recording, self.name)

    async def cancel(self, mill: Client, operation: str) -> None:
        """SpeechKit may go on in spite of it. Nothing depends on it, so errors are only logged."""
        try:
            await self._endpoint().request("POST", f"{self._address(operation)}:cancel")
        except (Transient, Permanent) as error:
            log.warning("The operation %s could not be cancelled: %s", operation, error)

    async def release(self, mill: Client, operation: str) -> None:
        """SpeechKit deletes its results after three days, and not earlier."""

    async def _question(self, job: Job, recording: Recording) -> dict[str, Any]:
        """A file in OGG says itself how many channels it has."""
        specification = {
            "languageCode": code_of(recording.language),
            "model": self._settings.model,
            "audioEncoding": "OGG_OPUS",
        }
        config: dict[str, Any] = {"specification": specification}
        if self._settings.folder_id:
            config["folderId"] = self._settings.folder_id
        return {"config": config, "audio": {"uri": await self._link(job, recording)}}

    async def _link(self, job: Job, recording: Recording) -> str:
        # The mill acts for all tenants. This reads only files of the job's tenant.
        record = await job.artifacts.get(recording.audio)
        expires_in = self.longest(recording.duration)
        if (url := await job.mill.artifacts.url_of_record(record, expires_in)) is None:
            raise no_object_store()
        return url

    def _endpoint(self) -> Endpoint:
        if not self._settings.api_key:
            raise ProviderNotConfigured(
                "SpeechKit has no key. Set SPEECHKIT_API_KEY to the API key of a service account."
            )
        key = authorization("Api-Key", self._settings.api_key, "SPEECHKIT_API_KEY")
        return Endpoint("SpeechKit", key, read=READ_SECONDS)

    def _address(self, operation: str) -> str:
        return f"{self._settings.operations_url}/operations/{quote(operation, safe='')}"


def code_of(language: str) -> str | None:
    """SpeechKit's code for a language, or None if it does not support the language."""
    exact = (code for code in CODES if normal(code) == normal(language))
    alike = (code for code in CODES if primary(code) == primary(language))
    return next(exact, None) or next(alike, None)


def not_shown() -> ProviderRejected:
    """A new operation would have to be paid for, although this one may still run."""
    return ProviderRejected(
        "SpeechKit did not return the operation. The operator has to check "
        "SPEECHKIT_OPERATIONS_URL and the proxies in front of it."
    )


def is_refusal(content: bytes) -> bool:
    """Whether SpeechKit itself has answered, and not a proxy or another server."""
    try:
        Refusal.model_validate_json(content)
    except ValidationError:
        return False
    return True


def no_object_store() -> ProviderNotConfigured:
    return ProviderNotConfigured(
        "SpeechKit reads recordings from an object store, but files are stored on a local disk. "
        "Set BATCHMILL_ARTIFACTS to a bucket, for example s3://bucket/folder."
    )


async def operation_in(answer: Answer) -> Operation:
    """In a thread, because the words of a long recording are megabytes of JSON."""
    try:
        return await asyncio.to_thread(Operation.model_validate_json, answer.content)
    except ValidationError as error:
        answer.reply.__cause__ = error
        if is_not_json(error):
            raise ProviderUnavailable("SpeechKit's answer is not valid.") from answer.reply
        raise AnswerNotUnderstood("SpeechKit") from answer.reply


def failure(problem: Problem) -> OperationFailed | OperationRefused:
    reply = Reply(f"{problem.code}: {scrubbed(problem.message.encode())}")
    if name := REFUSALS.get(problem.code):
        error = OperationRefused(f"SpeechKit refused this recording ({name}).")
    else:
        error = OperationFailed("The operation failed at SpeechKit.")
    error.__cause__ = reply
    return error
