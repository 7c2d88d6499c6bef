"""The pages in a real browser: upload, watch, listen, read, find.

All tests share one server. Each test has an organisation of its own, or reads the call of `library`.
"""

import base64
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, Locator, Page, Route, expect

from apps.calls.tables import CALLS
from batchmill import Mill
from tests.apps.calls.conftest import SHORT, Calls, Organisation, SharedCalls, tone
from tests.apps.heatsync.web import serving
from tests.artifacts.conftest import object_server
from tests.artifacts.objects import ObjectServer
from tests.axe import violations_in_both_schemes
from tests.postgres import Server, create_database, drop_database, free_port

__all__ = ["object_server"]

# The browser lives as long as the session, and so does its event loop.
pytestmark = pytest.mark.asyncio(loop_scope="session")

expect.set_options(timeout=60_000)

SECONDS = 40
PHONE = {"width": 360, "height": 740}
ATTACK = "<img src=x onerror=document.title='caught'>"
LINES = [
    "Thank you for calling Maple Heating. How can I help you today?",
    "My boiler stopped working last night, and the house is terribly cold.",
    "I am sorry to hear that. Is there a red light on the front?",
    f"Yes, it says {ATTACK} on the display.",
    "That is fine. I will send an engineer tomorrow morning.",
    "Wonderful. Could you call me before he comes?",
] * 3
DROP = """([zone, files]) => {
    const dropped = new DataTransfer();
    for (const [name, content] of files) {
        const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
        dropped.items.add(new File([bytes], name, { type: "audio/wav" }));
    }
    zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: dropped }));
}"""


def segments_of(lines: list[str]) -> list[dict[str, Any]]:
    """Two speakers take turns. All words of a line have the same length."""
    turn, found = SECONDS / len(lines), list[dict[str, Any]]()
    for at, text in enumerate(lines):
        words = text.split()
        times = [at * turn + turn * number / len(words) for number in range(len(words) + 1)]
        said = [
            {"start": times[number], "end": times[number + 1], "text": word}
            for number, word in enumerate(words)
        ]
        found.append(
            {
                "speaker": 1 + at % 2,
                "start": times[0],
                "end": times[-1],
                "text": text,
                "words": said,
            }
        )
    return found


def start_of(words: str) -> float:
    """When these words are said for the first time."""
    every = [word for segment in SEGMENTS for word in segment["words"]]
    wanted = words.split()
    return next(
        word["start"]
        for at, word in enumerate(every)
        if [each["text"] for each in every[at : at + len(wanted)]] == wanted
    )


SEGMENTS = segments_of(LINES)
TRANSCRIPT = {"provider": "manual", "language": "en", "duration": SECONDS, "speakers": 2}
WORDS = json.dumps(TRANSCRIPT | {"segments": SEGMENTS}).encode()
# The same words without times, for recordings of any length.
TEXT = "".join(f"Speaker {each['speaker']}: {each['text']}\n" for each in SEGMENTS).encode()
TONE = tone(SECONDS)


def file(name: str, content: bytes = SHORT) -> FilePayload:
    return {"name": name, "mimeType": "audio/wav", "buffer": content}


