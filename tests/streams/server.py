"""The service without a worker, as a program: `python -m tests.streams.server --port …`.

DATABASE_URL selects the database. X-Tenant selects the tenant; callers without it see everything.
"""

import argparse
import asyncio
from typing import Annotated

from fastapi import APIRouter, FastAPI, Header, Response
from fastapi.responses import HTMLResponse

from batchmill import Mill
from batchmill.config import ServiceSettings
from batchmill.domain.event import LAST_EVENTS, STATE_SYNC
from batchmill.domain.outcome import STATE_AFTER
from batchmill.service import (
    ByKeyOrLink,
    EventStreams,
    GuardedRoute,
    LastEventId,
    Viewer,
    create_app,
)
from batchmill.service.links import viewer_by_key_or_link
from batchmill.service.server import serve_app

SETTINGS = ServiceSettings()
TYPES = [*STATE_AFTER, *LAST_EVENTS, "batch_started", "batch_retried", STATE_SYNC]
PAGE = """<!doctype html><title>follow</title><script>
const seen = [], source = new EventSource(`/v1/batches/${location.hash.slice(1)}/events`);
let opened = 0;
source.onopen = () => opened++;
for (const type of TYPES)
    source.addEventListener(type, (it) => seen.push([+it.lastEventId, it.type, it.data]));
</script>"""


def app_of(mill: Mill, settings: ServiceSettings) -> FastAPI:
    app = create_app(mill, settings=settings)

    async def caller(x_tenant: Annotated[str | None, Header()] = None) -> Viewer:
        return Viewer(mill.as_tenant(x_tenant) if x_tenant else mill, None)

    app.dependency_overrides[viewer_by_key_or_link] = caller

    router = APIRouter(route_class=GuardedRoute)

    @router.get("/feed")
    async def feed(
        streams: EventStreams,
        viewer: ByKeyOrLink,
        after: LastEventId,
        label: str | None = None,
        value: str | None = None,
    ) -> Response:
        return await streams.follow(viewer, viewer.client.feed(label, value), after)

    app.include_router(router)

    @app.get("/clients")
    async def clients() -> int:
        return app.state.batchmill.streams.clients

    @app.get("/page")
    async def page() -> HTMLResponse:
        return HTMLResponse(PAGE.replace("TYPES", str(TYPES)))

    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    for name in ("keep_alive", "patience"):
        parser.add_argument(f"--{name}", type=float, default=getattr(SETTINGS, name))
    for name in ("per_process", "per_tenant"):
        name = f"streams_{name}"
        parser.add_argument(f"--{name}", type=int, default=getattr(SETTINGS, name))
    given = vars(parser.parse_args())
    port = given.pop("port")
    settings = ServiceSettings(connections_per_address=100_000, **given)
    app = app_of(Mill(), settings)
    asyncio.run(serve_app(app, host="127.0.0.1", port=port, settings=settings, grace=10))


if __name__ == "__main__":
    main()
