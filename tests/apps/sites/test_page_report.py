"""The page of one run in a real browser: read its report, edit and ask, compare, repeat, save."""

import io
import json

import pytest
from playwright.async_api import Page, expect
from pypdf import PdfReader

from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.fake_models import SCORE, FakeModels
from tests.apps.sites.pages import question, section, visit, without_troubles
from tests.apps.sites.sites import User
from tests.apps.sites.website import NAME, PAGES, Website

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

expect.set_options(timeout=60_000)

ATTACK = "<img src=x onerror=document.title='caught'>"
TEXTS = "(list) => list.map((each) => each.textContent)"


async def test_a_report_shows_all_that_was_found(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    run = await owner.completed(website.url)
    async with without_troubles(page, owner):
        await visit(page, owner, f"/runs/{run['id']}")
        await expect(section(page, "facts")).to_contain_text("Astoria, OR Astoria · OR")
        await expect(section(page, "facts").locator(".source").first).to_have_text(
            "JSON-LD start page"
        )
        await expect(section(page, "facts")).to_contain_text("classes@tidemill.example")
        await expect(section(page, "pages").locator("tbody tr")).to_have_count(PAGES + 1)
        await expect(section(page, "pages")).to_contain_text("answers 404")
        await expect(section(page, "competitors")).to_contain_text("Blue Heron Bread")
        await expect(section(page, "use").locator("tbody tr").last).to_contain_text("280")
        await expect(page.locator("#contents a")).to_have_count(8)


async def test_the_score_can_be_recomputed_by_hand(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    run = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{run['id']}")
    score = section(page, "score")
    await expect(score.locator(".big")).to_contain_text(SCORE)
    lines = await score.locator(".sum tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
    )
    assert lines == [
        ["0.6667", "× 0.5", "0.3333"],
        ["1.0000", "× 0.3", "0.3000"],
        ["0.3333", "× 0.2", "0.0667"],
        ["", "", "0.7000"],
    ]
    models_chart, questions_chart, matrix = await score.locator("figure").all()
    assert await models_chart.locator(".value").evaluate_all(TEXTS) == ["0.87", "0.53"]
    await expect(questions_chart.locator("li")).to_have_count(7)
    await expect(matrix.locator("tbody tr").first.locator(".number")).to_have_text(["0.87", "0.53"])
    await expect(models_chart.get_by_role("table")).to_be_hidden()
    await models_chart.get_by_text("Numbers").click()
    await expect(models_chart.get_by_role("row", name="alpha")).to_contain_text("0.8667")


async def test_mentions_are_marked_after_letters_outside_the_basic_plane(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    models.answers["alpha"] = "🥖🥖 Try Tidemill Bakery’s rye, not 𝒫ier Pastry. tidemill bakery!"
    run = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{run['id']}")
    answer = section(page, "answers").locator("[data-provider=alpha]").first
    await expect(answer.locator("mark")).to_have_text(["Tidemill Bakery", "tidemill bakery"])
    await expect(answer.locator(".said")).to_have_text(models.answers["alpha"])


async def test_checks_are_sorted_by_weight(owner: User, website: Website, page: Page) -> None:
    run = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{run['id']}")
    checks = section(page, "checks")
    await expect(checks).to_be_visible()
    shown = checks.locator(".checks").first.locator(".meter")
    weights = [int(each) for each in await shown.evaluate_all(TEXTS)]
    assert weights == sorted(weights, reverse=True) and len(weights) > 3
    first = checks.locator("li").first
    await expect(first).to_contain_text("CCBot")
    await expect(first.locator(".fix")).to_contain_text("robots.txt")
    await checks.get_by_text("checks passed").click()
    await expect(checks.get_by_text("Every page has a title")).to_be_visible()


async def test_questions_are_edited_and_then_asked(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    await visit(page, owner)
    await page.get_by_label("Let me edit the questions").check()
    await page.get_by_label("Addresses of websites").fill(website.url)
    await page.get_by_role("button", name="Analyse").click()
    await expect(section(page, "score")).to_contain_text("have not been asked")
    assert models.asked == []
    await expect(page.locator("#contents a")).to_have_text(
        ["Score", "Questions", "Checks", "Facts", "Pages"]
    )
    for _ in range(5):
        await section(page, "questions").get_by_label("Remove this question").last.click()
    await question(page, 1).fill("Where do I get rye in Astoria?")
    await section(page, "questions").get_by_text("Add a question").click()
    await expect(question(page, 3)).to_be_focused()
    await question(page, 3).fill("Where do I get rye in Astoria?")
    await page.get_by_role("button", name="Ask these questions").click()
    await expect(section(page, "questions").get_by_role("alert")).to_contain_text(
        "Question 3: The prompt is given twice"
    )
    await question(page, 3).fill("Is Tidemill Bakery any good?")
    old = page.url
    await page.get_by_role("button", name="Ask these questions").click()
    await page.wait_for_url(lambda url: url != old)
    await expect(section(page, "answers").locator("article")).to_have_count(3)
    await expect(page.locator("#about")).to_contain_text("repeats an earlier run")
    assert {text for _, text in models.asked} >= {"Where do I get rye in Astoria?"}
    await expect(section(page, "answers").locator(".badge")).to_have_text(["direct"])


async def test_a_failed_model_is_shown_and_left_out(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    models.refusing.add("beta")
    run = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{run['id']}")
    score = section(page, "score")
    await expect(score.locator(".notice.warn")).to_contain_text("beta (beta) has not answered any")
    await expect(score.locator(".big")).to_contain_text("0.87")
    await expect(page.locator(".overview")).to_contain_text("from 1 of 2 models")


async def test_two_runs_are_compared(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    first = await owner.completed(website.url)
    website.replace("/", '"telephone": "+1 503-555-0148"', '"telephone": "+1 503-555-0199"')
    website.files["/prices.html"] = website.files["/about.html"]
    website.replace("/prices.html", "about.html", "prices.html")
    website.replace("/prices.html", "The building was a cannery", "Our loaves cost nine dollars")
    models.answers["beta"] = "Try Pier Pastry."
    second = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{second['id']}")
    changes = section(page, "changes")
    await changes.get_by_role("button", name="Compare").click()
    await expect(changes.get_by_role("row", name="The whole run")).to_contain_text("▼ −0.27")
    await expect(changes).to_contain_text("Telephone +1 503-555-0148 → +1 503-555-0199")
    await expect(changes.get_by_role("link", name="/prices.html")).to_be_visible()
    await expect(changes).to_contain_text("All linked pages can be read improve → passed")
    assert page.url.endswith(f"?with={first['id']}")
    await page.reload()
    await expect(changes.get_by_role("row", name="beta")).to_contain_text("▼")


async def test_a_run_is_repeated_monthly_until_that_is_stopped(
    owner: User, website: Website, page: Page
) -> None:
    run = await owner.completed(website.url, ask=False)
    await visit(page, owner, f"/runs/{run['id']}")
    await page.get_by_role("button", name="Repeat monthly").click()
    await expect(page.locator("#schedule")).to_contain_text("Repeats every month, next on")
    (schedule,) = (await owner.get("/schedules"))["schedules"]
    assert schedule["site"] == website.host
    await page.reload()
    await page.get_by_role("button", name="Stop repeating").click()
    await expect(page.get_by_role("button", name="Repeat monthly")).to_be_visible()
    assert (await owner.get("/schedules"))["schedules"] == []


async def test_a_report_is_saved_as_pdf_and_as_json(
    owner: User, website: Website, page: Page
) -> None:
    run = await owner.completed(website.url)
    await visit(page, owner, f"/runs/{run['id']}")
    async with page.expect_download() as download:
        await page.locator("#downloads summary").click()
        await page.get_by_role("button", name="PDF").click()
    assert (await download.value).suggested_filename.endswith(".pdf")
    pdf = PdfReader(io.BytesIO((await (await download.value).path()).read_bytes()))
    assert NAME in pdf.pages[0].extract_text()
    assert "/StructTreeRoot" in pdf.trailer["/Root"]  # type: ignore[operator]
    async with page.expect_download() as download:
        await page.locator("#downloads summary").click()
        await page.get_by_role("link", name="JSON").click()
    saved = json.loads((await (await download.value).path()).read_text())
    assert saved == await owner.get(f"/runs/{run['id']}/report")


async def test_scripts_in_pages_and_answers_stay_text(
    owner: User, models: FakeModels, website: Website, page: Page
) -> None:
    escaped = ATTACK.replace("<", "&lt;")
    website.replace("/", '"name": "Tidemill Bakery"', f'"name": "{escaped}"')
    website.replace("/", "<title>Tidemill", f"<title>{escaped}")
    website.replace("/", '"sourdough bread, ', f'"{escaped}, sourdough bread, ')
    website.replace("/bread.html", 'href="/visit.html"', f'href="/{ATTACK}"')
    models.answers["alpha"] = f"1. **{ATTACK}**\n2. <script>document.title='caught'</script>"
    run = await owner.completed(website.url, prompts=[ATTACK, "What is good?"])
    async with without_troubles(page, owner):
        await visit(page, owner, f"/runs/{run['id']}")
        await expect(section(page, "answers")).to_contain_text("<script>document.title")
        await expect(page.locator("#title")).to_have_text(ATTACK)
        await expect(question(page, 1)).to_have_value(ATTACK)
        await expect(section(page, "pages")).to_contain_text(ATTACK)
        await page.goto(owner.url)
        await expect(page.locator("#runs > li")).to_contain_text(ATTACK)
        assert await page.locator("img[src=x]").count() == 0
        await expect(page).to_have_title("Sites")
    pdf = await owner.send("GET", f"/runs/{run['id']}/report.pdf")
    assert ATTACK in PdfReader(io.BytesIO(pdf.content)).pages[0].extract_text()


async def test_a_run_of_somebody_else_is_not_there(
    sites: SharedSites, owner: User, website: Website, page: Page
) -> None:
    run = await (await sites.user()).completed(website.url, ask=False)
    for id in (run["id"], "nonsense"):
        await visit(page, owner, f"/runs/{id}")
        await expect(page.get_by_role("heading", name="There is no such run")).to_be_visible()


async def test_a_failed_run_is_retried_on_its_page(
    owner: User, website: Website, page: Page
) -> None:
    start = website.files.pop("/")
    (id,) = await owner.begin(website.url)
    await visit(page, owner, f"/runs/{id}")
    await expect(page.locator("#failure")).to_contain_text("has no page at this address")
    website.files["/"] = start
    await page.get_by_role("button", name="Retry").click()
    await expect(section(page, "score").locator(".big")).to_contain_text(SCORE)
    await expect(page.locator("#failure")).to_be_hidden()


async def test_a_run_is_cancelled_on_its_page_and_deleted(
    owner: User, website: Website, page: Page
) -> None:
    website.gate.clear()
    (id,) = await owner.begin(website.url)
    await visit(page, owner, f"/runs/{id}")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator("#stopped")).to_be_visible()
    await page.get_by_role("button", name="Delete …").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("heading", name="three phases")).to_be_visible()
