"""The description to look at and to try, without a file from elsewhere."""

from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

SWAGGER_UI = files("batchmill.service") / "static" / "swagger-ui"

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def get_docs(request: Request) -> HTMLResponse:
    root = request.scope.get("root_path", "")
    return get_swagger_ui_html(
        openapi_url=f"{root}/openapi.json",
        title=request.app.title,
        swagger_js_url=f"{root}/docs/swagger-ui/swagger-ui-bundle.js",
        swagger_css_url=f"{root}/docs/swagger-ui/swagger-ui.css",
        swagger_favicon_url="data:,",
    )


def add_docs(app: FastAPI) -> None:
    app.include_router(router)
    app.mount("/docs/swagger-ui", StaticFiles(directory=str(SWAGGER_UI)))
