"""Visits of a user's pages in a browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Locator, Page, ViewportSize, expect

from tests.apps.sites.sites import User

PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 900}


async def visit(page: Page, user: User, path: str = "/") -> None:
    """Opens a page with a session of the user, and waits until it is shown."""
    if user.key:
        await page.context.request.post(f"{user.url}/api/session", data={"key": user.key})
    await page.goto(user.url + path)
    await expect(page.locator("#loading")).to_be_hidden()


@asynccontextmanager
async def without_troubles(page: Page, user: User) -> AsyncIterator[None]:
    """Nothing is loaded from elsewhere, and no script fails."""
    urls, troubles = list[str](), list[str]()
    page.on("request", lambda request: urls.append(request.url))
    page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    yield
    assert all(url.startswith((user.url, f"blob:{user.url}")) for url in urls), urls
    assert troubles == []


def row(page: Page, text: str) -> Locator:
    """A run in the list, by its site or the name of its business."""
    return page.locator("#runs > li").filter(has_text=text)


def phase(page: Page, name: str) -> Locator:
    return page.locator("#phases > li").filter(has_text=name)


def section(page: Page, id: str) -> Locator:
    """A part of the report."""
    return page.locator(f"#report > #{id}")


def question(page: Page, number: int) -> Locator:
    return page.get_by_role("textbox", name=f"Question {number}", exact=True)


async def overflow(page: Page) -> list[str]:
    return await page.evaluate("""() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.body.querySelectorAll("*")].filter((each) =>
            each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 100))""")
