"""The page of one document in a real browser: the form, the preview beside it, and saving."""

import base64
import json
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from apps.resumes.samples import sample
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.pages import entry, open_section, section, start_export, visit
from tests.apps.resumes.resumes import User, named

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

expect.set_options(timeout=90_000)

WORK = [{"name": name, "position": "Baker"} for name in ("First", "Second", "Third")]
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest_asyncio.fixture(loop_scope="session")
async def owner(resumes: SharedResumes) -> User:
    return await resumes.user()


async def open_document(page: Page, user: User, document: dict[str, Any]) -> str:
    id = await user.add(document)
    await visit(page, user, f"/documents/{id}")
    await expect(page.locator("#title")).to_have_text(document["basics"]["name"])
    return id


async def content_of(user: User, id: str) -> dict[str, Any]:
    return (await user.get(f"/documents/{id}"))["document"]


async def test_a_new_document_is_written_with_a_preview_and_saved(owner: User, page: Page) -> None:
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    await visit(page, owner, "/documents/new")
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.type("Nora Quill")
    await expect(page.locator("#title")).to_have_text("Nora Quill")
    await expect(page.locator("#saved")).to_have_text("Not saved yet")
    await page.get_by_label("About you").fill("Writes.\nReads.")
    work = await open_section(page, "Work")
    await work.get_by_role("button", name="Add a position").click()
    await expect(work.get_by_label("Position", exact=True)).to_be_focused()
    await page.keyboard.type("Editor")
    await work.get_by_label("Company", exact=True).fill("Paper House")
    await work.get_by_label("From").fill("2019-04")
    await work.get_by_label("Highlights").fill("One\n\n Two ")
    picture = page.locator("#picture")
    await expect(picture).to_be_visible()
    await expect(page.locator("#preview-state")).to_have_text("1 page")
    await page.keyboard.press("Control+s")
    await expect(page.locator("#saved")).to_have_text("Saved, version 1")
    id = page.url.rsplit("/", 1)[1]
    assert await content_of(owner, id) == {
        "basics": {"name": "Nora Quill", "summary": "Writes.\nReads."},
        "work": [
            {
                "position": "Editor",
                "name": "Paper House",
                "startDate": "2019-04",
                "highlights": ["One", "Two"],
            }
        ],
    }
    before = await picture.get_attribute("src")
    await page.get_by_label("Design", exact=True).select_option("modern")
    await expect(picture).not_to_have_attribute("src", before or "")
    await page.reload()
    await expect(page.locator("#title")).to_have_text("Nora Quill")
    await expect(page.get_by_label("Design", exact=True)).to_have_value("modern")
    assert troubles == []


