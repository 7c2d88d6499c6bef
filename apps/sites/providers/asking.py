"""Asks every provider every prompt, and buys no recorded answer twice.

An answer is a checkpoint of the job, so a later attempt reads it and sends no request. An answer is
bought again only if the process dies, or the attempt ends, between the moment at which the endpoint
begins to answer and the commit of the checkpoint: up to one answer for each request in flight.

A transient failure of one provider fails the attempt after all others have answered. The engine
runs the job again after its delay, or the longest `Retry-After`, and only the missing answers are
asked for. In the last attempt, and after a permanent failure, the provider's missing answers are
recorded as failures instead.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from apps.sites.answers import Answer, PromptFailure, ProviderAnswers
from apps.sites.models import Prompt
from apps.sites.providers.failures import Failure, failure_of
from apps.sites.providers.provider import Prices, Provider
from apps.sites.providers.texts import bounded
from batchmill import Job, ModelError, Permanent, Transient

CURRENCY = "usd"

# Called with the number of answers so far, and of all that are asked for.
Report = Callable[[int, int], Awaitable[None]]


class Stopped(Exception):
    """The provider failed while a prompt waited for a slot."""


class Meter:
    """Records tokens and their cost, also of an answer that cannot be used."""

    def __init__(self, job: Job, prices: Prices | None):
        self._job = job
        self._prices = prices
        self.cost = None if prices is None else Decimal()

    def use(self, name: str, amount: int) -> None:
        self._job.use(name, amount)
        if self._prices is not None and self.cost is not None:
            cost = self._prices.cost(name, amount)
            self.cost += cost
            self._job.use(CURRENCY, cost)


@dataclass(slots=True)
class Asked:
    """What came of asking one provider in this attempt, by prompt."""

    provider: Provider
    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    errors: list[ModelError] = field(default_factory=list)
    stopped_by: Failure | None = None

    def fail(self, prompt: Prompt, error: ModelError) -> None:
        failure = failure_of(error, datetime.now(UTC))
        self.failures[prompt.id] = failure
        self.errors.append(error)
        if failure.stops and self.stopped_by is None:
            self.stopped_by = failure

    def require_running(self) -> None:
        if self.stopped_by is not None:
            raise Stopped


async def ask(job: Job, provider: Provider, prompt: Prompt) -> Answer:
    """Raises a ModelError if there is no answer."""
    return await _ask(job, Asked(provider), prompt)


async def ask_all(
    job: Job,
    providers: Sequence[Provider],
    prompts: Sequence[Prompt],
    report: Report,
    *,
    attempts: int,
) -> list[ProviderAnswers]:
    """`attempts` is the number of attempts that the task's retry policy allows. Without providers,
    the list is empty."""
    asked = [Asked(provider) for provider in providers]
    total = len(providers) * len(prompts)

    async def answered() -> None:
        await report(sum(len(each.answers) for each in asked), total)

    async with asyncio.TaskGroup() as group:
        for each in asked:
            waiting = deque(prompts)
            for _ in range(min(each.provider.slots, len(prompts))):
                group.create_task(_ask_waiting(job, each, waiting, answered))
    _require_no_retry(asked, is_last=job.attempt >= attempts)
    _require_an_answer(asked)
    return [_answers_of(each, prompts) for each in asked]


async def _ask_waiting(
    job: Job, asked: Asked, waiting: deque[Prompt], answered: Callable[[], Awaitable[None]]
) -> None:
    """One of several that ask a provider. A request in flight is never cancelled because another
    one failed: its answer is paid for."""
    while waiting:
        prompt = waiting.popleft()
        try:
            asked.answers[prompt.id] = await _ask(job, asked, prompt)
        except ModelError as error:
            asked.fail(prompt, error)
        except Stopped:
            continue
        else:
            await answered()


async def _ask(job: Job, asked: Asked, prompt: Prompt) -> Answer:
    name = f"answer:{asked.provider.name}:{prompt.id}"
    return await job.once(name, lambda: _buy(job, asked, prompt), Answer)


async def _buy(job: Job, asked: Asked, prompt: Prompt) -> Answer:
    asked.require_running()
    provider = asked.provider
    meter = Meter(job, provider.prices)
    async with job.limit(provider.limit):
        asked.require_running()
        found = await provider.client.text(prompt.text, job=meter)
    text, is_cut = bounded(found.value)
    return Answer(
        provider=provider.name,
        model=provider.model,
        prompt=prompt.id,
        text=text,
        is_cut=is_cut or found.is_cut,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        cost=meter.cost,
    )


def _require_no_retry(asked: Sequence[Asked], *, is_last: bool) -> None:
    failing = [each for each in asked if any(_transient(each))]
    if is_last or not failing:
        return
    waits = [failure.retry_after or 0.0 for each in failing for failure in _transient(each)]
    names = ", ".join(each.provider.name for each in failing)
    errors = [error for each in failing for error in each.errors]
    raise Transient(
        f"These providers have not answered all questions: {names}. The missing answers are asked "
        "for again.",
        code="providers_unavailable",
        retry_after=max(waits) or None,
    ) from ExceptionGroup("Errors of providers", errors)


def _transient(asked: Asked) -> list[Failure]:
    """A permanent failure that stops the provider makes the others permanent too."""
    if asked.stopped_by is not None and not asked.stopped_by.is_transient:
        return []
    return [failure for failure in asked.failures.values() if failure.is_transient]


def _require_an_answer(asked: Sequence[Asked]) -> None:
    if not asked or any(each.answers for each in asked):
        return
    reasons = " ".join(f"{each.provider.name}: {_reason(each).message}" for each in asked)
    errors = [error for each in asked for error in each.errors]
    raise Permanent(
        f"No provider has answered. {reasons} Check the providers, then retry the run.",
        code="all_providers_failed",
    ) from ExceptionGroup("Errors of providers", errors)


def _reason(asked: Asked) -> Failure:
    return asked.stopped_by or next(iter(asked.failures.values()))


def _answers_of(asked: Asked, prompts: Sequence[Prompt]) -> ProviderAnswers:
    answers = [asked.answers[it.id] for it in prompts if it.id in asked.answers]
    failures = [_failed(asked, it) for it in prompts if it.id not in asked.answers]
    state = "failed" if not answers else "partial" if failures else "answered"
    return ProviderAnswers(
        provider=asked.provider.name,
        model=asked.provider.model,
        state=state,
        answers=answers,
        failures=failures,
    )


def _failed(asked: Asked, prompt: Prompt) -> PromptFailure:
    """A prompt that was not asked failed for the reason that stopped the provider."""
    failure = asked.failures.get(prompt.id) or _reason(asked)
    return PromptFailure(prompt=prompt.id, code=failure.code, message=failure.message)
