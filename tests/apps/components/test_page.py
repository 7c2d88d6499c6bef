"""Every component in a real browser: with keyboard and pointer, on a phone, and on paper."""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.apps.components.conftest import Components
from tests.axe import violations_in_both_schemes

pytestmark = pytest.mark.asyncio(loop_scope="session")

expect.set_options(timeout=30_000)
RUN = "5 of 6 documents converted, 1 failed."
DROP = """([zone, name, type]) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File(["x"], name, { type }));
    zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: dropped }));
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def opened(page: Page, components: Components) -> Page:
    await page.goto(components.url)
    return page


async def run_batch(page: Page) -> None:
    await page.get_by_role("button", name="Run a batch").click()
    await expect(page.locator("#summary")).to_have_text(RUN)


async def overflow(page: Page) -> list[str]:
    """Elements that are wider than the page, except inside of what scrolls."""
    return await page.evaluate("""() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.body.querySelectorAll("*")].filter((each) =>
            each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 100))""")


async def test_a_batch_shows_its_stages_failures_and_progress(opened: Page) -> None:
    await opened.get_by_role("button", name="Run a batch").click()
    rows = opened.locator("#jobs > li")
    await expect(rows).to_have_count(6)
    bar = rows.first.get_by_role("progressbar")
    await expect(bar).to_have_attribute("aria-valuetext", "step 2 of 3")
    await expect(rows.nth(2)).to_contain_text("did not answer in time. Trying again in")
    await expect(opened.locator("#summary")).to_have_text(RUN)
    await expect(opened.locator("#jobs > li.done")).to_have_count(5)
    await expect(opened.locator("#jobs > li.failed small")).to_contain_text("Page 3 is damaged.")
    await expect(opened.locator("#jobs").get_by_text("<b>not bold</b>.pdf")).to_be_visible()
    await expect(bar).to_have_count(0)
    await expect(opened.locator("#connection")).to_be_hidden()


async def test_a_reloaded_page_shows_the_same_rows_and_goes_on(
    opened: Page, components: Components
) -> None:
    path = await components.start_batch(1)
    await opened.goto(f"{components.url}/#{path[-36:]}")
    await opened.reload()
    await expect(opened.locator("#jobs > li.active")).not_to_have_count(0)
    await opened.reload()
    await expect(opened.locator("#summary")).to_have_text(RUN)
    await opened.reload()
    await expect(opened.locator("#summary")).to_have_text(RUN)
    await expect(opened.locator("#jobs > li.done small")).to_have_text(["8 pages"] * 5)


async def test_failed_documents_can_be_retried_and_cancelled_with_the_keyboard(
    opened: Page, components: Components
) -> None:
    await run_batch(opened)
    await opened.get_by_role("button", name="Retry failed").focus()
    await opened.keyboard.press("Enter")
    await expect(opened.locator("#summary")).to_be_focused()
    await opened.get_by_role("button", name="Cancel").focus()
    await opened.keyboard.press("Enter")
    await expect(opened.locator("#summary")).to_have_text("5 of 6 documents converted.")
    await expect(opened.locator("#jobs > li.cancelled .stage")).to_have_text("Cancelled")
    await expect(opened.locator("#summary")).to_be_focused()


async def test_changes_are_announced_seldom(opened: Page) -> None:
    await opened.clock.install()
    await opened.evaluate("""async () => {
        const { announce } = await import("/components/elements.js");
        announce("first");
        const region = document.querySelector("body > [role=status]");
        window.said = [];
        new MutationObserver(() => said.push(region.textContent)).observe(region, { childList: true });
    }""")
    await opened.clock.run_for(200)
    await opened.evaluate("""async () => {
        const { announce } = await import("/components/elements.js");
        for (let at = 0; at < 500; at++) announce(`${at} of 500`);
    }""")
    await opened.clock.run_for(5_000)
    assert await opened.evaluate("said") == ["first", "499 of 500"]


async def test_a_table_is_sorted_by_its_headings(opened: Page) -> None:
    heading = opened.get_by_role("columnheader", name="Jobs")
    cells = opened.locator("#batches td:nth-child(4)")
    every = [int(text) for text in await cells.all_inner_texts()]
    for direction, reverse in (("ascending", False), ("descending", True)):
        await heading.get_by_role("button").focus()
        await opened.keyboard.press("Enter")
        await expect(heading).to_have_attribute("aria-sort", direction)
        shown = [int(text) for text in await cells.all_inner_texts()]
        assert shown == sorted(every, reverse=reverse) != every


async def test_filters_have_an_address_and_an_empty_state(opened: Page) -> None:
    await opened.get_by_label("State", exact=True).select_option("failed")
    await opened.get_by_role("button", name="Filter").click()
    await expect(opened.locator("#batches tr")).to_have_count(12)
    assert "state=failed" in opened.url
    await opened.get_by_label("Text", exact=True).fill("no such batch")
    await opened.keyboard.press("Enter")
    await expect(opened.get_by_role("heading", name="No batch matches")).to_be_visible()
    await opened.get_by_role("link", name="Remove the filters").click()
    await expect(opened.locator("#batches tr")).to_have_count(60)


async def test_dropped_files_are_listed_and_others_are_refused(opened: Page) -> None:
    zone = opened.locator("#drop")
    files = zone.get_by_role("listitem")
    handle = await zone.element_handle()
    await opened.evaluate(DROP, [handle, "talk.ogg", "audio/ogg"])
    await opened.evaluate(DROP, [handle, "PAPER.PDF", ""])
    await opened.evaluate(DROP, [handle, "virus.exe", "application/x-msdownload"])
    await expect(files).to_have_count(2)
    await expect(opened.get_by_role("alert").filter(has_text="virus.exe")).to_contain_text(
        "choose .pdf, .png, audio/*"
    )
    await zone.get_by_role("button", name="Remove talk.ogg").press("Enter")
    await expect(files).to_have_count(1)
    await expect(opened.locator("#files")).to_be_focused()


async def test_an_error_stays_until_it_is_closed_and_returns_the_focus(opened: Page) -> None:
    await opened.clock.install()
    cause = opened.get_by_role("button", name="An error")
    for _ in range(2):
        await cause.press("Enter")
    error = opened.locator(".toast")
    await expect(error).to_have_count(1)
    await opened.get_by_role("button", name="A toast").press("Enter")
    await expect(error).to_have_count(2)
    await opened.clock.run_for(10_000)
    await expect(error).to_have_count(1)
    await cause.focus()
    await error.get_by_role("button", name="Close").focus()
    await opened.keyboard.press("Escape")
    await expect(error).to_have_count(0)
    await expect(cause).to_be_focused()


async def test_a_dialog_asks_before_it_acts(opened: Page) -> None:
    cause = opened.get_by_role("button", name="Delete …")
    await cause.click()
    await expect(opened.get_by_role("button", name="Keep them")).to_be_focused()
    await opened.keyboard.press("Escape")
    await expect(cause).to_be_focused()
    await expect(opened.locator(".toast")).to_have_count(0)
    await cause.click()
    await opened.get_by_role("button", name="Delete 3 documents").click()
    await expect(opened.locator(".toast")).to_contain_text("3 documents are deleted.")


async def test_a_menu_closes_with_escape_elsewhere_and_after_a_choice(opened: Page) -> None:
    menu = opened.locator("#menu")
    summary, button = menu.locator("summary"), menu.get_by_role("button", name="A button")
    await summary.press("Enter")
    await opened.keyboard.press("Tab")
    await expect(menu.get_by_role("link", name="A link")).to_be_focused()
    await opened.keyboard.press("Escape")
    await expect(summary).to_be_focused()
    await expect(button).to_be_hidden()
    await summary.click()
    await button.click()
    await expect(button).to_be_hidden()
    await summary.click()
    await opened.get_by_role("heading", name="Buttons, forms and files").click()
    await expect(button).to_be_hidden()


async def test_a_button_that_works_is_pressed_once_and_keeps_the_focus(opened: Page) -> None:
    await opened.clock.install()
    button = opened.get_by_role("button", name="Work for a second")
    await button.focus()
    await opened.keyboard.press("Enter")
    await expect(button).to_have_attribute("aria-busy", "true")
    await expect(button).to_be_focused()
    await opened.clock.run_for(2_000)
    await expect(button).not_to_have_attribute("aria-busy", "true")


async def test_a_session_sends_its_token_with_requests_that_change_something(
    opened: Page, components: Components
) -> None:
    await opened.context.add_cookies(
        [{"name": "batchmill_csrf", "value": "abc", "url": components.url}]
    )
    async with opened.expect_request("**/api/batches") as sent:
        await run_batch(opened)
    assert (await sent.value).headers["x-csrf-token"] == "abc"
    async with opened.expect_request("**/api/batches/*") as read:
        await opened.reload()
    assert "x-csrf-token" not in (await read.value).headers


@pytest.mark.parametrize(
    ("cookies", "token"),
    [
        ("batchmill_csrf=old; __Host-batchmill_csrf=new", "new"),
        ("__Host-batchmill_csrf=new; other=1; batchmill_csrf=old", "new"),
        ("not_batchmill_csrf=bad; batchmill_csrf=a=b", "a=b"),
        ("not_batchmill_csrf=bad", None),
    ],
)
async def test_a_cookie_from_before_a_change_to_https_is_not_sent_as_token(
    opened: Page, cookies: str, token: str | None
) -> None:
    """The page is not loaded over https, so the cookies are replaced."""
    async with opened.expect_request("**/api/batches") as sent:
        await opened.evaluate(
            """async (cookies) => {
                Object.defineProperty(document, "cookie", { get: () => cookies });
                const { post } = await import("/components/http.js");
                await post("/api/batches");
            }""",
            cookies,
        )
    assert (await sent.value).headers.get("x-csrf-token") == token


@pytest.mark.parametrize("width", [320, 360, 768])
async def test_nothing_is_wider_than_the_screen(opened: Page, width: int) -> None:
    await opened.set_viewport_size({"width": width, "height": 740})
    await run_batch(opened)
    await opened.get_by_role("button", name="With an action").click()
    assert await overflow(opened) == []


async def test_paper_shows_contents_and_no_controls(opened: Page) -> None:
    await run_batch(opened)
    await opened.emulate_media(media="print")
    await expect(opened.locator("#jobs > li")).to_have_count(6)
    await expect(opened.locator("#jobs > li").first).to_be_visible()
    await expect(opened.locator("#batches tr").first).to_be_visible()
    await expect(opened.locator(".button:visible, nav:visible, .drop:visible")).to_have_count(0)


async def test_nothing_moves_if_the_user_prefers_that(opened: Page) -> None:
    count = "document.getAnimations().filter((it) => it.playState === 'running').length"
    assert await opened.evaluate(count) > 0
    await opened.emulate_media(reduced_motion="reduce")
    assert await opened.evaluate(count) == 0


async def test_the_page_loads_files_of_this_server_only_and_without_errors(
    page: Page, components: Components
) -> None:
    urls: list[str] = []
    troubles: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    await page.goto(components.url)
    await run_batch(page)
    assert all(url.startswith(components.url) for url in urls), urls
    assert troubles == []


@pytest.mark.parametrize("width", [360, 1280])
async def test_axe_finds_nothing(opened: Page, width: int) -> None:
    await opened.set_viewport_size({"width": width, "height": 900})
    assert await violations_in_both_schemes(opened) == []
    await opened.get_by_role("button", name="Run a batch").click()
    await expect(opened.locator("#jobs > li.active")).not_to_have_count(0)
    assert await violations_in_both_schemes(opened) == []
    await expect(opened.locator("#summary")).to_have_text(RUN)
    await opened.get_by_label("Key").fill("bm_wrong")
    for name in ("Sign in", "A toast", "An error", "With an action"):
        await opened.get_by_role("button", name=name).click()
    assert await violations_in_both_schemes(opened) == []
    await opened.get_by_role("button", name="Delete …").click()
    assert await violations_in_both_schemes(opened) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"detail": "As a problem."}, "As a problem."),
        ({"success": False, "error": "CODE", "message": "Beside a code."}, "Beside a code."),
        ({"success": False, "error": {"code": "x", "message": "Inside."}}, "Inside."),
        ({"success": False, "error": "Alone."}, "Alone."),
        ({"detail": [{"msg": "field required"}]}, "The server refused this with status 422."),
    ],
)
async def test_errors_of_every_format_have_a_sentence(
    opened: Page, answer: Any, message: str
) -> None:
    await opened.route("**/api/batches", lambda route: route.fulfill(status=422, json=answer))
    await opened.get_by_role("button", name="Run a batch").click()
    await expect(opened.locator(".toast")).to_contain_text(message)
