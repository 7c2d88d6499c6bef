"""The list of runs in a real browser: begin, watch, find, cancel, retry, delete."""

import signal
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.fake_models import SCORE, FakeModels
from tests.apps.sites.pages import phase, row, section, visit, without_troubles
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import NAME, Website

# The browser lives as long as the session, and so does its event loop.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

expect.set_options(timeout=60_000)


async def test_many_websites_are_analysed_across_a_reload(
    owner: User, models: FakeModels, page: Page
) -> None:
    with Website() as first, Website() as second:
        await visit(page, owner)
        await expect(page.get_by_role("heading", name="three phases")).to_be_visible()
        await expect(page.locator("#models")).to_contain_text("Asks 2 models")
        async with without_troubles(page, owner):
            second.gate.clear()
            await page.get_by_label("Addresses of websites").fill(f"{first.url}\n\n{second.url}\n")
            await page.get_by_role("button", name="Analyse 2 websites").click()
            await expect(row(page, first.host)).to_contain_text("Tidemill Bakery")
            for _ in range(2):
                await expect(row(page, second.host)).to_contain_text("Reading the website")
                await expect(row(page, first.host).locator(".row-score")).to_have_text(
                    f"Score {SCORE}"
                )
                await expect(page).to_have_title("(1) Sites")
                await page.reload()
            second.gate.set()
            await expect(row(page, second.host).locator(".row-score")).to_have_text(
                f"Score {SCORE}"
            )
            await expect(page).to_have_title("Sites")
            await expect(row(page, second.host)).to_contain_text("5 pages")
            await expect(page.get_by_label("Addresses of websites")).to_have_value("")


async def test_one_website_is_watched_through_its_phases(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    models.gate.clear()
    website.gate.clear()
    async with without_troubles(page, owner):
        await visit(page, owner)
        await page.get_by_label("Addresses of websites").fill(website.url)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name=website.host)).to_be_visible()
        await expect(phase(page, "Website analysis")).to_contain_text("Reading http://")
        await expect(page).to_have_title(f"Reading the website · {website.host} · Sites")
        website.gate.set()
        for _ in range(2):
            await expect(phase(page, "Website analysis")).to_contain_text("Done")
            await expect(phase(page, "Prompt forming")).to_contain_text("Done")
            await expect(phase(page, "Model analysis")).to_contain_text("0 of 14 answers")
            await page.reload()
        models.gate.set()
        await expect(page.get_by_role("heading", name=NAME, exact=True)).to_be_visible()
        await expect(section(page, "score").locator(".big")).to_contain_text(SCORE)
        await expect(page.locator("#phases")).to_be_hidden()
        await expect(page).to_have_title(f"{NAME} · Sites")


async def test_the_page_continues_after_the_server_was_killed(
    browser: Browser, dsn: str, tmp_path: Path, website: Website
) -> None:
    """This server has no keys, so that visitors from this machine need none, and no models."""
    context = await browser.new_context()
    page = await context.new_page()
    website.gate.clear()
    settings = {"SITES_RETRY_SECONDS": "1", "SITES_LEASE_SECONDS": "2"}
    async with (
        Mill(dsn, migrate=True, schemas=[SITES]),
        Sites(dsn, tmp_path / "artifacts", **settings) as server,
    ):
        await visit(page, User("default", "", server.url))
        await expect(page.locator("#models")).to_contain_text("No model is configured")
        await expect(page.get_by_label("Let me edit the questions")).to_be_hidden()
        await page.get_by_label("Addresses of websites").fill(website.url)
        await page.get_by_role("button", name="Analyse").click()
        await expect(phase(page, "Website analysis")).to_contain_text("Reading http://")
        await server.end(signal.SIGKILL)
        await expect(page.locator("#connection")).to_have_text("Reconnecting …")
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("alert").first).to_contain_text("does not respond")
        website.gate.set()
        await server.start()
        await expect(section(page, "score")).to_contain_text("No model is configured")
        await expect(section(page, "facts")).to_contain_text("14 Cannery Wharf")
        await expect(section(page, "questions")).to_contain_text("get no answers")
        await expect(section(page, "answers")).to_have_count(0)
        await page.goto(server.url)
        await expect(row(page, NAME)).to_contain_text("No score")
    await context.close()


