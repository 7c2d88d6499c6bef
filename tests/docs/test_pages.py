"""The example on the page about pages works in a real browser."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page as BrowserPage
from playwright.async_api import Route, expect

from tests.docs.pages import ROOT, Page
from tests.docs.programs import SUBPROCESS, Directory

PAGE = Page(ROOT / "docs/howto/pages.md")
FILES = (("hello.py", "python"), ("hello.html", "html"), ("static/hello.js", "js"))


@pytest.fixture
def url(dsn: str, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "static").mkdir()
    for name, language in FILES:
        (tmp_path / name).write_text(PAGE.blocks(language)[0].text)
    directory = Directory(tmp_path, os.environ | {"DATABASE_URL": dsn} | SUBPROCESS)
    with directory.serving("batchmill", "--app", "hello:app", "serve") as url:
        yield url


async def greet(page: BrowserPage, url: str) -> None:
    await page.goto(url)
    await page.get_by_role("button", name="Greet them").click()
    await expect(page.locator("#people > li.done")).to_have_count(3, timeout=30_000)
    await expect(page.locator("#people")).to_contain_text("Saying hello to Grace")
    await page.close()


async def test_the_example_follows_its_batch(url: str, page: BrowserPage) -> None:
    await greet(page, url)


async def test_the_example_shows_a_batch_that_ends_before_its_state_is_read(
    url: str, page: BrowserPage
) -> None:
    """No event follows then, so the state has to include the progress."""

    async def delay(route: Route) -> None:
        async with httpx.AsyncClient() as http:
            while (await http.get(route.request.url)).json()["finished_at"] is None:
                await asyncio.sleep(0.05)
        await route.continue_()

    await page.route("**/v1/batches/*", delay)
    await greet(page, url)


def test_only_the_static_files_of_the_example_can_be_read(url: str) -> None:
    statuses = {
        path: httpx.get(f"{url}/static/{path}").status_code
        for path in ("hello.js", "hello.py", "../hello.py", "%2e%2e/hello.py", ".env", "")
    }
    assert statuses.pop("hello.js") == 200
    assert set(statuses.values()) == {404}, statuses
