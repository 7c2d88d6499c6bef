"""The files of the components, as they are served and packaged."""

import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from batchmill.service import add_components
from batchmill.service.components import COMPONENTS

FOLDER = Path(str(COMPONENTS))
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
REFERENCE = re.compile(r'from "([^"]+)"|url\("([^"]+)"\)')


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
async def test_a_component_is_served_with_its_type_and_revalidated(path: Path) -> None:
    app = FastAPI()
    add_components(app, "/shared")
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        url = f"/shared/{path.relative_to(FOLDER)}"
        answer = await client.get(url)
        again = await client.get(url, headers={"If-None-Match": answer.headers["etag"]})
    assert answer.content == path.read_bytes()
    assert answer.headers["content-type"].partition(";")[0] == TYPES[path.suffix]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"
    assert again.status_code == 304


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_component_refers_only_to_files_beside_it(path: Path) -> None:
    """So the components work below any prefix, and load nothing from elsewhere."""
    for names in REFERENCE.findall(path.read_text()):
        for name in filter(None, names):
            assert (path.parent / name).is_file(), name


TOKENS = {
    name: {"light": light, "dark": dark}
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (FOLDER / "mill.css").read_text()
    )
}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(scheme: str, name: str, other: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    low, high = sorted(luminance(TOKENS[each][scheme]) for each in (name, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_enough_contrast(scheme: str) -> None:
    for background in ("paper", "card", "sunken"):
        for text in ("ink", "faint", "accent", "good", "warn", "bad"):
            assert contrast(scheme, text, background) >= 4.5, (text, background)
        assert contrast(scheme, "edge", background) >= 3, background
    assert contrast(scheme, "on-accent", "accent") >= 4.5
    assert contrast(scheme, "on-bad", "bad") >= 4.5
