"""The shared components of pages: a style sheet and small modules, without a build step."""

from importlib.resources import files

from fastapi import FastAPI

from batchmill.service.docs import PublicFiles

COMPONENTS = files("batchmill.service") / "static" / "components"

# For responses with a page. The page loads nothing from elsewhere, text in it cannot run as a
# script, and pages of other sites cannot embed it.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def add_components(app: FastAPI, prefix: str = "/components") -> None:
    """Serves the components below `prefix`, such as `/components/mill.css`."""
    app.mount(prefix, PublicFiles(directory=str(COMPONENTS)), name="components")
