"""The page with documents and exports in a real browser: import, select, export, watch, download."""

import signal
import zipfile
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from apps.resumes.samples import sample
from apps.resumes.tables import RESUMES
from batchmill import Mill
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.pages import (
    add_people,
    card,
    choose,
    entry,
    file,
    group,
    paused,
    row,
    select,
    set_quota,
    start_export,
    visit,
)
from tests.apps.resumes.resumes import Resumes, User, named

# The browser lives as long as the session, and so does its event loop.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

expect.set_options(timeout=90_000)

ATTACK = "<img src=x onerror=document.title='caught'>"
TEN = [f"Person {number}" for number in range(10)]
# Between its last and its first control, the focus is in the browser's own bar.
STAYS = (
    "document.activeElement === document.body || document.activeElement.closest('#export') !== null"
)
DROP = """([zone, files]) => {
    const dropped = new DataTransfer();
    for (const [name, text] of files) dropped.items.add(new File([text], name, { type: "application/json" }));
    zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: dropped }));
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def owner(resumes: SharedResumes) -> User:
    return await resumes.user()


# Documents


async def test_a_file_is_imported_exported_and_downloaded(owner: User, page: Page) -> None:
    urls: list[str] = []
    troubles: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    await visit(page, owner)
    await expect(page.get_by_role("heading", name="No documents yet")).to_be_visible()
    await expect(page.get_by_role("heading", name="No exports yet")).to_be_visible()
    document = sample("one-page")
    name = document["basics"]["name"]
    await page.locator("#files").set_input_files(file("resume.json", document))
    await expect(card(page, name).locator("img")).to_have_attribute("data-state", "shown")
    assert await card(page, name).locator("img").evaluate("(it) => it.naturalWidth") > 100
    await choose(page, name, "Export …")
    await expect(page.locator(".design")).to_have_count(5)
    await page.get_by_label("A4").check(force=True)
    await start_export(page)
    await expect(entry(page, name)).to_contain_text(" kB · version 1")
    await expect(entry(page, name)).to_contain_text("Expires in 7 days")
    async with page.expect_download() as download:
        await entry(page, name).get_by_role("link", name="Download").click()
    assert (await download.value).suggested_filename == f"{name}.pdf"
    assert (await (await download.value).path()).read_bytes().startswith(b"%PDF")
    await expect(entry(page, name)).to_contain_text("downloaded once")
    assert all(url.startswith((owner.url, "data:image/")) for url in urls), urls
    assert troubles == []


async def test_dropped_files_are_imported_and_broken_ones_are_named(
    owner: User, page: Page
) -> None:
    await visit(page, owner)
    files = [
        ["good.json", '{"basics": {"name": "Dropped"}}'],
        ["half.json", '{"basics": {'],
        ["wrong.json", '{"work": [{"startDate": "soon"}]}'],
    ]
    await page.evaluate(DROP, [await page.locator("#documents").element_handle(), files])
    await expect(card(page, "Dropped")).to_be_visible()
    alerts = page.get_by_role("alert")
    await expect(alerts.filter(has_text="half.json")).to_contain_text("does not contain JSON")
    await expect(alerts.filter(has_text="wrong.json")).to_contain_text("$.work[0].startDate")
    await expect(page.locator("#grid > li")).to_have_count(1)
    await expect(page.get_by_role("link", name="Dropped")).to_be_focused()


async def test_a_document_is_duplicated_saved_and_deleted(owner: User, page: Page) -> None:
    await add_people(owner, "Only One")
    await visit(page, owner)
    async with page.expect_download() as download:
        await choose(page, "Only One", "Download JSON")
    assert (await download.value).suggested_filename == "Only One.json"
    await choose(page, "Only One", "Duplicate")
    await expect(page.locator("#grid > li")).to_have_count(2)
    await page.locator("#grid summary").first.click()
    await page.locator("#grid > li").first.get_by_text("Delete …").click()
    await expect(page.get_by_role("button", name="Keep")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("#grid summary").first).to_be_focused()
    await page.locator("#grid summary").first.click()
    await page.locator("#grid > li").first.get_by_text("Delete …").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.locator("#grid > li")).to_have_count(1)


async def test_more_documents_are_shown_on_request(owner: User, page: Page) -> None:
    async def two_at_once(route: Route) -> None:
        text = await (await route.fetch()).text()
        await route.fulfill(
            body=text.replace("PAGE = 24", "PAGE = 2"), content_type="text/javascript"
        )

    await page.route("**/static/documents.js", two_at_once)
    await add_people(owner, "First", "Second", "Third")
    await visit(page, owner)
    names = page.locator("#grid h3")
    await expect(names).to_have_text(["Third", "Second"])
    await page.get_by_role("button", name="Show more documents").click()
    await expect(names).to_have_text(["Third", "Second", "First"])
    await expect(page.get_by_role("button", name="Show more documents")).to_be_hidden()


async def test_scripts_in_names_stay_text(owner: User, page: Page) -> None:
    await owner.exported(named(ATTACK))
    await visit(page, owner)
    await expect(card(page, ATTACK)).to_be_visible()
    await expect(page.locator("#finished > li")).to_have_count(1)
    await select(page, ATTACK)
    await page.get_by_role("button", name="Export", exact=True).click()
    await expect(page.get_by_role("heading", name=f"Export {ATTACK}")).to_be_visible()
    assert await page.locator("img[src=x]").count() == 0
    assert await page.title() == "Resumes"


# Exports


async def test_ten_are_exported_across_reloads_and_downloaded_as_one_zip(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    await add_people(owner, *TEN)
    await visit(page, owner)
    async with resumes.mill() as mill, paused(mill):
        await select(page, *TEN)
        await page.get_by_role("button", name="Export 10 documents").click()
        await page.get_by_text("Modern").click()
        await start_export(page)
        await expect(group(page)).to_be_focused()
        for _ in range(2):
            await expect(group(page).locator(".row.waiting")).to_have_count(10)
            await expect(group(page)).to_contain_text("0 of 10 done")
            await expect(group(page)).to_contain_text("Modern")
            assert await page.title() == "(10) Resumes"
            await page.reload()
    await expect(group(page).locator(".row.done")).not_to_have_count(0)
    await page.reload()
    await expect(group(page)).to_contain_text("10 of 10 done")
    await expect(page.locator("#quota")).to_contain_text("10 of 100")
    await expect(page.locator("#finished > li")).to_have_count(10)
    async with page.expect_download() as download:
        await group(page).get_by_role("link", name="Download ZIP").click()
    assert (await download.value).suggested_filename.startswith("resumes-")
    with zipfile.ZipFile(await (await download.value).path()) as archive:
        pdfs = [name for name in archive.namelist() if name.endswith(".pdf")]
        assert sorted(pdfs) == [f"{name}.pdf" for name in TEN]
    assert await page.title() == "Resumes"


async def test_the_page_continues_after_the_server_was_killed(
    browser: Browser, dsn: str, tmp_path: Path
) -> None:
    """This server has no keys, so that visitors from this machine need none."""
    context = await browser.new_context()
    page = await context.new_page()
    async with (
        Mill(dsn, migrate=True, schemas=[RESUMES]) as mill,
        Resumes(dsn, tmp_path / "artifacts", RESUMES_RETRY_SECONDS="1") as server,
    ):
        await add_people(User("default", "", server.url), *TEN)
        await page.goto(server.url)
        await expect(page.locator(".who")).to_contain_text("default")
        await expect(page.locator("#connection")).to_have_text("Live")
        async with paused(mill):
            await select(page, *TEN)
            await page.get_by_role("button", name="Export 10 documents").click()
            await start_export(page)
            await expect(group(page).locator(".row.waiting")).to_have_count(10)
        await expect(group(page).locator(".row.active")).not_to_have_count(0)
        await server.end(signal.SIGKILL)
        await expect(page.locator("#connection")).to_have_text("Reconnecting …")
        await page.locator("#grid summary").first.click()
        await page.locator("#grid").get_by_text("Duplicate").first.click()
        await expect(page.get_by_role("alert").first).to_contain_text("does not respond")
        await server.start()
        await expect(page.locator("#connection")).to_have_text("Live")
        await expect(group(page)).to_contain_text("10 of 10 done")
        await expect(page.locator("#finished > li")).to_have_count(10)
    await context.close()


async def test_one_and_all_exports_are_cancelled(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    await add_people(owner, "One", "Two", "Three")
    await visit(page, owner)
    async with resumes.mill() as mill, paused(mill):
        await select(page, "One", "Two", "Three")
        await page.get_by_role("button", name="Export 3 documents").click()
        await start_export(page)
        await group(page).get_by_role("button", name="Cancel Two").click()
        await expect(row(page, "Two").locator(".stage")).to_have_text("Cancelled")
        await expect(group(page)).to_be_focused()
        await expect(group(page)).to_contain_text("0 of 3 done · 1 cancelled")
        await group(page).get_by_role("button", name="Cancel all").click()
        await expect(group(page)).to_contain_text("0 of 3 done · 3 cancelled")
    await expect(group(page).get_by_role("button", name="Cancel all")).to_be_hidden()
    await expect(group(page).get_by_role("link", name="Download ZIP")).to_be_hidden()
    await expect(page.locator("#finished > li")).to_have_count(0)


async def test_exports_that_begin_elsewhere_appear(owner: User, page: Page) -> None:
    (document,) = await add_people(owner, "Elsewhere")
    await visit(page, owner)
    await owner.begin(document)
    await expect(entry(page, "Elsewhere.pdf")).to_be_visible()


async def test_the_same_export_is_kept_longer_and_not_made_again(owner: User, page: Page) -> None:
    (document,) = await add_people(owner, "Twice")
    margins = dict.fromkeys(("top", "right", "bottom", "left"), 1)
    await owner.ended(await owner.begin(document, margins=margins))
    await visit(page, owner)
    await choose(page, "Twice", "Export …")
    await start_export(page)
    await expect(page.get_by_role("status").filter(has_text="already there")).to_be_visible()
    await expect(page.locator("#finished > li")).to_have_count(1)
    await expect(page.locator("#quota")).to_contain_text("1 of 100")


async def test_the_same_export_in_progress_is_shared(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    await add_people(owner, "Twice")
    await visit(page, owner)
    async with resumes.mill() as mill, paused(mill):
        for _ in range(2):
            await choose(page, "Twice", "Export …")
            await start_export(page)
        status = page.get_by_role("status").filter(has_text="already in progress")
        await expect(status).to_be_visible()
        await expect(page.locator(".group")).to_have_count(1)
    await expect(entry(page, "Twice.pdf")).to_be_visible()


async def test_options_are_sent_and_remembered(owner: User, page: Page) -> None:
    await add_people(owner, "Optional")
    await visit(page, owner)
    await choose(page, "Optional", "Export …")
    dialog = page.locator("#export")
    for label in ("Serif", "Legal", "Greyscale", "High"):
        await dialog.get_by_text(label, exact=True).click()
    await dialog.get_by_label("Left").fill("0.5")
    await dialog.get_by_text("More: properties of the PDF").click()
    await dialog.get_by_label("Keywords").fill("one, two")
    async with page.expect_request("**/export/pdf") as sent:
        await start_export(page)
    body = (await sent.value).post_data_json
    assert body and body["options"] == {
        "template": "serif",
        "pageSize": "Legal",
        "colorMode": "grayscale",
        "quality": "high",
        "margins": {"top": 1, "right": 1, "bottom": 1, "left": 0.5},
        "metadata": {"keywords": "one, two"},
    }
    await expect(entry(page, "Optional.pdf")).to_contain_text("Serif")
    await choose(page, "Optional", "Export …")
    await expect(dialog.get_by_label("Legal")).to_be_checked()
    await expect(dialog.get_by_label("Serif")).to_be_checked()
    await expect(dialog.get_by_label("Left")).to_have_value("0.5")
    await expect(dialog.get_by_label("Keywords")).to_have_value("")


async def test_a_refused_option_is_shown_at_its_field(owner: User, page: Page) -> None:
    async def refuse(route: Route) -> None:
        error = {"code": "INVALID_OPTIONS", "field": "options.margins.left", "reason": "Too wide."}
        answer = {"success": False, "error": error | {"message": "options.margins.left: Too wide."}}
        await route.fulfill(status=400, json=answer)

    await page.route("**/export/pdf", refuse)
    await add_people(owner, "Refused")
    await visit(page, owner)
    await choose(page, "Refused", "Export …")
    await page.locator("#export-start").click()
    left = page.locator("#export").get_by_label("Left")
    await expect(left).to_be_focused()
    await expect(left).to_have_attribute("aria-invalid", "true")
    await expect(page.locator("#export").get_by_role("alert")).to_have_text("Too wide.")


async def test_more_than_ten_cannot_be_exported_together(owner: User, page: Page) -> None:
    await add_people(owner, *TEN, "Eleventh")
    await visit(page, owner)
    await select(page, *TEN, "Eleventh")
    await expect(page.locator("#too-many")).to_have_text("10 at most in one export")
    await expect(page.locator("#export-selected")).to_have_attribute("aria-disabled", "true")
    await page.keyboard.press("Escape")
    await expect(page.locator("#selection")).to_be_hidden()


# When something is full, late or broken


async def test_an_export_without_room_fails_with_its_reason(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    await set_quota(resumes, owner, storage_bytes=100)
    await add_people(owner, "Too Large")
    await visit(page, owner)
    await choose(page, "Too Large", "Export …")
    await start_export(page)
    await expect(row(page, "Too Large").locator(".stage")).to_have_text("Failed")
    await expect(row(page, "Too Large").locator("small")).to_contain_text("100")
    await page.reload()
    await expect(row(page, "Too Large").locator(".stage")).to_have_text("Failed")
    await set_quota(resumes, owner)
    await row(page, "Too Large").get_by_role("button", name="Export again").click()
    await start_export(page)
    await expect(entry(page, "Too Large.pdf")).to_be_visible()


async def test_full_storage_is_explained_and_deleting_frees_it(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    made = await owner.exported(named("Keeper"))
    await set_quota(resumes, owner, storage_bytes=made["fileSize"])
    await visit(page, owner)
    await expect(page.locator("#quota .full")).to_contain_text("Delete finished exports")
    await choose(page, "Keeper", "Export …")
    await page.get_by_text("Compact").click()
    await page.locator("#export-start").click()
    await expect(page.locator("#export-problem")).to_contain_text("Your storage is full.")
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await entry(page, "Keeper.pdf").get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(entry(page, "Keeper.pdf")).to_have_count(0)
    await expect(page.locator("#quota")).to_contain_text("0 kB of")
    await expect(page.locator("#quota .full")).to_have_count(0)


async def test_used_up_operations_are_explained(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    await owner.exported(named("Busy"))
    await set_quota(resumes, owner, operations_per_day=1)
    await visit(page, owner)
    await expect(page.locator("#quota .full")).to_contain_text("You can export again from")
    await choose(page, "Busy", "Export …")
    await page.get_by_text("Compact").click()
    await page.locator("#export-start").click()
    problem = page.locator("#export-problem")
    await expect(problem).to_contain_text("You have reached today's limit.")
    await expect(problem).to_contain_text("1 of 1 are used.")


async def test_a_batch_beyond_the_limit_says_how_many_are_left(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    await owner.exported(named("Busy"))
    await set_quota(resumes, owner, operations_per_day=3)
    await add_people(owner, "One", "Two", "Three")
    await visit(page, owner)
    await select(page, "One", "Two", "Three")
    await page.get_by_role("button", name="Export 3 documents").click()
    await page.locator("#export-start").click()
    problem = page.locator("#export-problem")
    await expect(problem).to_contain_text("You can begin 2 more exports today.")
    await expect(problem).to_contain_text("1 of 3 are used. Select fewer documents")


async def test_an_expired_export_says_so_and_can_be_made_again(
    resumes: SharedResumes, owner: User, page: Page
) -> None:
    made = await owner.exported(named("Old"))
    await visit(page, owner)
    await expect(entry(page, "Old.pdf")).to_contain_text("Expires in 7 days")
    with resumes.sql() as sql:
        expire = "update resumes.exports set expires_at = batchmill.clock() where id = %s"
        sql.execute(expire, [made["id"]])
    await entry(page, "Old.pdf").get_by_role("link", name="Download").click()
    await expect(page.get_by_role("alert").filter(has_text="has expired")).to_be_visible()
    await expect(entry(page, "Old.pdf")).to_contain_text("Expired")
    await expect(entry(page, "Old.pdf").get_by_role("link", name="Download")).to_be_hidden()
    await page.reload()
    await entry(page, "Old.pdf").get_by_role("button", name="Export again").click()
    await start_export(page)
    await expect(page.locator("#finished > li")).to_have_count(2)
    await expect(page.locator("#finished > li").first).to_contain_text("Expires in 7 days")


async def test_lists_that_cannot_be_read_yet_are_read_again(owner: User, page: Page) -> None:
    """The server may be restarting when somebody opens the page."""
    await add_people(owner, "Patient")
    refusals = iter(range(2))

    async def refuse_twice(route: Route) -> None:
        if next(refusals, None) is None:
            await route.continue_()
        else:
            await route.fulfill(status=503, json={"success": False, "error": {"message": "Busy."}})

    await page.route("**/api/v1/documents?*", refuse_twice)
    await page.route("**/api/v1/templates", refuse_twice)
    await visit(page, owner)
    await expect(card(page, "Patient")).to_be_visible()
    await expect(page.locator("#problem")).to_be_empty()


# With the keyboard, and for each user alone


async def test_everything_works_with_the_keyboard(owner: User, page: Page) -> None:
    await add_people(owner, "Keys")
    await visit(page, owner)
    await page.get_by_role("link", name="New document").first.focus()
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Select Keys")).to_be_focused()
    await page.keyboard.press("Space")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Keys")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(card(page, "Keys").locator("summary")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(card(page, "Keys").get_by_role("link", name="Edit")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(card(page, "Keys").locator("summary")).to_be_focused()
    await expect(page.locator("#selection")).to_be_visible()
    for _ in range(3):
        await page.keyboard.press("Tab")
    await expect(page.locator("#export-selected")).to_be_focused()
    await page.keyboard.press("Enter")
    dialog = page.locator("#export")
    await expect(dialog).to_be_visible()
    await dialog.get_by_label("Minimal").focus()
    await page.keyboard.press("ArrowRight")
    await expect(dialog.get_by_label("Two columns")).to_be_checked()
    for _ in range(40):
        await page.keyboard.press("Tab")
        assert await page.evaluate(STAYS)
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(page.locator("#export-selected")).to_be_focused()
    await page.keyboard.press("Enter")
    await dialog.get_by_label("Letter").focus()
    await page.keyboard.press("Enter")
    await expect(entry(page, "Keys.pdf")).to_be_visible()


async def test_a_key_opens_the_page_and_signing_out_closes_it(owner: User, page: Page) -> None:
    await add_people(owner, "Secret")
    await page.goto(owner.url)
    await expect(page.get_by_label("Your key")).to_be_focused()
    await page.keyboard.type("bm_wrong")
    await page.keyboard.press("Enter")
    await expect(page.locator("#key-problem")).not_to_be_empty()
    await expect(page.get_by_label("Your key")).to_be_focused()
    await page.get_by_label("Your key").fill(owner.key)
    await page.keyboard.press("Enter")
    await expect(card(page, "Secret")).to_be_visible()
    await expect(page.locator(".who")).to_contain_text(owner.name)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Your key")).to_be_visible()
    await expect(card(page, "Secret")).to_have_count(0)


async def test_another_user_sees_nothing(resumes: SharedResumes, owner: User, page: Page) -> None:
    made = await owner.exported(named("Private"))
    await visit(page, await resumes.user())
    await expect(page.get_by_role("heading", name="No documents yet")).to_be_visible()
    await expect(page.get_by_role("heading", name="No exports yet")).to_be_visible()
    await page.goto(f"{owner.url}/documents/{made['documentId']}")
    await expect(page.get_by_role("heading", name="There is no such document")).to_be_visible()
