"""Visits of a user's pages in a browser."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import FilePayload, Locator, Page, expect

from batchmill import Mill, Quota
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import API, User, named

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
EXPORTS = "task:resumes.export"


async def visit(page: Page, user: User, path: str = "/") -> None:
    """Opens a page with a session of the user, and waits until it is live."""
    await page.context.request.post(f"{user.url}{API}/session", data={"key": user.key})
    await page.goto(user.url + path)
    if not path.startswith("/documents"):
        await expect(page.locator("#loading")).to_be_hidden()
        await expect(page.locator("#connection")).to_have_attribute("data-state", "live")


async def add_people(user: User, *names: str) -> list[str]:
    return [await user.add(named(name)) for name in names]


async def set_quota(resumes: SharedResumes, user: User, **limits: int) -> None:
    async with resumes.mill() as mill:
        await mill.keys.set_quota(Quota(tenant=user.name, **limits))


@asynccontextmanager
async def paused(mill: Mill) -> AsyncIterator[None]:
    """No export starts."""
    await mill.limits.pause(EXPORTS)
    try:
        yield
    finally:
        await mill.limits.resume(EXPORTS)


def file(name: str, content: Any) -> FilePayload:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"name": name, "mimeType": "application/json", "buffer": text.encode()}


def card(page: Page, name: str) -> Locator:
    return page.locator("#grid > li").filter(has=page.get_by_role("link", name=name))


def group(page: Page) -> Locator:
    """The exports that were submitted last."""
    return page.locator(".group").first


def row(page: Page, name: str) -> Locator:
    return group(page).locator(".row").filter(has_text=name)


def entry(page: Page, name: str) -> Locator:
    """An export in the history."""
    return page.locator("#finished > li").filter(has_text=name)


async def select(page: Page, *names: str) -> None:
    for name in names:
        await page.get_by_label(f"Select {name}", exact=True).check()


async def choose(page: Page, name: str, action: str) -> None:
    """An action in the menu of a document."""
    await card(page, name).locator("summary").click()
    await card(page, name).get_by_text(action, exact=True).click()


async def start_export(page: Page) -> None:
    """Confirms the dialog."""
    await page.locator("#export-start").click()
    await expect(page.locator("#export")).to_be_hidden()


def section(page: Page, name: str) -> Locator:
    """A part of the form."""
    return page.locator(".part").filter(has=page.get_by_role("heading", name=name, exact=True))


async def open_section(page: Page, name: str) -> Locator:
    found = section(page, name)
    await found.locator("> summary").click()
    return found


async def overflow(page: Page) -> list[str]:
    return await page.evaluate("""() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.body.querySelectorAll("*")].filter((each) =>
            each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 100))""")
