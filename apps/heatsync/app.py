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
from apps.heatsync.answers import tell_of_no_route
from apps.heatsync.routes import router
from apps.heatsync.tasks import extract, forget, mill, settings
from batchmill import WorkerOptions
from batchmill.config import ServiceSettings
from batchmill.service import service_router

# More than one visitor may have at once, so that there is one for the next visitor.
READERS = max(settings.per_visitor + 1, os.cpu_count() or 1)
# More than all stages have slots, so that none keeps another waiting. What a server that was killed
# had in hand is taken up again soon.
WORKER = WorkerOptions(
    concurrency=READERS + 3 * settings.extractions + 20,
    processes=READERS,
    pools={extract.name: READERS},
    lease=10,
    grace=5,
)
# Strangers are served here, maybe through a proxy on this machine: none of them is an operator.
SETTINGS = ServiceSettings(require_key=True)
STATIC = files("apps.heatsync") / "static"
# Nothing that a sheet says can become a script, and nobody frames the page.
GUARDS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


@asynccontextmanager
async def with_nights(_: FastAPI) -> AsyncIterator[None]:
    await mill.schedules.save("heatsync.forget", "17 3 * * *", forget)
    yield


app = FastAPI(
    title="HeatSync",
    description="A swimmer's events out of heat sheets.",
    lifespan=with_nights,
)
app.include_router(router)
app.include_router(service_router(mill, settings=SETTINGS, worker=WORKER), prefix="/mill")
app.add_exception_handler(HTTPException, tell_of_no_route)
app.mount("/static", StaticFiles(directory=str(STATIC)))


@app.get("/", include_in_schema=False)
@app.get("/batches/{id}", include_in_schema=False)
async def get_page() -> Response:
    page = Template((STATIC / "index.html").read_text())
    offered = "yes" if mail.is_set_up(mill) else "no"
    return HTMLResponse(page.substitute(mail=offered), headers=GUARDS)
