"""A worker process that asks the providers of `SITES_PROVIDERS`, for tests that kill it.

python -m tests.apps.sites.providers.worker DSN
"""

import asyncio
import sys

from apps.sites.answers import ProviderAnswers
from apps.sites.models import Prompt
from apps.sites.providers import ask_all, declare_limits, read_providers
from batchmill import Job, Mill, Retry, WorkerOptions

ATTEMPTS = 20
PROMPTS = [Prompt(id=f"p{n}", text=f"Question {n}?", kind="generic") for n in range(1, 8)]


def mill_on(dsn: str) -> Mill:
    mill = Mill(dsn)
    providers = read_providers()
    declare_limits(mill, providers)

    async def report(done: int, total: int) -> None: ...

    @mill.task(name="analyse", retry=Retry(attempts=ATTEMPTS, base=0, jitter=0))
    async def analyse(job: Job) -> list[ProviderAnswers]:
        return await ask_all(job, providers, PROMPTS, report, attempts=ATTEMPTS)

    return mill


async def main(dsn: str) -> None:
    async with mill_on(dsn).running(WorkerOptions(lease=1, concurrency=20)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