class PausableCalls(SharedCalls):
    """A server whose transcription service listens on `port`, if a test starts it."""

    def __init__(self, server: Calls, dsn: str, port: int):
        super().__init__(server, dsn)
        self.port = port

    @asynccontextmanager
    async def paused(self, stage: str) -> AsyncIterator[None]:
        """No call begins this stage."""
        async with Mill(self.dsn, schemas=[CALLS]) as mill:
            await mill.limits.pause(f"task:calls.{stage}")
            try:
                yield
            finally:
                await mill.limits.resume(f"task:calls.{stage}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def calls(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PausableCalls]:
    dsn, port = create_database(server.dsn, "calls_page", template), free_port()
    environment = {
        "BATCHMILL_ARTIFACTS": str(tmp_path_factory.mktemp("calls") / "artifacts"),
        "CALLS_TRANSCRIPTION_URL": f"http://127.0.0.1:{port}",
    }
    await migrate(dsn)
    async with Calls(dsn, environment) as process:
        yield PausableCalls(process, dsn, port)
    drop_database(server.dsn, "calls_page")


async def migrate(dsn: str) -> None:
    async with Mill(dsn, migrate=True, schemas=[CALLS]):
        pass


@pytest_asyncio.fixture(loop_scope="session")
async def organisation(calls: PausableCalls) -> Organisation:
    return await calls.organisation()


async def visit(page: Page, organisation: Organisation, path: str = "/") -> None:
    """Opens a page with a session of the organisation."""
    await page.context.request.post(
        f"{organisation.url}/api/session", data={"key": organisation.key}
    )
    await page.goto(organisation.url + path)


@dataclass
class Library:
    """An organisation with one call, which tests must not change."""

    organisation: Organisation
    call: str

    async def open(self, page: Page, path: str) -> None:
        await visit(page, self.organisation, path)

    async def read(self, page: Page, hash: str = "") -> None:
        """Opens the call, and waits until everything is shown."""
        await self.open(page, f"/calls/{self.call}{hash}")
        await expect(page.get_by_role("heading", name="Questions")).to_be_visible()
        await expect(page.locator(".timeline .talk")).to_have_count(2)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def library(calls: PausableCalls) -> Library:
    owner = await calls.organisation()
    uploaded = await owner.upload(("boiler.wav", TONE), words=WORDS)
    call = uploaded.json()["calls"][0]["id"]
    assert (await owner.ended(call))["status"] == "done"
    return Library(owner, call)


def row(page: Page, name: str) -> Locator:
    return page.locator("#calls > li").filter(has_text=name)


async def expect_stage(page: Page, name: str, stage: str) -> None:
    await expect(row(page, name).locator(".stage")).to_have_text(stage)


async def overflow(page: Page) -> list[str]:
    return await page.evaluate("""() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.body.querySelectorAll("*")].filter((each) =>
            each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 100))""")


async def record_seeks(page: Page) -> None:
    await page.locator("#audio").evaluate("""(audio) => {
        window.seeks = [];
        audio.addEventListener("seeking", () => seeks.push(audio.currentTime));
    }""")


async def expect_seek(page: Page, seconds: float) -> None:
    """The sound plays on from there, so its position changes at once."""
    await page.wait_for_function("(at) => seeks.some((it) => Math.abs(it - at) < 0.2)", arg=seconds)


# Uploading and watching


async def test_a_recording_is_uploaded_watched_and_opened(
    organisation: Organisation, page: Page
) -> None:
    urls: list[str] = []
    troubles: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    await visit(page, organisation)
    await expect(page.get_by_role("heading", name="No calls yet")).to_be_visible()
    await page.locator("#recordings").set_input_files(file("first.wav"))
    await page.get_by_label("Transcribed by").select_option(label="I have a transcript")
    await page.get_by_label("Transcript", exact=True).set_input_files(file("words.txt", TEXT))
    await page.get_by_role("button", name="Upload").click()
    await expect_stage(page, "first.wav", "Done")
    await expect(row(page, "first.wav").locator("small")).to_contain_text(
        "2.0 s · stereo · English"
    )
    await page.get_by_role("link", name="Open first.wav").click()
    await expect(page.get_by_role("heading", name="first.wav")).to_be_visible()
    await expect(page.locator("#transcript")).to_contain_text("My boiler stopped working")
    await expect(page.get_by_role("heading", name="Action items")).to_be_visible()
    await expect(page.locator("#stages")).to_be_hidden()
    assert all(url.startswith(organisation.url) for url in urls), urls
    assert troubles == []


async def test_dropped_recordings_are_watched_and_the_page_can_be_reloaded(
    calls: PausableCalls, organisation: Organisation, page: Page
) -> None:
    await visit(page, organisation)
    zone = await page.locator("#drop").element_handle()
    recordings = [(f"{name}.wav", base64.b64encode(SHORT).decode()) for name in ("one", "two")]
    async with calls.paused("transcribe_start"):
        await page.evaluate(DROP, [zone, recordings])
        await page.get_by_role("button", name="Upload 2 recordings").click()
        for _ in range(2):
            for name in ("one.wav", "two.wav"):
                await expect_stage(page, name, "Starting transcription")
            bars = page.locator("#calls").get_by_role("progressbar")
            await expect(bars.first).to_have_attribute("aria-valuetext", "step 2 of 4")
            await page.reload()
        await page.get_by_role("button", name="Cancel one.wav").click()
        await expect_stage(page, "one.wav", "Cancelled")
        await expect(page.get_by_role("link", name="Open one.wav")).to_be_focused()
    await page.get_by_role("button", name="Delete one.wav").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(row(page, "one.wav")).to_have_count(0)
    await page.reload()
    await expect(page.locator("#calls > li")).to_have_count(1)


async def test_a_call_is_followed_on_its_page_while_it_runs(
    calls: PausableCalls, organisation: Organisation, page: Page
) -> None:
    async with calls.paused("analyze"):
        id = await organisation.submit(words=TEXT)
        await visit(page, organisation, f"/calls/{id}")
        await expect(page.locator("#stages li.done")).to_have_count(3)
        await expect(page.locator("#transcript")).to_contain_text("My boiler stopped working")
        await expect(page.locator("#analysis")).to_be_hidden()
        assert await page.locator(".timeline .talk").count() == 2
    await expect(page.get_by_role("heading", name="Action items")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete …")).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel")).to_be_hidden()


