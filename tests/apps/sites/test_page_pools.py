"""The page with the pools in a real browser."""

import pytest
from playwright.async_api import Locator, Page, expect

from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.fake_models import FakeModels
from tests.apps.sites.pages import visit, without_troubles
from tests.apps.sites.sites import User
from tests.apps.sites.website import Website

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

expect.set_options(timeout=60_000)

HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def pool(page: Page, phase: str) -> Locator:
    return page.locator(f".pool[data-phase={phase}]")


async def test_busy_processors_are_shown_with_their_runs(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    models.gate.clear()
    with Website() as other:
        other.gate.clear()
        await owner.begin(website.url, other.url)
        async with without_troubles(page, owner):
            await visit(page, owner, "/pools")
            reading, asking = pool(page, "website-analysis"), pool(page, "model-analysis")
            await expect(asking.locator(".busy")).to_contain_text(website.host)
            await expect(reading.locator(".busy")).to_have_count(1)
            await expect(reading.locator(".busy")).to_contain_text(other.host)
            await expect(reading).to_contain_text("1 of 10 busy")
            await expect(pool(page, "prompt-forming").locator(".idle")).to_have_count(10)
            numbers = page.get_by_role("row", name="Total")
            await expect(numbers.get_by_role("cell").nth(2)).to_have_text("2")
            other.gate.set()
            models.gate.set()
            await expect(reading.locator(".busy")).to_have_count(0)
            await expect(asking.locator(".busy")).to_have_count(0)
            await expect(numbers.get_by_role("cell").nth(2)).to_have_text("0")


async def test_runs_of_others_are_counted_but_not_named(
    sites: SharedSites, owner: User, website: Website, page: Page
) -> None:
    website.gate.clear()
    await (await sites.user()).begin(website.url)
    await visit(page, owner, "/pools")
    busy = pool(page, "website-analysis").locator(".busy")
    await expect(busy).to_contain_text("A run of another tenant")
    await expect(busy.get_by_role("link")).to_have_count(0)


async def test_a_hidden_page_asks_for_nothing(owner: User, page: Page) -> None:
    """The page has a clock of its own, which goes on by many intervals at once."""
    asked = list[str]()
    await page.clock.install()
    await visit(page, owner, "/pools")
    await expect(page.locator("#connection")).to_have_text("Live")
    await page.evaluate(HIDE, True)
    await expect(page.locator("#connection")).to_have_text("Paused")
    page.on("request", lambda request: asked.append(request.url))
    await page.clock.run_for(60_000)
    assert asked == []
    async with page.expect_request("**/api/pools"):
        await page.evaluate(HIDE, False)
    await expect(page.locator("#connection")).to_have_text("Live")
    async with page.expect_request("**/api/pools"):
        await page.clock.run_for(2_500)


async def test_the_time_of_the_statistics_can_be_chosen(owner: User, page: Page) -> None:
    await visit(page, owner, "/pools")
    await expect(page.get_by_role("button", name="1 hour")).to_have_attribute(
        "aria-pressed", "true"
    )
    async with page.expect_request("**/api/statistics?minutes=1440"):
        await page.get_by_role("button", name="1 day").click()
    await expect(page.get_by_role("button", name="1 day")).to_have_attribute("aria-pressed", "true")
