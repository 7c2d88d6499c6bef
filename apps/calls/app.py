"""The application: the API, the page, and the mill behind them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from urllib.parse import urlsplit

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from apps.calls.mill import mill, settings
from apps.calls.routes import router, session
from apps.calls.settings import LocalSettings, TranscriptionSettings
from apps.calls.tasks import cancel_orphans, forget
from batchmill import WorkerOptions
from batchmill.service import PAGE_HEADERS, add_components, service_router

STATIC = files("apps.calls") / "static"
PROCESSES = settings.converting + LocalSettings.read().operations
# Conversions, and operations that run as jobs, hold their slots for minutes. All other jobs are
# short, so 20 slots are enough for them.
LONG_SLOTS = PROCESSES + TranscriptionSettings.read().concurrency
WORKER = WorkerOptions(
    concurrency=settings.concurrency or LONG_SLOTS + 20,
    processes=PROCESSES,
    lease=settings.lease_seconds,
    grace=settings.grace_seconds,
)


@asynccontextmanager
async def with_schedules(_: FastAPI) -> AsyncIterator[None]:
    await mill.schedules.save("calls.forget", "23 3 * * *", forget)
    await mill.schedules.save("calls.cancel_orphans", "*/10 * * * *", cancel_orphans)
    yield


app = FastAPI(
    title="Calls",
    description="Transcribes and analyses recordings of calls.",
    lifespan=with_schedules,
)
app.include_router(session)
app.include_router(router)
app.include_router(service_router(mill, worker=WORKER), prefix="/mill")
add_components(app)
app.mount("/static", StaticFiles(directory=str(STATIC)))


@app.get("/", include_in_schema=False)
@app.get("/calls/{id}", include_in_schema=False)
async def get_page(id: str | None = None) -> Response:
    name = "call.html" if id else "index.html"
    return HTMLResponse((STATIC / name).read_text(), headers=await page_headers())


async def page_headers() -> dict[str, str]:
    """With an object store, the player of the page loads recordings from there."""
    url = await mill.storage.signed_url("check", 60)
    if url is None:
        return PAGE_HEADERS
    store = urlsplit(url)
    policy = PAGE_HEADERS["Content-Security-Policy"]
    media = f"media-src 'self' {store.scheme}://{store.netloc}"
    return PAGE_HEADERS | {"Content-Security-Policy": f"{policy}; {media}"}
