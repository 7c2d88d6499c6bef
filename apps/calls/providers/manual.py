"""The transcript that a user gives. There is no operation: the first look reads the file."""

import asyncio

from apps.calls.models import Recording, Transcript
from apps.calls.providers.contract import OperationFailed, ProviderNotConfigured
from apps.calls.transcript import check_size, read_transcript
from batchmill import Client, Job

OPERATION = "given"


class ManualProvider:
    name = "manual"
    interval = 1.0

    def longest(self, duration: float) -> float:
        return 60.0

    async def check(self, mill: Client, language: str) -> None:
        """Every language is accepted, because nobody has to understand it here."""

    async def start(
        self, job: Job, recording: Recording, token: str, *, after: str | None = None
    ) -> str:
        if recording.transcript is None:
            raise ProviderNotConfigured("No transcript was given. Send it together with the file.")
        return OPERATION

    async def look(self, job: Job, recording: Recording, operation: str) -> Transcript:
        if operation != OPERATION or recording.transcript is None:
            raise OperationFailed("The operation does not exist.")
        # The size in the payload comes from the client, so it is not trusted.
        check_size((await job.artifacts.get(recording.transcript)).size)
        given = await job.artifacts.read(recording.transcript)
        # In a thread, because a long transcript takes seconds.
        return await asyncio.to_thread(
            read_transcript, given, language=recording.language, duration=recording.duration
        )

    async def cancel(self, mill: Client, operation: str) -> None:
        """Nothing runs."""

    async def release(self, mill: Client, operation: str) -> None:
        """There is no copy: the file belongs to the call."""
