"""The API of runs: begin, list, read, cancel, retry, repeat, delete."""

import asyncio
from typing import Any

import psycopg
import pytest

from apps.sites.runs import address_of, site_of
from tests.apps.sites.backend import paused, refused, stream, until_status, user
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.fake_models import MODELS, FakeModels
from tests.apps.sites.sites import User
from tests.apps.sites.website import NAME, PAGES, Website
from tests.library.tools import rows

__all__ = ["user"]

pytestmark = pytest.mark.usefixtures("models")

PROMPTS = 7
FILES = "select distinct state::text from batchmill.artifacts where batch_id = %s::uuid"
QUESTIONS = ["Where can I buy bread?", "Who teaches baking?"]


class TestBegin:
    async def test_a_run_ends_with_facts_checks_and_a_score(
        self, user: User, website: Website, models: FakeModels
    ) -> None:
        run = await user.completed(website.url)
        assert (run["status"], run["progress"], run["currentStep"]) == ("completed", 100, None)
        assert run["result"] == {
            "site": website.url,
            "businessName": NAME,
            "score": run["result"]["score"],
            "modelAnalysis": "completed",
            "pages": PAGES,
        }
        assert 0 < run["result"]["score"] < 1
        report = await user.get(f"/runs/{run['id']}/report")
        assert report["url"] == website.url
        assert report["website"]["facts"]["businessName"]["page"] == f"{website.url}/"
        assert len(report["website"]["pages"]) >= PAGES and report["website"]["checks"]
        assert len(report["prompts"]) == PROMPTS
        providers = report["modelAnalysis"]["providers"]
        assert [each["provider"] for each in providers] == [*MODELS]
        asked = {(model, it["text"]) for model in MODELS for it in report["prompts"]}
        assert sorted(models.asked) == sorted(asked)

    async def test_tokens_and_cost_are_recorded_for_run_and_tenant(
        self, sites: SharedSites, user: User, website: Website
    ) -> None:
        run = await user.completed(website.url)
        # Each answer has 20 and 30 tokens, and only one of the models has prices.
        tokens = {"prompt_tokens": 20 * 2 * PROMPTS, "completion_tokens": 30 * 2 * PROMPTS}
        cost = PROMPTS * (20 * 0.5 + 30 * 2) / 1_000_000
        assert run["usage"] == tokens | {"usd": pytest.approx(cost)}
        async with sites.mill() as mill:
            used = await mill.as_tenant(user.name).usage()
        assert {each.name: float(each.amount) for each in used} == run["usage"]
        report = await user.get(f"/runs/{run['id']}/report")
        assert float(report["modelAnalysis"]["use"]["cost"]) == pytest.approx(cost)

    async def test_many_addresses_begin_as_many_runs_in_their_order(
        self, user: User, website: Website
    ) -> None:
        urls = [f"{website.url}/{path}" for path in ("", "bread.html", "visit.html")]
        answer = await user.send("POST", "/runs", json={"urls": urls, "ask": False})
        assert answer.status_code == 202
        runs = answer.json()["runs"]
        assert [run["url"] for run in runs] == urls
        assert {run["site"] for run in runs} == {website.host}
        for run in runs:
            assert run["streamUrl"] == f"/api/runs/{run['id']}/stream"
            assert (await user.ended(run["id"]))["status"] == "completed"

    async def test_an_address_that_is_given_twice_has_one_run(
        self, user: User, website: Website
    ) -> None:
        ids = await user.begin(website.url, f" {website.url} ", ask=False)
        assert len(ids) == 1
        assert len((await user.get("/runs"))["runs"]) == 1

    async def test_given_prompts_replace_those_that_would_be_formed(
        self, user: User, website: Website, models: FakeModels
    ) -> None:
        named = {"id": "about", "text": f"Is {NAME} good?"}
        run = await user.completed(website.url, prompts=[*QUESTIONS, named])
        report = await user.get(f"/runs/{run['id']}/report")
        assert [it["text"] for it in report["prompts"]] == [*QUESTIONS, named["text"]]
        assert [it["kind"] for it in report["prompts"]] == ["generic", "generic", "direct"]
        assert report["prompts"][2]["id"] == "about"
        assert len(models.asked) == 3 * len(MODELS)

    async def test_without_asking_a_run_ends_with_its_prompts(
        self, user: User, website: Website, models: FakeModels
    ) -> None:
        run = await user.completed(website.url, ask=False)
        assert (run["result"]["score"], run["result"]["modelAnalysis"]) == (
            None,
            "skipped: not_asked",
        )
        report = await user.get(f"/runs/{run['id']}/report")
        assert len(report["prompts"]) == PROMPTS and models.asked == []

    async def test_the_same_site_gives_the_same_prompts_every_time(
        self, user: User, website: Website
    ) -> None:
        runs = [await user.completed(website.url, ask=False) for _ in range(2)]
        first, second = [await user.get(f"/runs/{run['id']}/report") for run in runs]
        assert first["prompts"] == second["prompts"]
        assert all(prompt["facts"] for prompt in first["prompts"])


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("shop.example", "https://shop.example"),
        (" shop.example/a b ", "https://shop.example/a b"),
        ("shop.example:8080", "https://shop.example:8080"),
        ("http://shop.example", "http://shop.example"),
        ("ftp://shop.example", "ftp://shop.example"),
    ],
)
def test_an_address_without_a_scheme_means_https(given: str, address: str) -> None:
    assert address_of(given) == address


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example",
        "http://SHOP.example/page?a=b",
        "https://www.shop.example:443/",
        "http://shop.example.:80/#top",
    ],
)
def test_spellings_of_an_address_are_one_site(url: str) -> None:
    assert site_of(url) == "shop.example"


