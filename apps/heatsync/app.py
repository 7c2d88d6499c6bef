"""The application: HeatSync's API and page, and the mill behind them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from string import Template

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from apps.heatsync import mail
from apps.heatsync.answers import answer_unknown_route
from apps.heatsync.routes import router
from apps.heatsync.tasks import extract, forget, mill, settings
from batchmill import WorkerOptions
from batchmill.config import ServiceSettings
from batchmill.service import PAGE_HEADERS, add_components, service_router

# One more than a visitor may use, so that the next visitor need not wait.
READERS = max(settings.per_visitor + 1, os.cpu_count() or 1)
# There are more slots than all stages can use, so no stage blocks another one. The lease is short,
# so that the jobs of a killed server soon run again.
WORKER = WorkerOptions(
    concurrency=READERS + settings.total + 20,
    processes=READERS,
    pools={extract.name: READERS},
    lease=10,
    grace=5,
)
# Strangers may come through a proxy on this machine, so a local address does not mean an operator.
SETTINGS = ServiceSettings(require_key=True)
STATIC = files("apps.heatsync") / "static"


@asynccontextmanager
async def with_cleanup_schedule(_: FastAPI) -> AsyncIterator[None]:
    await mill.schedules.save("heatsync.forget", "17 3 * * *", forget)
    yield


app = FastAPI(
    title="HeatSync",
    description="Extracts a swimmer's events from heat sheets.",
    lifespan=with_cleanup_schedule,
)
app.include_router(router)
app.include_router(service_router(mill, settings=SETTINGS, worker=WORKER), prefix="/mill")
app.add_exception_handler(HTTPException, answer_unknown_route)
add_components(app)
app.mount("/static", StaticFiles(directory=str(STATIC)))


@app.get("/", include_in_schema=False)
@app.get("/batches/{id}", include_in_schema=False)
async def get_page() -> Response:
    page = Template((STATIC / "index.html").read_text())
    offered = "yes" if mail.is_set_up(mill) else "no"
    return HTMLResponse(page.substitute(mail=offered), headers=PAGE_HEADERS)