async def test_a_problem_is_shown_at_its_field_while_the_preview_stays(
    owner: User, page: Page
) -> None:
    await open_document(page, owner, named("Tim", email="tim@example.org") | {"work": WORK})
    await expect(page.locator("#picture")).to_be_visible()
    shown = await page.locator("#picture").get_attribute("src")
    work = await open_section(page, "Work")
    await work.locator("summary", has_text="Baker, Second").click()
    date = work.get_by_label("From").nth(1)
    await date.fill("soon")
    await expect(date).to_have_attribute("aria-invalid", "true")
    await expect(work.get_by_role("alert").filter(has_text="not a date")).to_be_visible()
    await expect(page.locator("#picture")).to_have_attribute("src", shown or "")
    problem = page.locator("#preview-problem")
    await expect(problem).to_contain_text("Work, entry 2, From")
    await work.locator("> summary").click()
    await problem.get_by_role("button").click()
    await expect(date).to_be_focused()
    await page.get_by_label("E-mail").fill("nowhere")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("E-mail")).to_be_focused()
    await expect(page.get_by_label("E-mail")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("E-mail").fill("tim@example.org")
    await date.fill("2020")
    await expect(problem).to_be_hidden()
    await expect(date).not_to_have_attribute("aria-invalid", "true")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")


async def test_entries_are_moved_and_removed_with_the_keyboard(owner: User, page: Page) -> None:
    id = await open_document(page, owner, named("Ann") | {"work": WORK})
    work = await open_section(page, "Work")
    names = work.locator(".entry .name")
    up = work.get_by_role("button", name="Move up: Baker, Third")
    await up.focus()
    await page.keyboard.press("Enter")
    await expect(up).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(names).to_have_text(["Baker, Third", "Baker, First", "Baker, Second"])
    await expect(up).to_have_attribute("aria-disabled", "true")
    remove = work.get_by_role("button", name="Remove Baker, First")
    await remove.focus()
    await page.keyboard.press("Enter")
    await expect(names).to_have_text(["Baker, Third", "Baker, Second"])
    await expect(work.locator("summary", has_text="Baker, Second")).to_be_focused()
    await page.get_by_role("button", name="Undo").click()
    await expect(names).to_have_text(["Baker, Third", "Baker, First", "Baker, Second"])
    await remove.click()
    await page.keyboard.press("Control+s")
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")
    assert (await content_of(owner, id))["work"] == [WORK[2], WORK[1]]
    await expect(section(page, "Work").locator("> summary")).to_contain_text("2")


async def test_unknown_fields_and_old_names_survive_the_editor(owner: User, page: Page) -> None:
    document = {
        "$schema": "https://example.org/schema",
        "basics": {"name": "Old Timer", "website": "https://example.org", "pronouns": "they"},
        "work": [{"company": "Then", "position": "Clerk", "team": "Records"}],
        "education": [{"institution": "School", "minor": "Art"}, {"minor": "Music"}],
        "meta": {"version": "v1", "theme": "plain"},
        "x-private": {"theme": "dusk", "list": [1, None, "", {}]},
    }
    id = await open_document(page, owner, document)
    work = await open_section(page, "Work")
    await work.locator("summary", has_text="Clerk, Then").click()
    await work.get_by_label("Position", exact=True).fill("Chief clerk")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")
    assert await content_of(owner, id) == {
        "$schema": "https://example.org/schema",
        "basics": {"name": "Old Timer", "url": "https://example.org", "pronouns": "they"},
        "work": [{"name": "Then", "position": "Chief clerk", "team": "Records"}],
        "education": [{"institution": "School", "minor": "Art"}, {"minor": "Music"}],
        "meta": {"version": "v1", "theme": "plain"},
        "x-private": {"theme": "dusk", "list": [1, None, "", {}]},
    }


async def test_entries_under_an_old_name_do_not_come_back(owner: User, page: Page) -> None:
    id = await open_document(page, owner, named("Ann") | {"experience": [WORK[0]]})
    work = await open_section(page, "Work")
    await work.get_by_role("button", name="Remove Baker, First").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")
    assert "experience" not in await content_of(owner, id)
    assert "work" not in (await owner.get(f"/documents/{id}"))["resume"]


@pytest.mark.parametrize("name", ["two-pages", "many-scripts", "right-to-left"])
async def test_a_document_that_is_only_opened_is_not_changed(
    owner: User, page: Page, name: str
) -> None:
    await open_document(page, owner, sample(name))
    await expect(page.locator("#saved")).to_have_text("Saved, version 1")
    await expect(page.locator("#picture")).to_be_visible()


async def test_pages_of_the_preview_are_turned(owner: User, page: Page) -> None:
    await open_document(page, owner, sample("two-pages"))
    pages, after = page.locator("#pages"), page.get_by_role("button", name="Next page")
    await expect(after).to_be_visible()
    count = int((await pages.inner_text()).removeprefix("Page 1 of "))
    for number in range(2, count + 1):
        shown = await page.locator("#picture").get_attribute("src")
        await after.click()
        await expect(page.locator("#picture")).not_to_have_attribute("src", shown or "")
        await expect(pages).to_have_text(f"Page {number} of {count}")
    await expect(after).to_have_attribute("aria-disabled", "true")
    await expect(after).to_be_focused()


async def test_a_photo_is_made_small_shown_and_removed(owner: User, page: Page) -> None:
    id = await open_document(page, owner, named("Photo"))
    await page.locator(".photo input").set_input_files(
        {"name": "me.png", "mimeType": "image/png", "buffer": DOT}
    )
    await expect(page.locator(".photo img")).to_be_visible()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")
    assert (await content_of(owner, id))["basics"]["image"].startswith("data:image/jpeg;base64,")
    await page.get_by_role("button", name="Remove photo").click()
    await expect(page.locator(".photo img")).to_be_hidden()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 3")
    assert "image" not in (await content_of(owner, id))["basics"]


async def test_a_stale_version_is_kept_as_a_copy(owner: User, page: Page) -> None:
    id = await open_document(page, owner, named("Shared"))
    await owner.send("PUT", f"/documents/{id}?version=1", json=named("Theirs"))
    await page.get_by_label("Name", exact=True).fill("Mine")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(
        page.get_by_role("heading", name="This document was changed elsewhere")
    ).to_be_visible()
    await page.get_by_role("button", name="Keep editing").click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Mine")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("button", name="Save mine as a copy").click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 1")
    assert id not in page.url
    assert (await content_of(owner, id))["basics"]["name"] == "Theirs"
    assert (await content_of(owner, page.url.rsplit("/", 1)[1]))["basics"]["name"] == "Mine"