async def test_a_run_that_begins_elsewhere_appears(
    owner: User, website: Website, page: Page
) -> None:
    await visit(page, owner)
    await expect(page.locator("#connection")).to_have_text("Live")
    await owner.begin(website.url)
    await expect(row(page, website.host)).to_contain_text(NAME)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("http://10.1.2.3/", "not allowed"),
        ("https://ada:secret@example.com", "user name"),
        ("mailto:ada@example.com", ""),
        ("", "Write the address"),
    ],
)
async def test_an_address_that_is_refused_stays_in_the_form(
    owner: User, page: Page, given: str, reason: str
) -> None:
    await visit(page, owner)
    field = page.get_by_label("Addresses of websites")
    await field.fill(given)
    await page.get_by_role("button", name="Analyse").click()
    await expect(page.locator("#refused")).to_contain_text(reason)
    await expect(page.locator("#refused")).not_to_be_empty()
    await expect(field).to_have_value(given)
    await expect(field).to_be_focused()
    await expect(page.locator("#runs > li")).to_have_count(0)
    await field.press("x")
    await expect(page.locator("#refused")).to_be_empty()


async def test_a_run_is_cancelled_and_deleted(owner: User, website: Website, page: Page) -> None:
    website.gate.clear()
    await owner.begin(website.url)
    await visit(page, owner)
    await page.get_by_role("button", name=f"Cancel {website.host}").click()
    await expect(row(page, website.host)).to_contain_text("Cancelled")
    await expect(page.get_by_role("link", name=f"Open {website.host}")).to_be_focused()
    await page.get_by_role("button", name=f"Delete {website.host}").click()
    await expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(row(page, website.host)).to_be_visible()
    await page.get_by_role("button", name=f"Delete {website.host}").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(row(page, website.host)).to_have_count(0)
    await expect(page.get_by_role("heading", name="three phases")).to_be_visible()


async def test_a_failed_run_is_retried(owner: User, website: Website, page: Page) -> None:
    start = website.files.pop("/")
    await owner.begin(website.url)
    await visit(page, owner)
    await expect(row(page, website.host)).to_contain_text("has no page at this address")
    website.files["/"] = start
    await page.get_by_role("button", name=f"Retry {website.host}").click()
    await expect(row(page, website.host).locator(".row-score")).to_have_text(f"Score {SCORE}")


async def test_runs_are_found_by_site_and_state(owner: User, page: Page) -> None:
    with Website() as good, Website() as bad:
        bad.files.clear()
        good_id, bad_id = await owner.begin(good.url, bad.url)
        for id in (good_id, bad_id):
            await owner.ended(id)
        await visit(page, owner)
        await expect(page.locator("#runs > li")).to_have_count(2)
        await page.get_by_label("State").select_option("Failed")
        await expect(page.locator("#runs > li")).to_have_count(1)
        await expect(row(page, bad.host)).to_be_visible()
        await page.get_by_label("State").select_option("Cancelled")
        await expect(page.get_by_role("heading", name="No run matches")).to_be_visible()
        await page.get_by_role("link", name="Show all runs").click()
        await page.get_by_label("Site", exact=True).fill(f"{good.url}/menu")
        await page.get_by_role("button", name="Filter").click()
        await expect(page.locator("#runs > li")).to_have_count(1)
        await page.reload()
        await expect(row(page, good.host)).to_be_visible()
        await expect(page.get_by_label("Site", exact=True)).to_have_value(good.host)
        await page.go_back()
        await expect(page.locator("#runs > li")).to_have_count(2)


async def test_without_a_key_the_page_asks_for_one(
    sites: SharedSites, owner: User, page: Page
) -> None:
    await page.goto(sites.server.url)
    await page.get_by_label("Your key").fill("bm_wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator("#key-problem")).not_to_be_empty()
    await page.get_by_label("Your key").fill(owner.key)
    await page.keyboard.press("Enter")
    await expect(page.locator(".who")).to_contain_text(owner.name)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Your key")).to_be_visible()