async def test_the_page_of_a_call_shows_what_its_stage_reports(
    calls: PausableCalls, organisation: Organisation, page: Page
) -> None:
    message = "SpeechKit is not available; trying again"

    async def reported(route: Route) -> None:
        answer = await (await route.fetch()).json()
        await route.fulfill(json=answer | {"status": "processing", "message": message})

    async with calls.paused("analyze"):
        id = await organisation.submit()
        await page.route(f"**/api/calls/{id}", reported)
        await visit(page, organisation, f"/calls/{id}")
        await expect(page.locator("#stages li.active small")).to_have_text(message)


@pytest.mark.timeout(180)
async def test_both_pages_continue_after_the_server_was_killed(
    browser: Browser, dsn: str, tmp_path: Path
) -> None:
    """This server has no keys, so that visitors from this machine need none."""
    environment = {"BATCHMILL_ARTIFACTS": str(tmp_path / "artifacts")}
    context = await browser.new_context()
    one, other = await context.new_page(), await context.new_page()
    await migrate(dsn)
    async with Mill(dsn, schemas=[CALLS]) as mill, Calls(dsn, environment) as server:
        await mill.limits.pause("task:calls.analyze")
        await one.goto(server.url)
        await expect(one.locator(".who")).to_contain_text("default")
        await one.locator("#recordings").set_input_files(file("long.wav"))
        await one.get_by_label("Transcribed by").select_option("manual")
        await one.get_by_label("Transcript", exact=True).set_input_files(file("words.txt", TEXT))
        await one.get_by_role("button", name="Upload").click()
        await expect_stage(one, "long.wav", "Analysing")
        await other.goto(
            await one.get_by_role("link", name="Open long.wav").evaluate("(it) => it.href")
        )
        await expect(other.locator("#stages li.done")).to_have_count(3)
        await server.end(signal.SIGKILL)
        await mill.limits.resume("task:calls.analyze")
        await server.start()
        await one.bring_to_front()
        await expect_stage(one, "long.wav", "Done")
        await expect(other.get_by_role("heading", name="Action items")).to_be_visible()
    await context.close()


async def test_a_failed_call_shows_the_reason_and_is_retried(
    calls: PausableCalls, organisation: Organisation, page: Page
) -> None:
    said = {
        "text": "Hello there.",
        "segments": [{"start": 0.1, "end": 1.5, "text": "Hello there."}],
    }
    async with serving({"/audio/transcriptions": 400}, calls.port) as service:
        await visit(page, organisation)
        await page.locator("#recordings").set_input_files(file("odd.wav"))
        await page.get_by_label("Transcribed by").select_option("openai")
        await page.get_by_role("button", name="Upload").click()
        await expect_stage(page, "odd.wav", "Failed")
        reason = await row(page, "odd.wav").locator("small").inner_text()
        await page.get_by_role("link", name="Open odd.wav").click()
        await expect(page.locator("#failure-text")).to_have_text(reason)
        await expect(page.locator("#failure-code")).to_have_text("OPERATION_REFUSED")
        service.answers = {"/audio/transcriptions": json.dumps(said).encode()}
        await page.get_by_role("button", name="Retry").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#transcript")).to_contain_text("Hello there.")
        await expect(page.locator("#failure")).to_be_hidden()
        await expect(page.locator("#title")).to_be_focused()


async def test_a_refused_upload_shows_why_and_the_others_go_on(
    organisation: Organisation, page: Page
) -> None:
    await visit(page, organisation)
    await page.locator("#recordings").set_input_files([file("empty.wav", b""), file("full.wav")])
    await page.get_by_label("Transcribed by").select_option("openai")
    await page.get_by_role("button", name="Upload 2 recordings").click()
    refused = page.locator("#uploads > li")
    await expect(refused).to_have_count(1)
    await expect(refused).to_contain_text("empty.wav is empty.")
    await expect(refused.get_by_role("button")).to_have_text(["Dismiss"])
    await expect(row(page, "full.wav")).to_be_visible()
    await refused.get_by_role("button", name="Dismiss").click()
    await expect(refused).to_have_count(0)


