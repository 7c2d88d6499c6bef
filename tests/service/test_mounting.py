"""The service inside a user's application."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Response

from batchmill import Event, Mill
from batchmill.config import ServiceSettings
from batchmill.domain.key import Scope
from batchmill.service import EventStreams, Viewer, service_router
from tests.service.conftest import OPTIONS, running
from tests.service.tools import finished, problem, submitted


@asynccontextmanager
async def mounted(mill: Mill, log: list[str], prefix: str = "") -> AsyncIterator[httpx.AsyncClient]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        log.append("up")
        yield
        log.append("down")

    app = FastAPI(lifespan=lifespan)

    @app.get("/mine/{id}")
    async def get_batch(id: str) -> dict[str, str]:
        if id == "none":
            raise HTTPException(404, "no such thing of mine")
        return {"mine": id}

    @app.get("/broken")
    async def download_artifact() -> None:
        raise HTTPException(418)

    app.include_router(
        service_router(mill, settings=ServiceSettings(), worker=OPTIONS), prefix=prefix
    )
    async with running(app) as client:
        yield client


@pytest.mark.parametrize("prefix", ["", "/work", "/api/v2/work"])
async def test_the_router_works_inside_another_application(prefix: str, shop: Mill) -> None:
    log: list[str] = []
    async with mounted(shop, log, prefix) as client:
        inner = httpx.AsyncClient(base_url=f"{client.base_url}{prefix}", timeout=30)
        async with inner:
            batch = await submitted(inner, "double", [1, 2])
            file = (await inner.put("/v1/artifacts?name=a", content=b"ann")).json()
            link = (await inner.post(f"/v1/artifacts/{file['id']}/link")).json()["url"]
        assert batch["links"]["self"] == f"{prefix}/v1/batches/{batch['id']}"
        assert (await finished(client, batch))[-1] == "batch_completed"
        for at in batch["links"].values():
            assert (await client.get(at)).status_code in (200, 204), at
        assert link.startswith(f"{prefix}/v1/artifacts/{file['id']}/content?")
        assert (await client.get(link)).content == b"ann"
        assert (await client.get(f"{prefix}/healthz")).json() == {"status": "ok"}
        assert log == ["up"]
    assert log == ["up", "down"]


async def test_require_key_applies_to_local_requests_too(shop: Mill) -> None:
    """This is needed behind a local proxy that sends no forwarding headers."""
    app = FastAPI()
    app.include_router(service_router(shop, settings=ServiceSettings(require_key=True)))
    async with running(app) as client:
        assert problem(await client.get("/v1/batches")) == (401, "not_authenticated")
        key, _ = await shop.keys.create("reading", scopes=[Scope.READ])
        headers = {"Authorization": f"Bearer {key}"}
        assert (await client.get("/v1/batches", headers=headers)).status_code == 200


async def test_the_router_does_not_change_the_users_routes(shop: Mill) -> None:
    async with mounted(shop, []) as client:
        assert (await client.get("/mine/7")).json() == {"mine": "7"}
        missing: Any = await client.get("/mine/none")
        assert missing.json() == {"detail": "no such thing of mine"}
        assert (await client.get("/nothing")).json() == {"detail": "Not Found"}
        assert (await client.get("/broken")).status_code == 418
        ours = await client.get("/v1/batches/00000000-0000-4000-8000-000000000000")
        assert problem(ours) == (404, "not_found")
        assert problem(await client.get("/v1/batches?size=x")) == (422, "invalid_request")
        assert problem(await client.post("/v1/batches", content=b"{")) == (400, "bad_request")
        paths = (await client.get("/openapi.json")).json()["paths"]
        assert {"/mine/{id}", "/v1/batches"} <= paths.keys()


async def test_an_application_can_be_started_again(shop: Mill) -> None:
    for _ in range(2):
        async with mounted(shop, []) as client:
            batch = await submitted(client, "double", [1])
            assert (await finished(client, batch))[-1] == "batch_completed"
            assert (await client.get("/readyz")).status_code == 200


async def test_an_application_can_encode_events_without_losing_any(
    shop: Mill,
) -> None:
    """Encoding takes longer than the keep-alive interval."""
    app = FastAPI()
    settings = ServiceSettings(keep_alive=0.01)
    app.include_router(service_router(shop, settings=settings, worker=OPTIONS))

    async def slowly(event: Event) -> tuple[str, Any]:
        await asyncio.sleep(0.02)
        return "custom", {"was": event.type}

    @app.get("/custom/{id}")
    async def follow(streams: EventStreams, id: UUID) -> Response:
        return await streams.follow(Viewer(shop, None), id, show=slowly)

    async with running(app) as client:
        batch = await submitted(client, "double", [1, 2, 3])
        types = await finished(client, batch)
        stream = (await client.get(f"/custom/{batch['id']}")).text
    assert re.findall(r'id: (\d+)\nevent: custom\ndata: {"was":"(\w+)"}', stream) == [
        (str(number), type) for number, type in enumerate(types, start=1)
    ]