def test_other_ports_and_subdomains_are_other_sites() -> None:
    assert site_of("https://shop.example:8443/") == "shop.example:8443"
    assert site_of("https://blog.shop.example") == "blog.shop.example"
    assert site_of("https://münchen.example/") == "xn--mnchen-3ya.example"


class TestIdempotency:
    async def send(self, user: User, key: str, *urls: str, **body: Any) -> Any:
        return await user.send(
            "POST",
            "/runs",
            json={"urls": urls, "ask": False, **body},
            headers={"Idempotency-Key": key},
        )

    async def test_a_repeated_request_gives_the_same_runs(
        self, user: User, website: Website
    ) -> None:
        urls = [f"{website.url}/", f"{website.url}/bread.html"]
        answers = await asyncio.gather(*(self.send(user, "once", *urls) for _ in range(5)))
        ids = [[run["id"] for run in answer.json()["runs"]] for answer in answers]
        assert ids == [ids[0]] * 5
        assert len((await user.get("/runs"))["runs"]) == 2

    async def test_another_request_with_the_same_key_is_refused(
        self, user: User, website: Website
    ) -> None:
        first, second = f"{website.url}/", f"{website.url}/bread.html"
        assert (await self.send(user, "once", first, second)).status_code == 202
        others: list[tuple[tuple[str, ...], dict[str, Any]]] = [
            ((first,), {}),
            ((second, first), {}),
            ((first, second, f"{website.url}/visit.html"), {}),
            ((first, second), {"prompts": QUESTIONS}),
            ((first, second), {"ask": True}),
        ]
        for urls, body in others:
            answer = await self.send(user, "once", *urls, **body)
            assert refused(answer) == (422, "idempotency_conflict"), (urls, body)
        assert len((await user.get("/runs"))["runs"]) == 2

    async def test_a_key_whose_run_was_deleted_begins_a_new_run(
        self, user: User, website: Website
    ) -> None:
        (run,) = (await self.send(user, "once", website.url)).json()["runs"]
        await user.ended(run["id"])
        await user.send("DELETE", f"/runs/{run['id']}")
        again = await self.send(user, "once", website.url)
        assert again.json()["runs"][0]["id"] != run["id"]

    async def test_keys_of_two_tenants_are_independent(
        self, sites: SharedSites, user: User, website: Website
    ) -> None:
        other = await sites.user()
        mine = (await self.send(user, "once", website.url)).json()["runs"][0]["id"]
        theirs = (await self.send(other, "once", website.url)).json()["runs"][0]["id"]
        assert mine != theirs


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({}, "invalid_request"),
            ([], "invalid_request"),
            ({"urls": []}, "invalid_request"),
            ({"urls": "http://shop.example"}, "invalid_request"),
            ({"urls": [""]}, "invalid_request"),
            ({"urls": [1]}, "invalid_request"),
            ({"urls": ["http://shop.example/" + "x" * 2_000]}, "invalid_request"),
            ({"urls": ["http://203.0.113.5"] * 101}, "invalid_request"),
            ({"urls": ["http://203.0.113.5"], "prompt": []}, "invalid_request"),
            ({"urls": ["http://203.0.113.5"], "ask": "perhaps"}, "invalid_request"),
            ({"urls": ["http://203.0.113.5"], "prompts": [{"words": "?"}]}, "invalid_request"),
            ({"urls": ["http://203.0.113.5"], "prompts": []}, "invalid_payload"),
            ({"urls": ["http://203.0.113.5"], "prompts": [""]}, "invalid_payload"),
            ({"urls": ["http://203.0.113.5"], "prompts": ["x" * 501]}, "invalid_payload"),
            ({"urls": ["http://203.0.113.5"], "prompts": ["Who?"] * 2}, "invalid_payload"),
            (
                {"urls": ["http://203.0.113.5"], "prompts": [f"Who {n}?" for n in range(8)]},
                "invalid_payload",
            ),
        ],
    )
    async def test_a_body_that_is_not_valid(self, user: User, body: Any, code: str) -> None:
        assert refused(await user.send("POST", "/runs", json=body)) == (422, code)
        assert (await user.get("/runs"))["runs"] == []

    async def test_a_body_that_is_no_json_or_too_large(self, user: User) -> None:
        assert refused(await user.send("POST", "/runs", content=b"{"))[0] in (400, 422)
        large = {"urls": ["http://203.0.113.5/" + "x" * 1_900] * 100}
        assert refused(await user.send("POST", "/runs", json=large)) == (413, "too_large")

    async def test_one_address_that_is_refused_begins_no_run(
        self, user: User, website: Website
    ) -> None:
        body = {"urls": [website.url, "http://10.0.0.1/"]}
        assert refused(await user.send("POST", "/runs", json=body)) == (422, "address_refused")
        assert (await user.get("/runs"))["runs"] == []

    @pytest.mark.parametrize("id", ["00000000-0000-4000-8000-000000000000", "nonsense", "0"])
    async def test_an_id_that_does_not_exist(self, user: User, id: str) -> None:
        for path in ("", "/report", "/stream", "/report.pdf", f"/compare?with={id}"):
            assert refused(await user.send("GET", f"/runs/{id}{path}"))[0] in (404, 422), path
        assert refused(await user.send("GET", f"/runs/{id}")) == (404, "not_found")

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ("count=0", "invalid_request"),
            ("count=201", "invalid_request"),
            ("status=done", "invalid_request"),
            ("before=nonsense", "bad_request"),
            ("before=%00", "bad_request"),
        ],
    )
    async def test_a_list_that_cannot_be_made(self, user: User, query: str, code: str) -> None:
        assert refused(await user.send("GET", f"/runs?{query}"))[1] == code