async def test_an_upload_whose_answer_is_lost_is_repeated_without_a_second_call(
    organisation: Organisation, page: Page
) -> None:
    async def lose(route: Route) -> None:
        if route.request.method == "POST":
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await visit(page, organisation)
    await page.route("**/api/calls", lose)
    await page.locator("#recordings").set_input_files(file("lost.wav"))
    await page.get_by_label("Transcribed by").select_option("openai")
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("#uploads > li")).to_contain_text("does not respond")
    await page.unroute("**/api/calls")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator("#uploads > li")).to_have_count(0)
    await page.reload()
    await expect(page.locator("#calls > li")).to_have_count(1)


async def test_a_cookie_from_before_a_change_to_https_is_not_sent_with_an_upload(
    organisation: Organisation, page: Page
) -> None:
    """The page is not loaded over https, so the cookies are replaced."""
    await visit(page, organisation)
    await page.locator("#recordings").set_input_files(file("first.wav"))
    await page.evaluate("""() => Object.defineProperty(document, "cookie", {
        get: () => "batchmill_csrf=old; __Host-batchmill_csrf=new",
    })""")
    async with page.expect_request("**/api/calls") as sent:
        await page.get_by_role("button", name="Upload").click()
    assert (await sent.value).headers["x-csrf-token"] == "new"


async def test_calls_that_are_uploaded_elsewhere_appear(
    organisation: Organisation, page: Page
) -> None:
    await visit(page, organisation)
    await expect(page.locator("#connection")).to_have_text("Live")
    await organisation.submit(name="elsewhere.wav")
    await expect_stage(page, "elsewhere.wav", "Done")


# Finding


async def test_a_search_leads_to_the_moment(library: Library, page: Page) -> None:
    await library.open(page, "/")
    await page.get_by_label("Search transcripts").fill("boilers stopping")
    await page.keyboard.press("Enter")
    moment = page.locator(".moments a").first
    await expect(moment).to_contain_text("My boiler stopped working")
    await expect(moment.locator("mark")).to_have_text(["boiler", "stopped"])
    assert "q=boilers+stopping" in page.url
    await moment.click()
    await expect(page.locator("#now")).to_have_text("0:02")
    await expect(page.locator(".word.now")).to_have_text("My")
    await page.go_back()
    await expect(page.get_by_label("Search transcripts")).to_have_value("boilers stopping")
    await expect(moment).to_be_visible()
    await page.get_by_label("Search transcripts").fill("giraffe")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="No call matches")).to_be_visible()
    await page.get_by_role("link", name="Show all calls").click()
    await expect(page.locator("#calls > li")).to_have_count(1)


async def test_states_are_filtered_by_the_address(library: Library, page: Page) -> None:
    await library.open(page, "/?status=done")
    await expect(page.locator("#calls > li")).to_have_count(1)
    await page.get_by_label("State").select_option("failed")
    await expect(page.get_by_role("heading", name="No call matches")).to_be_visible()
    assert page.url.endswith("/?status=failed")
    await page.go_back()
    await expect(page.locator("#calls > li")).to_have_count(1)


async def test_more_calls_are_shown_on_request(
    calls: PausableCalls, organisation: Organisation, page: Page
) -> None:
    async def two_at_once(route: Route) -> None:
        text = await (await route.fetch()).text()
        await route.fulfill(
            body=text.replace("PAGE = 50", "PAGE = 2"), content_type="text/javascript"
        )

    await page.route("**/static/listing.js", two_at_once)
    async with calls.paused("extract_audio"):
        for name in ("one.wav", "two.wav", "three.wav"):
            await organisation.submit(name=name)
        await visit(page, organisation)
        names = page.locator("#calls > li > b")
        await expect(names).to_have_text(["three.wav", "two.wav"])
        await page.get_by_role("button", name="Show more").click()
        await expect(names).to_have_text(["three.wav", "two.wav", "one.wav"])
        await expect(page.get_by_role("button", name="Show more")).to_be_hidden()


# Listening and reading


async def test_playback_moves_the_words_and_words_move_the_playback(
    library: Library, page: Page
) -> None:
    await library.read(page)
    await record_seeks(page)
    await page.get_by_role("button", name="Play", exact=True).click()
    await expect(page.locator(".word.now")).not_to_have_count(0)
    await page.wait_for_function("() => document.querySelector('#audio').currentTime > 0.5")
    await page.locator(".word", has_text="engineer").first.click()
    await expect_seek(page, start_of("engineer"))
    await page.get_by_role("button", name="Pause").click()
    await expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    await page.get_by_role("slider").press("Home")
    await page.get_by_role("slider").press("ArrowRight")
    await expect(page.locator(".word.now")).to_have_text("to")


