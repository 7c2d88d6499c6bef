"""The interactive API documentation. It loads no external files and needs no key."""

from functools import lru_cache
from importlib.resources import files

from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from pydantic_core import to_json
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from batchmill.service.requests import guarded
from batchmill.service.streaming import InPieces

SWAGGER_UI = files("batchmill.service") / "static" / "swagger-ui"


def add_docs(app: FastAPI) -> None:
    @lru_cache(maxsize=4)
    def description(root: str) -> bytes:
        """Rendered once per path at which the application is mounted, usually one."""
        servers = {"servers": [{"url": root}]} if root else {}
        return to_json({**app.openapi(), **servers})

    @app.get("/openapi.json", include_in_schema=False)
    async def get_description(request: Request) -> Response:
        return public(InPieces(description(root_of(request)), media_type="application/json"))

    @app.get("/docs", include_in_schema=False)
    async def get_docs(request: Request) -> Response:
        root = root_of(request)
        return public(
            get_swagger_ui_html(
                openapi_url=f"{root}/openapi.json",
                title=app.title,
                swagger_js_url=f"{root}/docs/swagger-ui/swagger-ui-bundle.js",
                swagger_css_url=f"{root}/docs/swagger-ui/swagger-ui.css",
                swagger_favicon_url="data:,",
            )
        )

    app.mount("/docs/swagger-ui", PublicFiles(directory=str(SWAGGER_UI)))


class PublicFiles(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        return public(await super().get_response(path, scope))


def root_of(request: Request) -> str:
    return request.scope.get("root_path", "").rstrip("/")


def public(response: Response) -> Response:
    """Lets any cache store the response, but revalidate it before each use."""
    response.headers.setdefault("Cache-Control", "no-cache")
    return guarded(response)
