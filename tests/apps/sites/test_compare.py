"""What has changed between two runs of one site."""

from typing import Any
from uuid import uuid4

import pytest

from apps.sites.answers.models import ModelAnalysis, PromptAnalysis, ProviderAnalysis, Score
from apps.sites.models import Check, Contact, Fact, Facts, RobotsRules
from apps.sites.report import PageLine, Report, Website, compare
from tests.apps.sites.backend import refused, user
from tests.apps.sites.fake_models import FakeModels
from tests.apps.sites.sites import User
from tests.apps.sites.website import NAME
from tests.apps.sites.website import Website as SampleWebsite

__all__ = ["user"]

pytestmark = pytest.mark.usefixtures("models")

SITE = "https://shop.example"


def fact(value: str) -> Fact:
    return Fact(value=value, page=SITE, words=value, method="text")


def score(value: float) -> Score:
    return Score(value=value, position=value, visibility=value, mentions=value)


def check(id: str, state: Any) -> Check:
    return Check(id=id, title=id.title(), state=state, weight=5, reason="")


def report(
    *,
    facts: Facts | None = None,
    checks: list[Check] | None = None,
    pages: dict[str, str] | None = None,
    **analysis: Any,
) -> Report:
    lines = [PageLine(url=url, outcome=outcome) for url, outcome in (pages or {}).items()]  # type: ignore[arg-type]
    return Report(
        url=SITE,
        website=Website(
            site=SITE,
            facts=facts or Facts(),
            checks=checks or [],
            pages=lines,
            robots=RobotsRules(state="absent", url=f"{SITE}/robots.txt"),
        ),
        model_analysis=ModelAnalysis(state="completed", **analysis),
    )


def test_a_report_and_itself_differ_in_nothing() -> None:
    same = report(
        facts=Facts(business_name=fact("Acme"), keywords=[fact("bread")]),
        checks=[check("titles", "pass")],
        pages={SITE: "read"},
        score=score(0.5),
    )
    found = compare(same, same)
    assert (found.score.before, found.score.after, found.score.change) == (0.5, 0.5, 0.0)
    assert (found.facts, found.checks, found.pages_added, found.pages_removed) == ([], [], [], [])


def test_scores_of_the_run_its_providers_and_its_prompts() -> None:
    def analysed(alpha: float | None, other: str, prompt: float | None) -> Report:
        return report(
            score=None if alpha is None else score(alpha),
            providers=[
                ProviderAnalysis(
                    provider="alpha",
                    model="a",
                    state="answered",
                    score=None if alpha is None else score(alpha),
                ),
                ProviderAnalysis(provider=other, model="b", state="answered", score=score(0.25)),
            ],
            prompts=[PromptAnalysis(prompt="p1", score=None if prompt is None else score(prompt))],
        )

    found = compare(analysed(0.3333, "beta", None), analysed(0.5, "gamma", 0.75))
    assert found.score.change == 0.1667
    changes = {each.name: (each.before, each.after, each.change) for each in found.providers}
    assert changes == {
        "alpha": (0.3333, 0.5, 0.1667),
        "beta": (0.25, None, None),
        "gamma": (None, 0.25, None),
    }
    (prompt,) = found.prompts
    assert (prompt.name, prompt.before, prompt.after, prompt.change) == ("p1", None, 0.75, None)


def test_a_score_of_zero_is_a_score() -> None:
    assert compare(report(score=score(0.0)), report(score=score(0.5))).score.change == 0.5


def test_facts_that_differ_are_listed_with_both_values() -> None:
    before = Facts(
        business_name=fact("Acme"),
        industry=fact("bakery"),
        keywords=[fact("bread"), fact("rolls")],
        contact=Contact(phones=[fact("+1 503 555 0100")]),
    )
    after = Facts(
        business_name=fact("Acme"),
        location=fact("Astoria, OR"),
        keywords=[fact("bread")],
        contact=Contact(phones=[fact("+1 503 555 0100")], address=fact("1 Pier Road")),
    )
    found = compare(report(facts=before), report(facts=after)).facts
    assert {each.fact: (each.before, each.after) for each in found} == {
        "industry": (["bakery"], []),
        "location": ([], ["Astoria, OR"]),
        "keywords": (["bread", "rolls"], ["bread"]),
        "address": ([], ["1 Pier Road"]),
    }


def test_checks_and_pages_that_differ() -> None:
    before = report(
        checks=[check("titles", "pass"), check("alt", "fail"), check("old", "warn")],
        pages={"/": "read", "/a": "read", "/b": "failed"},
    )
    after = report(
        checks=[check("titles", "pass"), check("alt", "pass"), check("new", "unknown")],
        pages={"/": "read", "/b": "read", "/a": "duplicate"},
    )
    found = compare(before, after)
    assert [(each.id, each.before, each.after) for each in found.checks] == [
        ("alt", "fail", "pass"),
        ("new", None, "unknown"),
        ("old", "warn", None),
    ]
    assert (found.pages_added, found.pages_removed) == (["/b"], ["/a"])


async def test_two_runs_of_a_site_are_compared(
    user: User, website: SampleWebsite, models: FakeModels
) -> None:
    first = await user.completed(website.url)
    website.replace("/", NAME, "Tidewater Bakery")
    del website.files["/classes.html"]
    models.answers["beta"] = f"1. **{NAME}**"
    body: dict[str, Any] = {}
    answer = await user.send("POST", f"/runs/{first['id']}/repeat", json=body)
    second = await user.ended(answer.json()["id"])
    found = await user.get(f"/runs/{second['id']}/compare?with={first['id']}")
    assert (found["before"]["id"], found["after"]["id"]) == (first["id"], second["id"])
    scores = [run["result"]["score"] for run in (first, second)]
    assert [found["score"]["before"], found["score"]["after"]] == scores
    names = {each["fact"]: each for each in found["facts"]}
    assert names["businessName"]["before"] == [NAME]
    assert names["businessName"]["after"] == ["Tidewater Bakery"]
    assert found["pagesRemoved"] == [f"{website.url}/classes.html"]
    back = await user.get(f"/runs/{first['id']}/compare?with={second['id']}")
    assert back["pagesAdded"] == found["pagesRemoved"]


async def test_runs_that_cannot_be_compared(user: User, website: SampleWebsite) -> None:
    run = await user.completed(website.url, ask=False)
    path = f"/runs/{run['id']}/compare"
    with SampleWebsite() as another:
        other = await user.completed(another.url, ask=False)
    assert refused(await user.send("GET", f"{path}?with={other['id']}")) == (400, "bad_request")
    assert refused(await user.send("GET", f"{path}?with={uuid4()}")) == (404, "not_found")
    assert refused(await user.send("GET", path)) == (422, "invalid_request")
    website.gate.clear()
    (running,) = await user.begin(website.url)
    answer = await user.send("GET", f"{path}?with={running}")
    assert refused(answer) == (404, "not_found")
