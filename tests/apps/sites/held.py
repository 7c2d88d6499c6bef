"""The application with phases that tests hold, and with slots that are checked at once.

| variable | meaning |
|---|---|
| `HELD_URL` | each job of prompt-forming first waits until this address answers |
| `HELD_STUBBORN` | jobs of model-analysis wait for ever, and ignore the first cancellation |
| `HELD_RESET` | broken slots are reset while this file exists, instead of every 30 seconds |
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from apps.sites.app import WORKER, with_schedule
from apps.sites.mill import mill
from apps.sites.routes import router
from apps.sites.stages import AnalysedSite, FormedPrompts
from apps.sites.tasks import ask_models, form_prompts
from batchmill import Advance, Job
from batchmill.service import service_router
from batchmill.worker import processors, slots


async def held(job: Job, site: AnalysedSite) -> Advance:
    async with httpx.AsyncClient(timeout=None, trust_env=False) as client:
        await client.get(os.environ["HELD_URL"])
    return await form_prompts.function(job, site)


async def stubborn(job: Job, formed: FormedPrompts) -> Any:
    await job.progress("model-analysis", "Waiting", 55)
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


if "HELD_URL" in os.environ:
    mill.tasks[form_prompts.name] = replace(form_prompts, function=held)
if "HELD_STUBBORN" in os.environ:
    mill.tasks[ask_models.name] = replace(ask_models, function=stubborn)
if "HELD_RESET" in os.environ:
    reset = Path(os.environ["HELD_RESET"])
    processors.STEADY, slots.INTERVAL = 0.0, 0.05
    slots.SlotReporter._reset_is_due = lambda _: reset.exists()  # type: ignore[method-assign]

app = FastAPI(lifespan=with_schedule)
app.include_router(router)
app.include_router(
    service_router(mill, worker=replace(WORKER, patience=0.05, grace=1)), prefix="/mill"
)
