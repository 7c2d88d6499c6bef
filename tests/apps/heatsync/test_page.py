"""The web page in a real browser: submit, follow, reload, cancel, retry, read."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from tests.apps.heatsync.conftest import Api, HeatSync, Start, Visitor, lapse_leases
from tests.apps.heatsync.sheets import BAD, SHEETS, SWIMMER, fresh
from tests.apps.heatsync.web import Answer, Web, serving
from tests.axe import violations_in_both_schemes
from tests.library.tools import until

# The browser lives as long as the session, and so does its event loop.
pytestmark = pytest.mark.asyncio(loop_scope="session")

(NAME, PDF), *_ = SHEETS.items()
expect.set_options(timeout=60_000)


@dataclass
class Scene:
    """A browser page, HeatSync, and a web server that holds back `late.pdf` until `gate` is set."""

    page: Page
    heatsync: Api
    web: Web
    gate: asyncio.Event
    pdf: bytes

    @property
    def url(self) -> str:
        return f"{self.web.url}/late.pdf"

    async def submit(self, *files: tuple[str, bytes], urls: str = "") -> None:
        await self.page.goto(self.heatsync.url)
        await self.page.get_by_label("Swimmer", exact=True).fill(SWIMMER)
        await self.page.locator("#pdfs").set_input_files(
            [{"name": name, "mimeType": "application/pdf", "buffer": pdf} for name, pdf in files]
        )
        await self.page.get_by_label("Addresses").fill(urls)
        await self.page.get_by_role("button", name="Make the schedule").click()

    async def submit_both(self) -> None:
        await self.submit((NAME, self.pdf), urls=self.url)
        await self.expect_both()

    async def expect_both(self) -> None:
        await self.expect_stage(NAME, "Done")
        await self.expect_stage("late.pdf", "Downloading")

    async def expect_stage(self, name: str, stage: str) -> None:
        row = self.page.locator("#jobs li").filter(has_text=name)
        await expect(row.locator(".stage")).to_have_text(stage)

    async def expect_summary(self, text: str) -> None:
        await expect(self.page.locator("#summary")).to_have_text(text)


class Late:
    """A sheet that is not in the cache, and an answer with it that waits for the gate."""

    def __init__(self) -> None:
        self.pdf = fresh(PDF)
        self.gate = asyncio.Event()

    @property
    def answers(self) -> dict[str, Answer]:
        return {"/late.pdf": self._answer}

    async def _answer(self, _: bytes) -> bytes:
        await self.gate.wait()
        return self.pdf


@pytest_asyncio.fixture(loop_scope="session")
async def scene(page: Page, heatsync: Visitor) -> AsyncIterator[Scene]:
    late = Late()
    await page.set_extra_http_headers(dict(heatsync.headers))
    async with heatsync.web(late.answers) as web:
        yield Scene(page, heatsync, web, late.gate, late.pdf)
        late.gate.set()


@dataclass
class Restartable(Scene):
    """A scene with its own server."""

    server: HeatSync
    sql: psycopg.Connection[Any]

    async def restart(self, by: signal.Signals) -> None:
        await self.server.end(by)
        lapse_leases(self.sql)
        await self.server.start()


@pytest_asyncio.fixture(loop_scope="session")
async def restartable(
    page: Page, start: Start, sql: psycopg.Connection[Any]
) -> AsyncIterator[Restartable]:
    late = Late()
    async with (
        serving(late.answers) as web,
        start(HEATSYNC_ALLOWED=web.address) as heatsync,
    ):
        yield Restartable(page, heatsync, web, late.gate, late.pdf, heatsync, sql)
        late.gate.set()


async def test_a_batch_is_submitted_followed_reloaded_and_read(scene: Scene, page: Page) -> None:
    await scene.submit_both()
    await page.reload()
    await scene.expect_both()
    scene.gate.set()
    await scene.expect_summary("2 of 2 sheets read.")
    results = await scene.heatsync.get(f"/api/batch/{page.url[-36:]}/results")
    await expect(page.locator("#swims tr")).to_have_count(results["totalEvents"])
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Calendar").click()
    assert (await download.value).suggested_filename == "heatsync.ics"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_the_page_continues_after_a_restart_of_the_server(
    restartable: Restartable, end: signal.Signals
) -> None:
    await restartable.submit_both()
    await restartable.restart(end)
    restartable.gate.set()
    await restartable.expect_summary("2 of 2 sheets read.")


async def test_a_cancelled_batch_shows_which_sheets_were_cancelled(
    scene: Scene, page: Page
) -> None:
    await scene.submit_both()
    await page.get_by_role("button", name="Cancel").click()
    await scene.expect_summary("Cancelled: 1 of 2 sheets were read.")
    await scene.expect_stage("late.pdf", "Cancelled")
    await page.reload()
    await scene.expect_stage("late.pdf", "Cancelled")


async def test_an_unreadable_sheet_shows_the_reason(scene: Scene, page: Page) -> None:
    await scene.submit((NAME, PDF), BAD)
    await scene.expect_summary("1 of 2 sheets read, 1 failed.")
    await expect(page.locator("#jobs li.failed small")).to_contain_text("incomplete")


async def test_failed_sheets_can_be_retried(scene: Scene, page: Page) -> None:
    scene.web.answers = {"/late.pdf": 503}
    await scene.submit((NAME, PDF), urls=scene.url)
    await scene.expect_summary("1 of 2 sheets read, 1 failed.")
    scene.web.answers = {"/late.pdf": PDF}
    await page.get_by_role("button", name="Retry failed").click()
    await scene.expect_summary("2 of 2 sheets read.")


async def test_the_page_reconnects_after_responses_with_503(
    restartable: Restartable, page: Page
) -> None:
    """An EventSource never reconnects after such a response."""
    refused: list[str] = []

    async def refuse(route: Route) -> None:
        refused.append(route.request.url)
        await route.fulfill(status=503, body="{}")

    await restartable.submit_both()
    await page.route("**/api/**", refuse)
    await restartable.restart(signal.SIGKILL)
    await until(lambda: any("/stream" in url for url in refused))
    await page.unroute("**/api/**")
    restartable.gate.set()
    await restartable.expect_summary("2 of 2 sheets read.")


async def test_a_refused_form_shows_the_reason(scene: Scene, page: Page) -> None:
    await scene.submit()
    await expect(page.locator("#refused")).to_have_text("At least one PDF file or URL is required.")
    await page.goto(f"{scene.heatsync.url}/batches/00000000-0000-4000-8000-000000000000")
    await expect(page.locator("#problem")).to_have_text("Batch not found")


async def test_html_in_the_name_of_a_file_is_shown_as_text(scene: Scene, page: Page) -> None:
    name = "<img src=x onerror=document.title='caught'>.pdf"
    await scene.submit((name, PDF))
    await scene.expect_summary("1 of 1 sheets read.")
    assert await page.locator("#jobs img").count() == 0
    assert await page.title() == f"{SWIMMER} · HeatSync"


async def test_the_form_can_be_used_with_the_keyboard(scene: Scene, page: Page) -> None:
    await page.goto(scene.heatsync.url)
    await page.get_by_label("Swimmer", exact=True).focus()
    await page.keyboard.type(SWIMMER)
    for wanted in ("pdfs", "urls"):
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.id") == wanted
    await page.keyboard.type(scene.url)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await scene.expect_stage("late.pdf", "Downloading")


async def test_the_focus_moves_to_the_title_and_the_summary(scene: Scene, page: Page) -> None:
    scene.web.answers = {**scene.web.answers, "/busy.pdf": 503}
    await page.goto(scene.heatsync.url)
    await page.get_by_label("Addresses").fill(f"{scene.web.url}/busy.pdf")
    await page.get_by_label("Swimmer", exact=True).fill(SWIMMER)
    await page.keyboard.press("Enter")
    await expect(page.locator("#title")).to_be_focused()
    await scene.expect_summary("0 of 1 sheets read, 1 failed.")
    await page.get_by_role("button", name="Retry failed").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#summary")).to_be_focused()
    await page.get_by_role("button", name="Cancel").focus()
    await page.keyboard.press("Enter")
    await scene.expect_summary("Cancelled: 0 of 1 sheets were read.")
    await expect(page.locator("#summary")).to_be_focused()


async def test_a_refused_form_keeps_the_focus_on_its_button(scene: Scene, page: Page) -> None:
    await page.goto(scene.heatsync.url)
    await page.get_by_label("Swimmer", exact=True).fill(SWIMMER)
    button = page.get_by_role("button", name="Make the schedule")
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#refused")).not_to_be_empty()
    await expect(button).to_be_focused()


async def test_every_column_has_a_name(scene: Scene, page: Page) -> None:
    await scene.submit((NAME, PDF))
    await expect(page.locator("#swims tr").first).to_be_visible()
    assert all(await page.get_by_role("columnheader").all_inner_texts())


async def test_two_files_with_the_same_name_and_size_are_both_listed(
    scene: Scene, page: Page
) -> None:
    await page.goto(scene.heatsync.url)
    for content in (b"%PDF-1", b"%PDF-2"):
        await page.locator("#pdfs").set_input_files(
            [{"name": "sheet.pdf", "mimeType": "application/pdf", "buffer": content}]
        )
    await expect(page.locator("#files li")).to_have_count(2)


async def test_a_form_that_is_sent_again_after_a_lost_response_makes_one_batch(
    scene: Scene, page: Page, heatsync: Visitor
) -> None:
    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/extract", lose)
    await scene.submit((NAME, PDF))
    await expect(page.locator("#refused")).to_contain_text("does not respond")
    await page.unroute("**/extract")
    await page.get_by_role("button", name="Make the schedule").click()
    await scene.expect_summary("1 of 1 sheets read.")
    assert heatsync.count("batches") == 1


async def test_the_page_stops_its_requests_if_the_batch_is_deleted(
    restartable: Restartable, page: Page
) -> None:
    requests: list[str] = []

    async def gone(route: Route) -> None:
        requests.append(route.request.url)
        await route.fulfill(status=404, json={"success": False, "error": "Batch not found"})

    await page.clock.install()
    await restartable.submit_both()
    await page.route("**/api/**", gone)
    await restartable.restart(signal.SIGKILL)
    await expect(page.locator("#problem")).to_contain_text("These sheets no longer exist")
    await expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    requests.clear()
    await page.clock.run_for(60_000)
    # Requests of those timers would arrive before this one.
    await page.evaluate("fetch('/api/last')")
    assert [url.rpartition("/")[2] for url in requests] == ["last"]


async def test_mail_is_offered_only_if_it_is_configured(
    scene: Scene, restartable: Restartable, page: Page
) -> None:
    """It is configured in the shared server only."""
    await restartable.submit_both()
    await expect(page.get_by_label("Email me")).to_be_hidden()
    await scene.submit_both()
    await expect(page.get_by_label("Email me")).to_be_visible()


async def test_the_page_fits_on_a_phone(scene: Scene, page: Page) -> None:
    await page.set_viewport_size({"width": 360, "height": 740})
    await scene.submit((NAME, PDF))
    await expect(page.locator("#swims tr").first).to_be_visible()
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360


async def test_sheets_can_be_selected_from_the_page_of_a_meet(scene: Scene, page: Page) -> None:
    meet = (
        b'<html><body><a href="late.pdf">Heat sheet</a> <a href="fees.pdf">Fees</a></body></html>'
    )
    scene.web.answers = {"/meet.html": meet, "/late.pdf": PDF}
    await page.goto(scene.heatsync.url)
    await page.get_by_label("Swimmer", exact=True).fill(SWIMMER)
    await page.get_by_label("Addresses").fill(f"{scene.web.url}/meet.html")
    await page.get_by_role("button", name="Find sheets").click()
    await expect(page.get_by_label("Heat sheet", exact=True)).to_be_checked()
    await expect(page.get_by_label("Fees")).not_to_be_checked()
    await page.get_by_role("button", name="Make the schedule").click()
    await scene.expect_summary("1 of 1 sheets read.")


async def test_a_schedule_of_two_swimmers_shows_their_names(scene: Scene, page: Page) -> None:
    async def of_two(route: Route) -> None:
        results = await (await route.fetch()).json()
        for swim in results["events"][:1]:
            swim["swimmerName"] = "Doe, Jane"
        results["warnings"] = ["Two swimmers."]
        await route.fulfill(json=results)

    await page.route("**/results", of_two)
    await scene.submit((NAME, PDF))
    await scene.expect_summary("1 of 1 sheets read.")
    await expect(page.get_by_role("columnheader", name="Swimmer")).to_be_visible()
    await expect(page.get_by_role("cell", name="Doe, Jane")).to_be_visible()
    await expect(page.get_by_text("Two swimmers.")).to_be_visible()
    await page.unroute_all(behavior="wait")
    await page.reload()
    await expect(page.locator("#swims tr").first).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Swimmer")).to_be_hidden()


async def test_a_schedule_can_be_limited_to_one_day_and_printed(scene: Scene, page: Page) -> None:
    async def over_two_days(route: Route) -> None:
        results = await (await route.fetch()).json()
        for at, swim in enumerate(results["events"]):
            swim["sessionDate"] = f"2026-03-0{7 + at % 2}"
        await route.fulfill(json=results)

    await page.route("**/results", over_two_days)
    await scene.submit((NAME, PDF))
    await scene.expect_summary("1 of 1 sheets read.")
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


@pytest.mark.parametrize("width", [360, 1280])
async def test_axe_finds_nothing_in_the_form_a_running_and_a_finished_batch(
    scene: Scene, page: Page, width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 900})
    await page.goto(scene.heatsync.url)
    await expect(page.get_by_label("Swimmer", exact=True)).to_be_visible()
    assert await violations_in_both_schemes(page) == []
    await scene.submit((NAME, PDF), BAD, urls=scene.url)
    await scene.expect_both()
    assert await violations_in_both_schemes(page) == []
    scene.gate.set()
    await scene.expect_summary("2 of 3 sheets read, 1 failed.")
    await expect(page.locator("#swims tr").first).to_be_visible()
    assert await violations_in_both_schemes(page) == []