class TestList:
    async def ids(self, user: User, query: str = "") -> list[str]:
        return [run["id"] for run in (await user.get(f"/runs?{query}"))["runs"]]

    async def test_pages_have_every_run_once_the_newest_first(
        self, user: User, website: Website
    ) -> None:
        begun = [(await user.begin(website.url, ask=False))[0] for _ in range(5)]
        found, before = list[str](), ""
        for size in (2, 2, 1):
            page = await user.get(f"/runs?count=2{before}")
            assert len(page["runs"]) == size
            found += [run["id"] for run in page["runs"]]
            before = f"&before={page['next']}"
        assert page["next"] is None
        assert found == begun[::-1]

    async def test_runs_of_one_request_that_are_listed_page_by_page(
        self, user: User, website: Website
    ) -> None:
        begun = await user.begin(*(f"{website.url}/?n={n}" for n in range(5)), ask=False)
        first = await user.get("/runs?count=3")
        second = await user.get(f"/runs?count=3&before={first['next']}")
        found = [run["id"] for page in (first, second) for run in page["runs"]]
        assert sorted(found) == sorted(begun) and len(found) == 5

    async def test_runs_are_found_by_site_and_status(self, user: User, website: Website) -> None:
        with Website() as other:
            done = (await user.completed(other.url, ask=False))["id"]
            website.gate.clear()
            (running,) = await user.begin(website.url, ask=False)
            await until_status(user, running, "website-analysis")
            assert await self.ids(user, f"site={other.host}") == [done]
            assert await self.ids(user, f"site={website.host}") == [running]
            assert await self.ids(user, "site=shop.example") == []
            assert await self.ids(user, "status=completed") == [done]
            assert await self.ids(user, "status=website-analysis") == [running]
            for status in ("not-started", "prompt-forming", "model-analysis", "failed"):
                assert await self.ids(user, f"status={status}") == []
            website.gate.set()
            await user.ended(running)
        assert await self.ids(user, "status=completed") == [running, done]


