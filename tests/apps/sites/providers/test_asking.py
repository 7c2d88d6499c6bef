"""Asking providers in a job, on a real worker and against a real server with faults."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal

import pytest

from apps.sites.answers import Answer, ProviderAnswers
from apps.sites.models import Prompt
from apps.sites.providers import Provider, ask, ask_all, declare_limits
from apps.sites.providers.provider import Prices
from apps.sites.providers.texts import MOST_BYTES
from batchmill import Batch, Job, Mill, ModelClient, Permanent, Rate, Retry
from tests.apps.sites.providers.endpoint import (
    BREAKS,
    EMPTY,
    HANGS,
    TRUNCATED,
    Endpoint,
    Fault,
    status,
)
from tests.library.tools import until

ATTEMPTS = 3
PROMPTS = [Prompt(id=f"p{n}", text=f"Question {n}?", kind="generic") for n in range(1, 8)]
KEY = "sk-very-secret"


class Providers:
    """Endpoints, and the providers for them, in a job on a mill."""

    def __init__(self, mill: Mill, stack: AsyncExitStack) -> None:
        self._mill = mill
        self._stack = stack
        self.all: list[Provider] = []
        self.endpoints: list[Endpoint] = []
        self.reports: list[tuple[int, int]] = []

    async def add(
        self,
        *,
        api_key: str | None = None,
        needs_key: str | None = None,
        slots: int = 3,
        rate: Rate | None = None,
        prices: Prices | None = None,
        timeout: float = 60,
    ) -> Endpoint:
        endpoint = await self._stack.enter_async_context(Endpoint(needs_key))
        name = "abcdefgh"[len(self.all)]
        client = ModelClient(endpoint.url, f"model-{name}", api_key=api_key, total=timeout)
        self.all.append(Provider(name, f"model-{name}", client, slots, rate, prices))
        self.endpoints.append(endpoint)
        return endpoint

    async def submit(self, prompts: Sequence[Prompt] = PROMPTS, jobs: int = 1) -> Batch:
        """Starts a worker, and asks in a job. Retries begin at once."""

        async def report(done: int, total: int) -> None:
            self.reports.append((done, total))

        @self._mill.task(retry=Retry(attempts=ATTEMPTS, base=0, jitter=0))
        async def analyse(job: Job) -> list[ProviderAnswers]:
            return await ask_all(job, self.all, prompts, report, attempts=ATTEMPTS)

        declare_limits(self._mill, self.all)
        await self._stack.enter_async_context(self._mill.running())
        return await self._mill.submit(analyse, [None] * jobs)

    async def answers(self, prompts: Sequence[Prompt] = PROMPTS) -> list[ProviderAnswers]:
        batch = await self.submit(prompts)
        (found,) = (await batch.results()).values
        return [ProviderAnswers.model_validate(it) for it in found]


@pytest.fixture
async def providers(mill: Mill) -> AsyncIterator[Providers]:
    async with AsyncExitStack() as stack:
        yield Providers(mill, stack)


async def retries_of(batch: Batch) -> list[tuple[str, float]]:
    return [
        (event.data["code"], event.data["delay"])
        async for event in batch.events()
        if event.type == "job_retrying"
    ]


def once_each(endpoint: Endpoint) -> bool:
    return endpoint.paid == Counter(prompt.text for prompt in PROMPTS)


# Answers


async def test_every_provider_answers_every_prompt(providers: Providers) -> None:
    endpoints = [await providers.add() for _ in range(3)]
    endpoints[0].answers["Question 1?"] = "Acme is best.\n"
    found = await providers.answers()
    assert [(it.provider, it.model, it.state) for it in found] == [
        ("a", "model-a", "answered"),
        ("b", "model-b", "answered"),
        ("c", "model-c", "answered"),
    ]
    for provider in found:
        assert [it.prompt for it in provider.answers] == [prompt.id for prompt in PROMPTS]
    assert found[0].answers[0].text == "Acme is best."
    assert all(map(once_each, endpoints))
    assert providers.reports[-1] == (21, 21) and len(providers.reports) == 21


async def test_tokens_and_cost_are_recorded(providers: Providers, mill: Mill) -> None:
    endpoint = await providers.add(prices=Prices(Decimal("0.15"), Decimal("0.6")))
    await providers.add()
    endpoint.faults["Question 1?"].append(EMPTY)
    batch = await providers.submit()
    (first, second) = [
        ProviderAnswers.model_validate(it) for it in (await batch.results()).values[0]
    ]
    answer = first.answers[0]
    assert (answer.prompt_tokens, answer.completion_tokens) == (100, 10)
    assert answer.cost == Decimal("0.000021")
    assert second.answers[0].cost is None
    # The empty answer was paid for too.
    assert await batch.usage() == {
        "prompt_tokens": 1_500,
        "completion_tokens": 150,
        "usd": 8 * Decimal("0.000021"),
    }


async def test_slots_are_never_exceeded(providers: Providers) -> None:
    endpoint = await providers.add(slots=2)
    batch = await providers.submit(jobs=5)
    await batch.results()
    assert endpoint.most_at_once == 2
    assert len(endpoint.asked) == 35


async def test_a_huge_answer_is_cut(providers: Providers) -> None:
    endpoint = await providers.add()
    endpoint.answers["Question 1?"] = "Acme \x00 " + "é" * 100_000
    (found,) = await providers.answers()
    assert found.answers[0].is_cut
    assert len(found.answers[0].text.encode()) <= MOST_BYTES
    assert not found.answers[1].is_cut


async def test_the_largest_run_fits_into_the_checkpoints_and_the_result(
    providers: Providers,
) -> None:
    for _ in range(8):
        endpoint = await providers.add(slots=7)
        for prompt in PROMPTS:
            endpoint.answers[prompt.text] = '"\n' * 100_000
    found = await providers.answers()
    assert sum(len(it.answers) for it in found) == 56


async def test_without_providers_nothing_is_asked(providers: Providers) -> None:
    assert await providers.answers() == []


async def test_one_question_can_be_asked_alone(providers: Providers, mill: Mill) -> None:
    endpoint = await providers.add()
    declare_limits(mill, providers.all)

    @mill.task
    async def one(job: Job) -> Answer:
        return await ask(job, providers.all[0], PROMPTS[0])

    async with mill.running():
        batch = await mill.submit(one, [None])
        (found,) = (await batch.results()).values
    assert Answer.model_validate(found).text == "Try **Acme**."
    assert endpoint.asked == ["Question 1?"]


async def test_slots_and_rates_are_limits_that_operators_can_change(
    providers: Providers, mill: Mill
) -> None:
    await providers.add(slots=4, rate=Rate(100, 60))
    await providers.answers(PROMPTS[:1])
    found = {it.name: (it.slots, it.rate, it.period) for it in await mill.limits.all()}
    assert found["provider:a"] == (4, 100, 60)


# Transient failures


@pytest.mark.parametrize(
    "fault", [status(429), status(500), status(503, retry_after="0"), TRUNCATED, EMPTY, BREAKS]
)
async def test_a_retry_asks_only_for_the_missing_answers(
    providers: Providers, fault: Fault
) -> None:
    healthy, broken = await providers.add(), await providers.add()
    broken.faults["Question 4?"].append(fault)
    batch = await providers.submit()
    found = [ProviderAnswers.model_validate(it) for it in (await batch.results()).values[0]]
    assert [it.state for it in found] == ["answered", "answered"]
    assert once_each(healthy) and len(healthy.asked) == 7
    assert once_each(broken) and len(broken.asked) == 8
    assert await retries_of(batch) == [("providers_unavailable", 0)]


async def test_a_provider_that_is_slow_is_asked_again(providers: Providers) -> None:
    endpoint = await providers.add(timeout=0.5)
    endpoint.faults["Question 4?"].append(HANGS)
    (found,) = await providers.answers()
    assert found.state == "answered" and once_each(endpoint)


async def test_the_longest_retry_after_is_honoured(providers: Providers) -> None:
    first, second = await providers.add(), await providers.add()
    first.faults["Question 1?"].append(status(429, retry_after="30"))
    second.faults["Question 1?"].append(status(503, retry_after="3600"))
    batch = await providers.submit()
    async for event in batch.events():
        if event.type == "job_retrying":
            assert (event.data["code"], event.data["delay"]) == ("providers_unavailable", 3600)
            break
    await batch.cancel()


async def test_a_provider_with_a_rate_limit_is_not_asked_further_questions(
    providers: Providers,
) -> None:
    endpoint = await providers.add(slots=1)
    endpoint.always = status(429, retry_after="3600")
    batch = await providers.submit()
    async for event in batch.events():
        if event.type == "job_retrying":
            break
    await batch.cancel()
    assert len(endpoint.asked) == 1


async def test_a_request_in_flight_is_not_cancelled_by_the_failure_of_another(
    providers: Providers,
) -> None:
    endpoint = await providers.add(slots=2)
    endpoint.faults["Question 1?"].append(status(429))
    endpoint.gate.clear()
    batch = await providers.submit()
    await until(lambda: len(endpoint.asked) == 2)
    endpoint.gate.set()
    await batch.results()
    assert once_each(endpoint)


# A provider that fails


async def test_in_the_last_attempt_a_provider_is_left_out(providers: Providers) -> None:
    healthy, broken = await providers.add(), await providers.add()
    broken.always = status(500)
    found = await providers.answers()
    assert [it.state for it in found] == ["answered", "failed"]
    assert once_each(healthy)
    assert len(broken.asked) == ATTEMPTS * 7
    assert [it.prompt for it in found[1].failures] == [prompt.id for prompt in PROMPTS]
    assert {it.code for it in found[1].failures} == {"unavailable"}


async def test_a_provider_that_answers_some_prompts_is_partial(providers: Providers) -> None:
    endpoint = await providers.add()
    endpoint.faults["Question 2?"].extend([EMPTY] * ATTEMPTS)
    (found,) = await providers.answers()
    assert (found.state, len(found.answers)) == ("partial", 6)
    assert [(it.prompt, it.code) for it in found.failures] == [("p2", "bad_answer")]


async def test_a_prompt_that_is_refused_does_not_stop_the_provider(providers: Providers) -> None:
    endpoint = await providers.add()
    endpoint.faults["Question 2?"].append(status(400))
    (found,) = await providers.answers()
    assert [(it.prompt, it.code) for it in found.failures] == [("p2", "rejected")]
    assert len(endpoint.asked) == 7


async def test_a_wrong_key_fails_the_provider_at_once_and_is_not_shown(
    providers: Providers, caplog: pytest.LogCaptureFixture
) -> None:
    await providers.add(api_key=KEY, needs_key=KEY)
    wrong = await providers.add(api_key=f"{KEY}-wrong", needs_key=KEY, slots=1)
    found = await providers.answers()
    assert [it.state for it in found] == ["answered", "failed"]
    assert len(wrong.asked) == 1
    assert {it.code for it in found[1].failures} == {"not_allowed"}
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("fault", "asked"), [(status(401), 1), (status(500), ATTEMPTS * 7), (status(400), 7)]
)
async def test_if_all_fail_the_job_fails(providers: Providers, fault: bytes, asked: int) -> None:
    endpoints = [await providers.add(slots=1), await providers.add(slots=1)]
    for endpoint in endpoints:
        endpoint.always = fault
    batch = await providers.submit()
    (failed,) = (await batch.results()).failed
    assert failed.error is not None and failed.error.code == "all_providers_failed"
    assert "a: The provider" in failed.error.message and "b: The provider" in failed.error.message
    assert [len(endpoint.asked) for endpoint in endpoints] == [asked, asked]


async def test_after_a_manual_retry_recorded_answers_are_not_bought_again(
    providers: Providers, mill: Mill
) -> None:
    endpoint = await providers.add()
    declare_limits(mill, providers.all)
    is_broken = True

    @mill.task
    async def analyse(job: Job) -> int:
        found = await ask_all(job, providers.all, PROMPTS, ignore, attempts=1)
        if is_broken:
            raise Permanent("The report cannot be written.")
        return len(found[0].answers)

    async with mill.running():
        batch = await mill.submit(analyse, [None])
        assert len((await batch.results()).failed) == 1
        is_broken = False
        await batch.retry()
        assert (await batch.results()).values == [7]
    assert once_each(endpoint)


async def ignore(done: int, total: int) -> None: ...
