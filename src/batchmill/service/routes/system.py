"""Liveness, readiness and version."""

from importlib.metadata import version

from fastapi import APIRouter, Response

from batchmill.errors import NotFound
from batchmill.service import schemas
from batchmill.service.caller import Operator
from batchmill.service.problems import ServerFull
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService
from batchmill.store import migrate

router = APIRouter(tags=["system"], route_class=GuardedRoute)

# Cached, because reading the package's metadata takes longer than the rest of a request.
VERSION = version("batchmill")


@router.get("/healthz")
async def get_health() -> schemas.Health:
    """Succeeds while the process runs."""
    return schemas.Health(status="ok")


@router.get("/readyz")
async def get_readiness(service: AnyService) -> schemas.Health:
    """Succeeds if the database answers and the process is not stopping."""
    if service.stopping.is_set():
        raise ServerFull("The service is stopping.")
    async with service.mill.database.connection() as conn:
        await migrate.check(conn, service.mill.engine.schemas)
    return schemas.Health(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}, "description": "Metrics in the format of Prometheus."}
    },
)
async def get_metrics(service: AnyService, caller: Operator) -> Response:
    """Waiting, running and failed jobs, as metrics for Prometheus."""
    metrics = service.metrics
    if metrics is None:
        raise NotFound(
            "Metrics need the package prometheus-client: run pip install 'batchmill[metrics]'."
        )
    return Response(await metrics.render(), media_type=metrics.content_type)


@router.get("/v1/version")
async def get_version() -> schemas.Version:
    return schemas.Version(version=VERSION, schema_version=migrate.newest())