class TestStop:
    async def test_a_running_run_is_cancelled(
        self, user: User, website: Website, models: FakeModels
    ) -> None:
        models.gate.clear()
        (id,) = await user.begin(website.url)
        await until_status(user, id, "model-analysis")
        answer = await user.send("POST", f"/runs/{id}/cancel")
        assert answer.status_code == 200
        found = await user.ended(id)
        assert (found["status"], found["phase"]) == ("cancelled", "model-analysis")
        assert (found["error"], found["result"], found["currentStep"]) == (None, None, None)
        assert refused(await user.send("GET", f"/runs/{id}/report")) == (404, "not_found")

    async def test_a_waiting_run_is_cancelled_and_reads_nothing(
        self, sites: SharedSites, user: User, website: Website
    ) -> None:
        async with paused(sites, "website-analysis"):
            (id,) = await user.begin(website.url)
            found = await user.get(f"/runs/{id}")
            assert (found["status"], found["currentStep"]) == ("not-started", "Waiting to start")
            answer = await user.send("POST", f"/runs/{id}/cancel")
            assert answer.json()["status"] == "cancelled"
        assert website.asked == []

    async def test_a_run_that_has_ended_stays_as_it_is(self, user: User, website: Website) -> None:
        run = await user.completed(website.url, ask=False)
        answer = await user.send("POST", f"/runs/{run['id']}/cancel")
        assert answer.json()["status"] == "completed"
        answer = await user.send("POST", f"/runs/{run['id']}/retry")
        assert refused(answer) == (409, "conflict")
        assert (await user.get(f"/runs/{run['id']}"))["status"] == "completed"

    async def test_a_run_is_deleted_with_its_files(
        self, sites: SharedSites, user: User, website: Website
    ) -> None:
        website.gate.clear()
        (id,) = await user.begin(website.url, ask=False)
        await until_status(user, id, "website-analysis")
        assert refused(await user.send("DELETE", f"/runs/{id}")) == (409, "conflict")
        website.gate.set()
        await user.ended(id)
        with psycopg.connect(sites.dsn) as sql:
            assert rows(sql, FILES, id) == [("kept",)]
        assert (await user.send("DELETE", f"/runs/{id}")).status_code == 204
        # A worker removes the files within seconds.
        with psycopg.connect(sites.dsn) as sql:
            assert rows(sql, FILES, id) in ([], [("gone",)])
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/report"), ("GET", "/stream")):
            assert refused(await user.send(method, f"/runs/{id}{path}")) == (404, "not_found")
        assert (await user.get("/runs"))["runs"] == []


