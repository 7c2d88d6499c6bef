"""One page that shows every shared component in every state, with a batch that really runs."""

import io
import math
import wave
from importlib.resources import files
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, FastAPI, Query, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from apps.components.tasks import NAMES, STAGES, Document, fetch, mill
from batchmill import JobRecord, WorkerOptions
from batchmill.service import (
    PAGE_HEADERS,
    EventStreams,
    GuardedRoute,
    LastEventId,
    Reader,
    Submitter,
    add_components,
    service_router,
)

STATIC = files("apps.components") / "static"
RATE = 8_000

app = FastAPI(title="Components", description="The shared components of pages on batchmill.")
api = APIRouter(prefix="/api/batches", route_class=GuardedRoute)


@app.get("/", include_in_schema=False)
async def get_page() -> Response:
    return HTMLResponse((STATIC / "index.html").read_text(), headers=PAGE_HEADERS)


@app.get("/tone.wav", include_in_schema=False)
async def get_tone() -> Response:
    """A second of sound, for the row with a player."""
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(RATE)
        sound.writeframes(bytes(128 + int(40 * math.sin(at / 3)) for at in range(RATE)))
    return Response(written.getvalue(), media_type="audio/wav")


@api.post("", status_code=202)
async def start(
    caller: Submitter, seconds: Annotated[float, Query(ge=0, le=60)] = 1.0
) -> dict[str, Any]:
    documents = [Document(name=name, seconds=seconds) for name in NAMES]
    return {"id": (await caller.client.submit(fetch, documents)).id}


@api.get("/{id}")
async def get_state(caller: Reader, id: UUID) -> dict[str, Any]:
    """Reads the batch before its jobs, so that the events after its last one miss nothing."""
    batch = caller.client.batch(id)
    record = await batch.get()
    jobs = [view(job) async for job in batch.jobs()]
    return {
        "state": record.state,
        "last_event": record.last_event,
        "is_over": record.finished_at is not None,
        "stages": STAGES,
        "jobs": jobs,
    }


def view(job: JobRecord) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.payload["name"],
        "task": job.task,
        "state": job.state,
        "progress": job.progress,
        "error": job.error.message if job.error else None,
        "result": job.result,
    }


@api.get("/{id}/stream")
async def stream(caller: Reader, streams: EventStreams, id: UUID, after: LastEventId) -> Response:
    return await streams.follow(caller, id, after)


@api.post("/{id}/cancel")
async def cancel(caller: Submitter, id: UUID) -> dict[str, Any]:
    return {"cancelled": await caller.client.batch(id).cancel()}


@api.post("/{id}/retry")
async def retry(caller: Submitter, id: UUID) -> dict[str, Any]:
    return {"retried": await caller.client.batch(id).retry()}


app.include_router(api)
# The lease is short, so that the jobs of a killed server soon run again.
app.include_router(service_router(mill, worker=WorkerOptions(lease=10, grace=5)), prefix="/mill")
add_components(app)
app.mount("/static", StaticFiles(directory=str(STATIC)))