async def test_a_stale_version_is_replaced_by_the_new_one(owner: User, page: Page) -> None:
    id = await open_document(page, owner, named("Shared"))
    await owner.send("PUT", f"/documents/{id}?version=1", json=named("Theirs"))
    await page.get_by_label("Name", exact=True).fill("Mine")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("button", name="Load that version").click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Theirs")
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")


async def test_an_export_saves_first_and_leads_to_the_exports(owner: User, page: Page) -> None:
    await visit(page, owner, "/documents/new")
    await page.get_by_label("Name", exact=True).fill("Quick")
    await page.get_by_role("button", name="Export …").click()
    await start_export(page)
    await expect(page.locator("#documents-title")).to_be_visible()
    await expect(entry(page, "Quick.pdf")).to_contain_text("version 1")


async def test_unsaved_changes_are_asked_about_and_saved_ones_are_not(
    owner: User, page: Page
) -> None:
    asked: list[str] = []

    async def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    await open_document(page, owner, named("Careful"))
    page.on("dialog", stay)
    await page.get_by_label("Phone").fill("123")
    await page.get_by_role("link", name="← All documents").click()
    await expect(page.get_by_label("Phone")).to_have_value("123")
    assert asked == ["beforeunload"]
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#saved")).to_have_text("Saved, version 2")
    await page.get_by_role("link", name="← All documents").click()
    await expect(page.locator("#documents-title")).to_be_visible()
    assert asked == ["beforeunload"]


async def test_the_preview_asks_once_at_a_time_and_survives_a_restart(
    owner: User, page: Page
) -> None:
    running, most, sent = 0, 0, list[str]()

    async def count(route: Route) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        body = route.request.post_data_json
        assert body
        sent.append(json.dumps(body["document"]))
        if len(sent) == 1:
            await route.abort()
        else:
            await route.fulfill(response=await route.fetch(timeout=120_000))
        running -= 1

    await page.route("**/api/v1/preview", count)
    await open_document(page, owner, named("Slow"))
    await expect(page.locator("#preview-state")).to_have_text("Waiting for the server …")
    for text in ("a", "ab", "abc"):
        await page.get_by_label("Phone").fill(text)
        await page.wait_for_timeout(700)
    await expect(page.locator("#preview-state")).to_have_text("1 page")
    assert most == 1
    assert '"abc"' in sent[-1]


async def test_a_document_that_does_not_exist_says_so(owner: User, page: Page) -> None:
    for id in ("0b4cbf18-4a2d-4a3e-8a35-0c5d4c6a6f10", "nonsense"):
        await visit(page, owner, f"/documents/{id}")
        await expect(page.get_by_role("heading", name="There is no such document")).to_be_visible()
        await expect(page.locator("#loading")).to_be_hidden()
