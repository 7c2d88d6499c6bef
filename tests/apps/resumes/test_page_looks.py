"""Both pages for everybody: in dark and light, on a phone and on a desk, without barriers."""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from apps.resumes.samples import sample
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.pages import (
    DESK,
    PHONE,
    add_people,
    group,
    open_section,
    overflow,
    paused,
    select,
    set_quota,
    start_export,
    visit,
)
from tests.apps.resumes.resumes import User, named
from tests.axe import violations_in_both_schemes

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

expect.set_options(timeout=90_000)

SIZES = pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
LONG = "A name without an end " + "and-without-any-space" * 10


@pytest_asyncio.fixture(loop_scope="session")
async def owner(resumes: SharedResumes) -> User:
    return await resumes.user()


async def assert_fine(page: Page) -> None:
    assert await violations_in_both_schemes(page) == []
    assert await overflow(page) == []


@SIZES
async def test_the_list_has_no_barriers_in_any_state(
    resumes: SharedResumes, owner: User, page: Page, size: Any
) -> None:
    await page.set_viewport_size(size)
    await page.goto(owner.url)
    await expect(page.get_by_label("Your key")).to_be_visible()
    await assert_fine(page)
    await visit(page, owner)
    await expect(page.get_by_role("heading", name="No documents yet")).to_be_visible()
    await assert_fine(page)
    made = await owner.exported(named("Old"))
    await add_people(owner, "Two", LONG)
    with resumes.sql() as sql:
        expire = "update resumes.exports set expires_at = batchmill.clock() where id = %s"
        sql.execute(expire, [made["id"]])
    await owner.exported(named("Three"))
    await set_quota(resumes, owner, operations_per_day=4)
    await page.reload()
    await select(page, "Two", LONG)
    await page.locator("#grid summary").last.click()
    await assert_fine(page)
    await page.keyboard.press("Escape")
    async with resumes.mill() as mill, paused(mill):
        await page.locator("#export-selected").click()
        await page.get_by_text("More: properties of the PDF").click()
        await assert_fine(page)
        await start_export(page)
        await expect(group(page).locator(".row.waiting")).to_have_count(2)
        await assert_fine(page)
    await expect(group(page)).to_contain_text("2 of 2 done")
    await expect(page.locator("#quota .full")).to_be_visible()
    await assert_fine(page)
    await page.locator("#finished").get_by_role("button", name="Delete").first.click()
    await assert_fine(page)


@SIZES
async def test_the_editor_has_no_barriers_in_any_state(owner: User, page: Page, size: Any) -> None:
    await page.set_viewport_size(size)
    await visit(page, owner, "/documents/new")
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await assert_fine(page)
    id = await owner.add(sample("two-pages"))
    await page.goto(f"{owner.url}/documents/{id}")
    work = await open_section(page, "Work")
    await work.locator(".entry summary").first.click()
    await work.get_by_label("From").first.fill("soon")
    await expect(work.get_by_role("alert").filter(has_text="not a date")).to_be_visible()
    await assert_fine(page)
    if size is PHONE:
        await page.get_by_role("button", name="Preview").click()
        await expect(page.locator("#preview-problem")).to_be_visible()
        await expect(work).to_be_hidden()
        await assert_fine(page)
    await page.goto(f"{owner.url}/documents/nonsense")
    await expect(page.get_by_role("heading", name="There is no such document")).to_be_visible()
    await assert_fine(page)


async def test_a_phone_shows_documents_or_exports(owner: User, page: Page) -> None:
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await owner.exported(named("Pocket"))
    await visit(page, owner)
    await expect(page.locator("#grid")).to_be_visible()
    await expect(page.locator("#finished")).to_be_hidden()
    await page.get_by_role("link", name="Exports").click()
    await expect(page.locator("#finished")).to_be_visible()
    await expect(page.locator("#grid")).to_be_hidden()
    await page.reload()
    await expect(page.locator("#finished")).to_be_visible()
    await page.go_back()
    await expect(page.locator("#grid")).to_be_visible()


async def test_nothing_is_wider_than_a_small_phone(owner: User, page: Page) -> None:
    await page.set_viewport_size({"width": 320, "height": 640})
    await owner.exported(named(LONG, label=LONG))
    await visit(page, owner)
    await expect(page.locator("#grid > li")).to_have_count(1)
    assert await overflow(page) == []
    await page.goto(f"{owner.url}/#exports")
    await expect(page.locator("#finished > li")).to_have_count(1)
    assert await overflow(page) == []
    await page.goto(owner.url)
    await page.locator("#grid h3 a").click()
    await expect(page.locator("#title")).to_have_text(LONG)
    assert await overflow(page) == []
