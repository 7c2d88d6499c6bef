"""The application: the API, the pages, and the mill behind them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from apps.resumes.answers import error_response
from apps.resumes.mill import mill, settings
from apps.resumes.rendering import check_fonts
from apps.resumes.routes import router
from apps.resumes.tasks import PREVIEWS, cleanup, export, preview
from apps.resumes.views import API
from batchmill import Quota, WorkerOptions
from batchmill.service import PAGE_HEADERS, add_components, service_router

log = logging.getLogger("apps.resumes")

STATIC = files("apps.resumes") / "static"
# A preview never waits for an export, and an export never for a preview.
PROCESSES = settings.concurrency + PREVIEWS
WORKER = WorkerOptions(
    concurrency=20,
    processes=PROCESSES,
    warm_processes=PROCESSES,
    pools={export.name: settings.concurrency, preview.name: PREVIEWS},
    lease=settings.lease_seconds,
    grace=5,
)
EVERYONE = "*"
# Previews are pictures inside answers.
POLICY = PAGE_HEADERS["Content-Security-Policy"]
HEADERS = PAGE_HEADERS | {"Content-Security-Policy": f"{POLICY}; img-src 'self' data:"}


@asynccontextmanager
async def with_schedule_and_quota(_: FastAPI) -> AsyncIterator[None]:
    for missing in await asyncio.to_thread(check_fonts):
        log.warning("This machine lacks %s. Run bin/install-servers apps.", missing)
    await mill.schedules.save("resumes.cleanup", "7 * * * *", cleanup)
    await set_quota()
    yield


async def set_quota() -> None:
    """The quota of users that have none of their own, unless the operator has set one."""
    if all(quota.tenant != EVERYONE for quota in await mill.keys.quotas()):
        await mill.keys.set_quota(
            Quota(
                tenant=EVERYONE,
                storage_bytes=settings.storage_bytes,
                operations_per_day=settings.operations_per_day,
            )
        )


app = FastAPI(
    title="Resumes",
    description="Exports JSON Resume documents to PDF.",
    lifespan=with_schedule_and_quota,
)
app.include_router(router)
app.include_router(service_router(mill, worker=WORKER), prefix="/mill")
add_components(app)
app.mount("/static", StaticFiles(directory=str(STATIC)))


@app.exception_handler(HTTPException)
async def answer_unknown(request: Request, error: HTTPException) -> Response:
    """Paths and methods that the API does not have are errors in its format."""
    if not f"{request.url.path}/".startswith(f"{API}/"):
        return await http_exception_handler(request, error)
    response = error_response(error)
    response.headers.update(error.headers or {})
    return response


@app.get("/", include_in_schema=False)
@app.get("/documents/{id}", include_in_schema=False)
async def get_page(id: str | None = None) -> Response:
    name = "editor.html" if id else "index.html"
    return HTMLResponse((STATIC / name).read_text(), headers=HEADERS)
