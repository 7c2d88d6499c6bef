"""Calls providers from handlers of real jobs."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from apps.calls.models import ProviderName, Recording, Transcript
from apps.calls.providers import Pending, Provider
from apps.calls.providers.enqueued import EnqueuedProvider
from batchmill import ArtifactRecord, Job, JobRecord, Mill, Retry
from tests.apps.calls.providers.speech import SECONDS

T = TypeVar("T")

PATIENCE = 100.0


class Bench:
    def __init__(self, mill: Mill):
        self.mill = mill
        self._acts: dict[int, tuple[Callable[[Job], Awaitable[Any]], asyncio.Future[Any]]] = {}
        self._numbers = itertools.count()
        self._started = set[int]()
        self._task = mill.task(name="bench.act", retry=Retry(attempts=1))(self._act)

    async def _act(self, job: Job, number: int) -> None:
        act, outcome = self._acts.pop(number)
        try:
            outcome.set_result(await act(job))
        except Exception as error:
            outcome.set_exception(error)

    async def inside(self, tenant: str, act: Callable[[Job], Awaitable[T]]) -> T:
        """What `act` returns or raises in a handler of the tenant."""
        number, outcome = next(self._numbers), asyncio.get_running_loop().create_future()
        self._acts[number] = act, outcome
        await self.mill.enqueue(self._task, number, tenant=tenant)
        return await asyncio.wait_for(outcome, PATIENCE)

    async def recording(
        self, tenant: str, audio: bytes, provider: ProviderName = "local", **fields: Any
    ) -> Recording:
        stored = await self.mill.artifacts.save("audio.ogg", audio, tenant=tenant)
        given = {"name": "call", "language": "en", "duration": SECONDS, "channels": 2, **fields}
        reference = stored.reference
        return Recording(provider=provider, audio=reference, peaks=reference, **given)

    async def start(
        self,
        provider: Provider,
        tenant: str,
        recording: Recording,
        token: str = "1",
        after: str | None = None,
    ) -> str:
        operation = await self.inside(
            tenant, lambda job: provider.start(job, recording, token, after=after)
        )
        if isinstance(provider, EnqueuedProvider):
            self._started.add(int(operation))
        return operation

    async def look(
        self, provider: Provider, tenant: str, recording: Recording, operation: str
    ) -> Transcript | Pending:
        return await self.inside(tenant, lambda job: provider.look(job, recording, operation))

    async def ended(self, operation: str) -> JobRecord:
        """Waits for an operation that is a job."""
        handle = self.mill.job(int(operation))
        record = await handle._ended()
        assert record.state.is_final
        return record

    async def only_file(self, operation: str) -> ArtifactRecord:
        """Waits until the upkeep has deleted what the operation released."""
        while True:
            files = await self.mill.artifacts.of_job(int(operation))
            if len(files) == 1:
                return files[0]
            await asyncio.sleep(0.02)

    async def settle(self) -> None:
        """Ends the operations that a test has started, so that the next test is alone."""
        for id in self._started:
            await self.mill.job(id).cancel()
            await self.ended(str(id))
        self._started.clear()

    async def until(self, operation: str, condition: Callable[[JobRecord], object]) -> JobRecord:
        """Polls, because no event announces what happens inside a single job."""
        async with asyncio.timeout(PATIENCE):
            while not condition(record := await self.mill.job(int(operation)).get()):
                await asyncio.sleep(0.01)
        return record