async def test_a_recording_in_an_object_store_is_played_from_there(
    page: Page, dsn: str, object_server: ObjectServer
) -> None:
    """The page's security policy has to name the store."""
    await migrate(dsn)
    environment = {**object_server.environment, "BATCHMILL_ARTIFACTS": object_server.new_folder()}
    async with Calls(dsn, environment) as server:
        anyone = Organisation("default", "", server.url)
        id = await anyone.done()
        await page.goto(f"{server.url}/calls/{id}")
        await expect(page.locator(".timeline .talk")).to_have_count(2)
        await page.get_by_role("button", name="Play", exact=True).click()
        await page.wait_for_function("() => document.querySelector('#audio').currentTime > 0.2")


async def test_the_timeline_is_a_slider_for_keyboard_and_pointer(
    library: Library, page: Page
) -> None:
    await library.read(page)
    slider = page.get_by_role("slider", name="Position in the recording")
    await slider.focus()
    for key, now in (("ArrowRight", 5), ("ArrowRight", 10), ("ArrowLeft", 5), ("PageUp", 35)):
        await page.keyboard.press(key)
        await expect(slider).to_have_attribute("aria-valuenow", str(now))
    await expect(slider).to_have_attribute("aria-valuetext", "35 seconds of 40 seconds")
    await page.keyboard.press("Home")
    await expect(slider).to_have_attribute("aria-valuenow", "0")
    await page.keyboard.press("Space")
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await page.keyboard.press("Space")
    box = await slider.bounding_box()
    assert box
    await page.mouse.move(box["x"] + 10, box["y"] + 10)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    await page.mouse.up()
    await expect(slider).to_have_attribute("aria-valuenow", "20")


async def test_words_can_be_chosen_with_the_keyboard(library: Library, page: Page) -> None:
    await library.read(page)
    await record_seeks(page)
    await page.locator("#transcript").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        await page.keyboard.press(key)
    await expect(page.locator(".word:focus")).to_have_text("boiler")
    await page.keyboard.press("Enter")
    await expect_seek(page, start_of("boiler"))


async def test_the_transcript_follows_until_somebody_scrolls(library: Library, page: Page) -> None:
    await page.set_viewport_size({"width": 1280, "height": 640})
    await library.read(page, "#t=38")
    words = page.locator("#transcript")
    assert await words.evaluate("(list) => list.scrollTop") > 0
    await words.hover()
    await page.mouse.wheel(0, -5_000)
    again = page.get_by_role("button", name="Follow again")
    await expect(again).to_be_visible()
    await page.wait_for_function("() => document.querySelector('#transcript').scrollTop === 0")
    await page.get_by_role("slider").press("ArrowLeft")
    assert await words.evaluate("(list) => list.scrollTop") == 0
    await again.click()
    await expect(again).to_be_hidden()
    await page.wait_for_function("() => document.querySelector('#transcript').scrollTop > 0")


async def test_a_quote_leads_to_its_moment_and_names_its_method(
    library: Library, page: Page
) -> None:
    await library.read(page)
    await record_seeks(page)
    promise = page.locator("section", has_text="Action items").locator(".quotes li").first
    await expect(promise).to_contain_text("I will send an engineer tomorrow morning.")
    await expect(promise.locator(".method")).to_have_text("rules")
    await promise.get_by_role("link").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await expect_seek(page, start_of("I will send"))
    assert "#t=" in page.url
    shares = page.locator(".shares li")
    await expect(shares).to_have_count(2)
    await expect(page.get_by_role("img", name="Sentiment over time")).to_be_visible()


