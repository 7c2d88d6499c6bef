"""The application: all routes under one router, for its own service or inside another one."""

from http import HTTPStatus
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match

from batchmill.config import ServiceSettings
from batchmill.mill import Mill
from batchmill.service.docs import add_docs
from batchmill.service.problems import DOCUMENTED, answer
from batchmill.service.requests import guarded
from batchmill.service.routes import (
    artifacts,
    batches,
    events,
    jobs,
    limits,
    operations,
    schedules,
    system,
    tasks,
    tenants,
    usage,
    webhooks,
    worker,
)
from batchmill.service.service import Service
from batchmill.worker.options import WorkerOptions

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
PARTS = (
    batches,
    events,
    artifacts,
    webhooks,
    jobs,
    tasks,
    limits,
    schedules,
    usage,
    worker,
    tenants,
    operations,
)


def service_router(
    mill: Mill,
    *,
    settings: ServiceSettings | None = None,
    worker: WorkerOptions | None = None,
) -> APIRouter:
    """Returns the service for your own application: `app.include_router(service_router(mill))`.

    The mill opens and closes with the application. With `worker`, its tasks run inside as well.
    """
    service = Service(mill, settings or ServiceSettings.read(), worker)
    router = APIRouter(lifespan=service.lifespan, responses=DOCUMENTED)
    for part in PARTS:
        router.include_router(part.router, prefix="/v1")
    router.include_router(system.router)
    return router


def create_app(
    mill: Mill,
    *,
    settings: ServiceSettings | None = None,
    worker: WorkerOptions | None = None,
) -> FastAPI:
    """Returns the service as a complete application."""
    settings = settings or ServiceSettings.read()
    app = FastAPI(
        title="batchmill",
        description="Durable batches of slow work on Postgres.",
        version=version("batchmill"),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.include_router(service_router(mill, settings=settings, worker=worker))
    add_docs(app)
    for kind in (HTTPException, Exception):
        app.add_exception_handler(kind, _answer)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
        )
    return app


async def _answer(request: Request, error: Exception) -> Response:
    response = answer(error)
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(methods_at(request))
    return guarded(response)


def methods_at(request: Request) -> list[str]:
    """The methods of all routes with this path; the router names only those of the first route."""
    asked = {method: {**request.scope, "method": method} for method in METHODS}
    return [
        method
        for method, scope in asked.items()
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    ]