class TestRetry:
    async def failed(self, user: User, website: Website, models: FakeModels) -> str:
        """A run whose providers have all refused."""
        models.refusing |= {*MODELS}
        (id,) = await user.begin(website.url)
        found = await user.ended(id)
        assert (found["status"], found["phase"]) == ("failed", "model-analysis")
        assert found["error"]["code"] == "all_providers_failed"
        return id

    async def test_a_failed_run_continues_with_the_phase_that_failed(
        self, user: User, website: Website, models: FakeModels
    ) -> None:
        id = await self.failed(user, website, models)
        read, models.refusing = list(website.asked), set()
        answer = await user.send("POST", f"/runs/{id}/retry")
        assert (answer.status_code, answer.json()["status"]) == (202, "model-analysis")
        assert (await stream(user, f"/runs/{id}/stream"))[-2]["event"] == "completed"
        found = await user.get(f"/runs/{id}")
        assert (found["status"], found["error"]) == ("completed", None)
        assert website.asked == read

    async def test_a_cancelled_run_cannot_be_retried(self, user: User, website: Website) -> None:
        website.gate.clear()
        (id,) = await user.begin(website.url)
        await until_status(user, id, "website-analysis")
        await user.send("POST", f"/runs/{id}/cancel")
        assert refused(await user.send("POST", f"/runs/{id}/retry")) == (409, "conflict")

    async def test_a_provider_that_fails_is_left_out(
        self, user: User, website: Website, models: FakeModels
    ) -> None:
        models.refusing.add("beta")
        run = await user.completed(website.url)
        report = await user.get(f"/runs/{run['id']}/report")
        alpha, beta = report["modelAnalysis"]["providers"]
        assert (alpha["state"], beta["state"]) == ("answered", "failed")
        assert (beta["score"], report["modelAnalysis"]["score"]) == (None, alpha["score"])


class TestRepeat:
    async def test_a_run_is_repeated_with_the_same_prompts(
        self, user: User, website: Website
    ) -> None:
        first = await user.completed(website.url)
        answer = await user.send("POST", f"/runs/{first['id']}/repeat", json={})
        assert (answer.status_code, answer.json()["repeats"]) == (202, first["id"])
        second = await user.ended(answer.json()["id"])
        reports = [await user.get(f"/runs/{run['id']}/report") for run in (first, second)]
        assert reports[0]["prompts"] == reports[1]["prompts"]
        assert [run["id"] for run in second["otherRuns"]] == [first["id"]]

    async def test_a_run_is_repeated_with_edited_prompts(
        self, user: User, website: Website
    ) -> None:
        first = await user.completed(website.url, ask=False)
        before = (await user.get(f"/runs/{first['id']}/report"))["prompts"]
        kept = {"id": before[0]["id"], "text": before[0]["text"]}
        edited = {"id": before[1]["id"], "text": "Who bakes at night?"}
        body = {"prompts": [kept, edited]}
        answer = await user.send("POST", f"/runs/{first['id']}/repeat", json=body)
        second = await user.ended(answer.json()["id"])
        after = (await user.get(f"/runs/{second['id']}/report"))["prompts"]
        assert after == [
            before[0],
            {**edited, "kind": "generic", "facts": []},
        ]

    async def test_a_repeat_that_is_refused(self, user: User, website: Website) -> None:
        first = await user.completed(website.url, ask=False)
        path = f"/runs/{first['id']}/repeat"
        for body, code in (
            ({"prompts": []}, "invalid_payload"),
            ({"urls": []}, "invalid_request"),
        ):
            assert refused(await user.send("POST", path, json=body)) == (422, code)
        assert len((await user.get("/runs"))["runs"]) == 1