async def test_files_are_downloaded_from_a_menu_with_the_keyboard(
    library: Library, page: Page
) -> None:
    await library.read(page)
    menu = page.locator("#downloads")
    await menu.locator("summary").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(menu.get_by_role("link", name="Audio")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(menu.locator("summary")).to_be_focused()
    await expect(menu.get_by_role("link", name="Audio")).to_be_hidden()
    await page.keyboard.press("Enter")
    async with page.expect_download() as download:
        await menu.get_by_role("link", name="Subtitles SRT").click()
    assert (await download.value).suggested_filename == "boiler.srt"
    assert "My boiler stopped" in (await (await download.value).path()).read_text()


async def test_scripts_in_names_and_transcripts_stay_text(
    organisation: Organisation, page: Page
) -> None:
    """The server replaces such characters in names. The page does not rely on it."""
    name = f"{ATTACK}.wav"

    async def restored(route: Route) -> None:
        text = await (await route.fetch()).text()
        await route.fulfill(
            body=text.replace("replaced.wav", name), content_type="application/json"
        )

    id = await organisation.done(name="replaced.wav", words=TEXT)
    await page.route("**/api/calls?*", restored)
    await page.route(f"**/api/calls/{id}", restored)
    await visit(page, organisation, "/?q=display")
    await expect(page.locator(".moments a").first).to_contain_text(ATTACK)
    await page.get_by_role("link", name=f"Open {name}").press("Enter")
    await expect(page.get_by_role("heading", name=name)).to_be_visible()
    await expect(page.locator("#transcript")).to_contain_text(ATTACK)
    await expect(page.get_by_role("heading", name="Questions")).to_be_visible()
    assert await page.locator("img[src=x]").count() == 0
    assert await page.title() == f"{name} · Calls"


# Signing in


async def test_a_key_opens_the_page_and_signing_out_closes_it(library: Library, page: Page) -> None:
    await page.goto(f"{library.organisation.url}/calls/{library.call}")
    await page.get_by_label("Key of your organisation").fill("bm_wrong")
    await page.keyboard.press("Enter")
    await expect(page.locator("#key-problem")).not_to_be_empty()
    await expect(page.get_by_label("Key of your organisation")).to_be_focused()
    await page.get_by_label("Key of your organisation").fill(library.organisation.key)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="boiler.wav")).to_be_visible()
    await expect(page.locator(".who")).to_contain_text(library.organisation.name)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Key of your organisation")).to_be_visible()
    await expect(page.get_by_role("heading", name="boiler.wav")).to_be_hidden()


async def test_another_organisation_sees_nothing(
    library: Library, organisation: Organisation, page: Page
) -> None:
    await visit(page, organisation)
    await expect(page.get_by_role("heading", name="No calls yet")).to_be_visible()
    await page.goto(f"{organisation.url}/?q=boiler")
    await expect(page.get_by_role("heading", name="No call matches")).to_be_visible()
    await page.goto(f"{organisation.url}/calls/{library.call}")
    await expect(page.get_by_role("heading", name="There is no such call")).to_be_visible()


# Everybody


@pytest.mark.parametrize("width", [360, 1280])
async def test_axe_finds_nothing(calls: PausableCalls, page: Page, width: int) -> None:
    owner = await calls.organisation()
    await page.set_viewport_size({"width": width, "height": 900})
    await page.goto(owner.url)
    await expect(page.get_by_label("Key of your organisation")).to_be_visible()
    assert await violations_in_both_schemes(page) == []
    await visit(page, owner)
    await expect(page.get_by_role("heading", name="No calls yet")).to_be_visible()
    await page.locator("#recordings").set_input_files(file("chosen.wav"))
    assert await violations_in_both_schemes(page) == []
    async with calls.paused("analyze"):
        id = await owner.submit(name="running.wav")
        await expect_stage(page, "running.wav", "Analysing")
        assert await violations_in_both_schemes(page) == []
        await page.goto(f"{owner.url}/calls/{id}")
        await expect(page.locator("#stages li.done")).to_have_count(3)
        assert await violations_in_both_schemes(page) == []
    await expect(page.get_by_role("heading", name="Questions")).to_be_visible()
    await page.locator("#downloads summary").click()
    assert await violations_in_both_schemes(page) == []


async def test_nothing_is_wider_than_a_phone(library: Library, page: Page) -> None:
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await library.read(page)
    await page.locator("#downloads summary").click()
    assert await overflow(page) == []
    await library.open(page, "/?q=boiler")
    await expect(page.locator(".moments a").first).to_be_visible()
    await page.locator("#recordings").set_input_files(file(f"{'long' * 30}.wav"))
    assert await overflow(page) == []


async def test_paper_shows_the_whole_transcript_and_no_controls(
    library: Library, page: Page
) -> None:
    await library.read(page)
    await page.emulate_media(media="print")
    await expect(page.locator(".turn").last).to_be_visible()
    assert await page.locator("#transcript").evaluate("(it) => it.scrollHeight <= it.clientHeight")
    await expect(page.locator(".button:visible, .controls:visible")).to_have_count(0)
