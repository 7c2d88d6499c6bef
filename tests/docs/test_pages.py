"""The example on the page about pages works in a real browser."""

import os
from pathlib import Path

from playwright.async_api import Page as BrowserPage
from playwright.async_api import expect

from tests.docs.pages import ROOT, Page
from tests.docs.programs import SUBPROCESS, Directory

PAGE = Page(ROOT / "docs/howto/pages.md")


async def test_the_example_follows_its_batch(dsn: str, tmp_path: Path, page: BrowserPage) -> None:
    for name, language in (("hello.py", "python"), ("hello.html", "html"), ("hello.js", "js")):
        (tmp_path / name).write_text(PAGE.blocks(language)[0].text)
    directory = Directory(tmp_path, os.environ | {"DATABASE_URL": dsn} | SUBPROCESS)
    with directory.serving("batchmill", "--app", "hello:app", "serve") as url:
        await page.goto(url)
        await page.get_by_role("button", name="Greet them").click()
        await expect(page.locator("#people > li.done")).to_have_count(3)
        await expect(page.locator("#people")).to_contain_text("Saying hello to Grace")
        await page.close()
