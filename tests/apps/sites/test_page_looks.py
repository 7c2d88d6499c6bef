"""All pages for everybody: in dark and light, on a phone and on a desk, by keyboard, on paper."""

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.apps.sites.fake_models import FakeModels
from tests.apps.sites.pages import DESK, PHONE, overflow, phase, row, section, visit
from tests.apps.sites.sites import User
from tests.apps.sites.website import NAME, Website
from tests.axe import violations_in_both_schemes

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

expect.set_options(timeout=60_000)

SIZES = pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
LONG = "A-name-without-an-end-and-without-any-space-" * 8


async def assert_fine(page: Page) -> None:
    assert await violations_in_both_schemes(page) == []
    assert await overflow(page) == []


@SIZES
async def test_the_list_has_no_barriers(
    owner: User, models: FakeModels, website: Website, page: Page, size: ViewportSize
) -> None:
    await page.set_viewport_size(size)
    await visit(page, owner)
    await expect(page.get_by_role("heading", name="three phases")).to_be_visible()
    await assert_fine(page)
    await owner.completed(website.url)
    with Website() as failing, Website() as slow:
        failing.files.clear()
        slow.gate.clear()
        ids = await owner.begin(failing.url, slow.url)
        await owner.ended(ids[0])
        await page.reload()
        await expect(row(page, failing.host)).to_contain_text("Failed")
        await expect(row(page, slow.host)).to_contain_text("Reading")
        await page.get_by_label("Addresses of websites").fill("http://10.0.0.1")
        await page.keyboard.press("Enter")
        await expect(page.locator("#refused")).not_to_be_empty()
        await assert_fine(page)
        await page.get_by_role("button", name=f"Delete {failing.host}").click()
        await assert_fine(page)


@SIZES
async def test_a_report_has_no_barriers(
    owner: User, models: FakeModels, website: Website, page: Page, size: ViewportSize
) -> None:
    models.answers["alpha"] = f"{NAME} is good. {LONG} {NAME} again. " * 6
    models.refusing.add("beta")
    await owner.completed(website.url)
    website.replace("/", '"email": "hello@tidemill.example",', f'"email": "{LONG}@x.example",')
    website.files[f"/{LONG}.html"] = website.files["/about.html"]
    website.replace("/", 'href="/about.html"', f'href="/{LONG}.html"')
    run = await owner.completed(website.url)
    await page.set_viewport_size(size)
    await visit(page, owner, f"/runs/{run['id']}")
    await section(page, "changes").get_by_role("button", name="Compare").click()
    await expect(section(page, "changes").get_by_role("table")).to_be_visible()
    for summary in await page.locator("#report summary").all():
        await summary.click()
    await section(page, "answers").get_by_text("Show all").first.click()
    await page.locator("#downloads summary").click()
    await assert_fine(page)


@SIZES
async def test_a_run_that_has_no_report_has_no_barriers(
    owner: User, website: Website, page: Page, size: ViewportSize
) -> None:
    await page.set_viewport_size(size)
    website.gate.clear()
    (id,) = await owner.begin(website.url)
    await visit(page, owner, f"/runs/{id}")
    await expect(phase(page, "Website analysis")).to_contain_text("Reading")
    await assert_fine(page)
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator("#stopped")).to_be_visible()
    await assert_fine(page)
    website.files.clear()
    website.gate.set()
    (id,) = await owner.begin(website.url)
    await visit(page, owner, f"/runs/{id}")
    await expect(page.locator("#failure")).to_be_visible()
    await assert_fine(page)


@SIZES
async def test_the_pools_have_no_barriers(
    owner: User, website: Website, page: Page, size: ViewportSize
) -> None:
    await page.set_viewport_size(size)
    website.gate.clear()
    await owner.begin(website.url)
    await visit(page, owner, "/pools")
    await expect(page.locator(".busy").filter(has_text=website.host)).to_be_visible()
    await assert_fine(page)


async def test_everything_can_be_done_by_keyboard(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    await visit(page, owner)
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Addresses of websites")).to_be_focused()
    await page.keyboard.type(website.url)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Analyse")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Space")
    await expect(page.get_by_label("Let me edit the questions")).to_be_checked()
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(section(page, "questions")).to_be_visible()
    await page.locator("#downloads summary").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="PDF")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("#downloads summary")).to_be_focused()
    await section(page, "questions").get_by_label("Question 1").focus()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("Where is good bread?")
    old = page.url
    await page.keyboard.press("Enter")
    await page.wait_for_url(lambda url: url != old)
    await expect(section(page, "answers")).to_contain_text("Where is good bread?")


async def test_on_paper_everything_is_open(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    run = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{run['id']}")
    await expect(section(page, "score")).to_be_visible()
    folded = page.locator("#report details[open]")
    await expect(folded).to_have_count(0)
    await page.emulate_media(media="print")
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    await expect(page.locator("#report details:not([open])")).to_have_count(0)
    await expect(page.get_by_role("button", name="Repeat", exact=True)).to_be_hidden()
    await expect(page.locator("#contents")).to_be_hidden()
    await page.evaluate("dispatchEvent(new Event('afterprint'))")
    await expect(folded).to_have_count(0)
