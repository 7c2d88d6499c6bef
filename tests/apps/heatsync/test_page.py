"""The page in a real browser: hand in, watch, come back, cancel, retry, read."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from playwright.async_api import Page, Route, expect

from tests.apps.heatsync.conftest import HeatSync, Start
from tests.apps.heatsync.sheets import BAD, SHEETS, SWIMMER
from tests.apps.heatsync.web import Web, serving
from tests.library.tools import one, until

(NAME, PDF), *_ = SHEETS.items()
expect.set_options(timeout=60_000)


@dataclass
class Scene:
    """A sheet that comes at once, and one at an address that keeps the server waiting."""

    page: Page
    heatsync: HeatSync
    web: Web
    gate: asyncio.Event

    @property
    def url(self) -> str:
        return f"{self.web.url}/late.pdf"

    async def hand_in(self, *files: tuple[str, bytes], urls: str = "") -> None:
        await self.page.goto(self.heatsync.url)
        await self.page.get_by_label("Swimmer").fill(SWIMMER)
        await self.page.locator("#pdfs").set_input_files(
            [{"name": name, "mimeType": "application/pdf", "buffer": pdf} for name, pdf in files]
        )
        await self.page.get_by_label("Addresses").fill(urls)
        await self.page.get_by_role("button", name="Make the schedule").click()

    async def hand_in_both(self) -> None:
        await self.hand_in((NAME, PDF), urls=self.url)
        await self.shows_both()

    async def shows_both(self) -> None:
        await self.shows(NAME, "Done")
        await self.shows("late.pdf", "Downloading")

    async def shows(self, name: str, stage: str) -> None:
        row = self.page.locator("#jobs li").filter(has_text=name)
        await expect(row.locator(".stage")).to_have_text(stage)

    async def says(self, text: str) -> None:
        await expect(self.page.locator("#summary")).to_have_text(text)


@pytest.fixture
async def here(page: Page, start: Start) -> AsyncIterator[Scene]:
    gate = asyncio.Event()

    async def late(_: bytes) -> bytes:
        await gate.wait()
        return PDF

    async with (
        serving({"/late.pdf": late}) as web,
        start(HEATSYNC_ALLOWED=web.address) as heatsync,
    ):
        yield Scene(page, heatsync, web, gate)
        gate.set()


async def test_handed_in_watched_reloaded_and_read(here: Scene, page: Page) -> None:
    await here.hand_in_both()
    await page.reload()
    await here.shows_both()
    here.gate.set()
    await here.says("2 of 2 sheets read.")
    found = await here.heatsync.get(f"/api/batch/{page.url[-36:]}/results")
    await expect(page.locator("#swims tr")).to_have_count(found["totalEvents"])
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Calendar").click()
    assert (await download.value).suggested_filename == "heatsync.ics"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_a_restart_of_the_server_in_the_middle_is_hardly_noticed(
    here: Scene, end: signal.Signals
) -> None:
    await here.hand_in_both()
    await here.heatsync.end(end)
    await here.heatsync.start()
    here.gate.set()
    await here.says("2 of 2 sheets read.")


async def test_cancelled(here: Scene, page: Page) -> None:
    await here.hand_in_both()
    await page.get_by_role("button", name="Cancel").click()
    await here.says("Cancelled: 1 of 2 sheets were read.")
    await here.shows("late.pdf", "Cancelled")
    await page.reload()
    await here.shows("late.pdf", "Cancelled")


async def test_a_bad_sheet_says_why(here: Scene, page: Page) -> None:
    await here.hand_in((NAME, PDF), BAD)
    await here.says("1 of 2 sheets read, 1 failed.")
    await expect(page.locator("#jobs li.failed small")).to_contain_text("cut off")


async def test_what_failed_is_retried(here: Scene, page: Page) -> None:
    here.web.answers = {"/late.pdf": 503}
    await here.hand_in((NAME, PDF), urls=here.url)
    await here.says("1 of 2 sheets read, 1 failed.")
    here.web.answers = {"/late.pdf": PDF}
    await page.get_by_role("button", name="Retry failed").click()
    await here.says("2 of 2 sheets read.")


async def test_a_server_that_answers_503_for_a_while_is_asked_again(
    here: Scene, page: Page
) -> None:
    """An EventSource gives up for good on such an answer."""
    refused: list[str] = []

    async def refuse(route: Route) -> None:
        refused.append(route.request.url)
        await route.fulfill(status=503, body="{}")

    await here.hand_in_both()
    await page.route("**/api/**", refuse)
    await here.heatsync.end(signal.SIGKILL)
    await here.heatsync.start()
    await until(lambda: any("/stream" in url for url in refused))
    await page.unroute("**/api/**")
    here.gate.set()
    await here.says("2 of 2 sheets read.")


async def test_what_is_refused_is_told_beside_the_form(here: Scene, page: Page) -> None:
    await here.hand_in()
    await expect(page.locator("#refused")).to_have_text("At least one PDF file or URL is required.")
    await page.goto(f"{here.heatsync.url}/batches/00000000-0000-4000-8000-000000000000")
    await expect(page.locator("#problem")).to_have_text("Batch not found")


async def test_names_of_files_are_text_and_nothing_else(here: Scene, page: Page) -> None:
    name = "<img src=x onerror=document.title='caught'>.pdf"
    await here.hand_in((name, PDF))
    await here.says("1 of 1 sheets read.")
    assert await page.locator("#jobs img").count() == 0
    assert await page.title() == f"{SWIMMER} · HeatSync"


async def test_the_keyboard_is_enough(here: Scene, page: Page) -> None:
    await page.goto(here.heatsync.url)
    await page.get_by_label("Swimmer").focus()
    await page.keyboard.type(SWIMMER)
    for wanted in ("pdfs", "urls"):
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.id") == wanted
    await page.keyboard.type(here.url)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await here.shows("late.pdf", "Downloading")


async def test_the_focus_stays_where_the_work_is(here: Scene, page: Page) -> None:
    here.web.answers = {**here.web.answers, "/busy.pdf": 503}
    await page.goto(here.heatsync.url)
    await page.get_by_label("Addresses").fill(f"{here.web.url}/busy.pdf")
    await page.get_by_label("Swimmer").fill(SWIMMER)
    await page.keyboard.press("Enter")
    await expect(page.locator("#title")).to_be_focused()
    await here.says("0 of 1 sheets read, 1 failed.")
    await page.get_by_role("button", name="Retry failed").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#summary")).to_be_focused()
    await page.get_by_role("button", name="Cancel").focus()
    await page.keyboard.press("Enter")
    await here.says("Cancelled: 0 of 1 sheets were read.")
    await expect(page.locator("#summary")).to_be_focused()


async def test_what_is_refused_leaves_the_focus_on_its_button(here: Scene, page: Page) -> None:
    await page.goto(here.heatsync.url)
    await page.get_by_label("Swimmer").fill(SWIMMER)
    button = page.get_by_role("button", name="Make the schedule")
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#refused")).not_to_be_empty()
    await expect(button).to_be_focused()


async def test_every_column_has_a_name(here: Scene, page: Page) -> None:
    await here.hand_in((NAME, PDF))
    await expect(page.locator("#swims tr").first).to_be_visible()
    assert all(await page.get_by_role("columnheader").all_inner_texts())


async def test_two_files_of_one_name_and_size_are_two(here: Scene, page: Page) -> None:
    await page.goto(here.heatsync.url)
    for content in (b"%PDF-1", b"%PDF-2"):
        await page.locator("#pdfs").set_input_files(
            [{"name": "sheet.pdf", "mimeType": "application/pdf", "buffer": content}]
        )
    await expect(page.locator("#files li")).to_have_count(2)


async def test_a_form_whose_answer_was_lost_makes_one_batch(
    here: Scene, page: Page, sql: psycopg.Connection[Any]
) -> None:
    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/extract", lose)
    await here.hand_in((NAME, PDF))
    await expect(page.locator("#refused")).to_contain_text("does not answer")
    await page.unroute("**/extract")
    await page.get_by_role("button", name="Make the schedule").click()
    await here.says("1 of 1 sheets read.")
    assert one(sql, "select count(*) from batchmill.batches") == (1,)


async def test_a_batch_that_is_deleted_meanwhile_is_asked_for_no_more(
    here: Scene, page: Page
) -> None:
    asked: list[str] = []

    async def gone(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(status=404, json={"success": False, "error": "Batch not found"})

    await page.clock.install()
    await here.hand_in_both()
    await page.route("**/api/**", gone)
    await here.heatsync.end(signal.SIGKILL)
    await here.heatsync.start()
    await expect(page.locator("#problem")).to_contain_text("These sheets are gone")
    await expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    asked.clear()
    await page.clock.run_for(60_000)
    # Whatever those timers asked for is asked before this.
    await page.evaluate("fetch('/api/last')")
    assert [url.rpartition("/")[2] for url in asked] == ["last"]


async def test_mail_is_offered_only_where_it_is_sent(here: Scene, page: Page, start: Start) -> None:
    await here.hand_in_both()
    await expect(page.get_by_label("Mail me")).to_be_hidden()
    where = {
        "BATCHMILL_SMTP_URL": "smtp://127.0.0.1:9",
        "BATCHMILL_MAIL_FROM": "heats@club.example",
        "BATCHMILL_PUBLIC_URL": "https://club.example",
    }
    async with start(**where) as mailing:
        await page.goto(page.url.replace(here.heatsync.url, mailing.url))
        await expect(page.get_by_label("Mail me")).to_be_visible()


async def test_it_fits_on_a_phone(here: Scene, page: Page) -> None:
    await page.set_viewport_size({"width": 360, "height": 740})
    await here.hand_in((NAME, PDF))
    await expect(page.locator("#swims tr").first).to_be_visible()
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360


async def test_sheets_of_a_meets_page_are_picked(here: Scene, page: Page) -> None:
    meet = (
        b'<html><body><a href="late.pdf">Heat sheet</a> <a href="fees.pdf">Fees</a></body></html>'
    )
    here.web.answers = {"/meet.html": meet, "/late.pdf": PDF}
    await page.goto(here.heatsync.url)
    await page.get_by_label("Swimmer").fill(SWIMMER)
    await page.get_by_label("Addresses").fill(f"{here.web.url}/meet.html")
    await page.get_by_role("button", name="Find sheets").click()
    await expect(page.get_by_label("Heat sheet", exact=True)).to_be_checked()
    await expect(page.get_by_label("Fees")).not_to_be_checked()
    await page.get_by_role("button", name="Make the schedule").click()
    await here.says("1 of 1 sheets read.")


async def test_two_swimmers_in_one_schedule_are_named(here: Scene, page: Page) -> None:
    async def of_two(route: Route) -> None:
        found = await (await route.fetch()).json()
        for swim in found["events"][:1]:
            swim["swimmerName"] = "Doe, Jane"
        found["warnings"] = ["Two swimmers."]
        await route.fulfill(json=found)

    await page.route("**/results", of_two)
    await here.hand_in((NAME, PDF))
    await here.says("1 of 1 sheets read.")
    await expect(page.get_by_role("columnheader", name="Swimmer")).to_be_visible()
    await expect(page.get_by_role("cell", name="Doe, Jane")).to_be_visible()
    await expect(page.get_by_text("Two swimmers.")).to_be_visible()
    await page.unroute("**/results")
    await page.reload()
    await expect(page.locator("#swims tr").first).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Swimmer")).to_be_hidden()


async def test_one_day_is_shown_by_itself_and_printed_with_the_name(
    here: Scene, page: Page
) -> None:
    async def over_two_days(route: Route) -> None:
        found = await (await route.fetch()).json()
        for at, swim in enumerate(found["events"]):
            swim["sessionDate"] = f"2026-03-0{7 + at % 2}"
        await route.fulfill(json=found)

    await page.route("**/results", over_two_days)
    await here.hand_in((NAME, PDF))
    await here.says("1 of 1 sheets read.")
    rows = page.locator("#swims tr")
    await expect(page.locator("#days button")).to_have_count(3)
    every = await rows.count()
    await page.get_by_role("button", name="Mar 8").click()
    await expect(rows).to_have_count(every // 2)
    await expect(page.get_by_role("button", name="Mar 8")).to_be_focused()
    await page.emulate_media(media="print")
    await expect(page.locator("#title")).to_be_visible()
    await expect(page.locator("#swims")).to_be_visible()
    await expect(page.locator("#jobs")).to_be_hidden()
