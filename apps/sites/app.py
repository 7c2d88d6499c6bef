"""The application: the API, the pages, and the mill behind them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from apps.sites.mill import mill, pace, settings
from apps.sites.phases import PHASES, task_of
from apps.sites.printing import PRINTERS, print_report
from apps.sites.routes import router
from apps.sites.schedule import forget
from batchmill import WorkerOptions
from batchmill.service import PAGE_HEADERS, add_components, service_router

STATIC = files("apps.sites") / "static"
WARM = 2
WORKER = WorkerOptions(
    concurrency=len(PHASES) * settings.slots + 10,
    pools={task_of(phase): settings.slots for phase in PHASES} | {print_report.name: PRINTERS},
    processes=settings.slots + PRINTERS,
    warm_processes=min(WARM, settings.slots),
    lease=settings.lease_seconds or pace.lease,
    grace=10,
)


@asynccontextmanager
async def with_schedule(_: FastAPI) -> AsyncIterator[None]:
    await mill.schedules.save("sites.forget", "41 3 * * *", forget)
    yield


app = FastAPI(
    title="Sites",
    description="Learns what a business's website says, and how AI answers mention the business.",
    lifespan=with_schedule,
)
app.include_router(router)
app.include_router(service_router(mill, worker=WORKER), prefix="/mill")
add_components(app)
app.mount("/static", StaticFiles(directory=str(STATIC)))


@app.get("/", include_in_schema=False)
async def get_start_page() -> Response:
    return page("index.html")


@app.get("/runs/{id}", include_in_schema=False)
async def get_run_page(id: str) -> Response:
    return page("run.html")


@app.get("/pools", include_in_schema=False)
async def get_pools_page() -> Response:
    return page("pools.html")


def page(name: str) -> Response:
    return HTMLResponse((STATIC / name).read_text(), headers=PAGE_HEADERS)
