"""Analyses all answers of a run."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from apps.sites.answers.competitors import competitors_of
from apps.sites.answers.mentions import mentions_of
from apps.sites.answers.models import (
    NOT_CONFIGURED,
    AnalysedAnswer,
    Answer,
    ModelAnalysis,
    PromptAnalysis,
    ProviderAnalysis,
    ProviderAnswers,
    Score,
    Use,
)
from apps.sites.answers.patterns import BusinessNames
from apps.sites.answers.score import parts_of, score_of
from apps.sites.models import Prompt


def analysis_of(
    given: Sequence[ProviderAnswers], prompts: Sequence[Prompt], names: BusinessNames
) -> ModelAnalysis:
    """Without providers, the analysis was skipped, because none is configured. Prompts without an
    answer, and so providers that failed, are not in any mean."""
    if not given:
        return ModelAnalysis(state=NOT_CONFIGURED)
    generic = {prompt.id for prompt in prompts if prompt.kind == "generic"}
    answers = [answer for provider in given for answer in provider.answers]
    analysed = [_analysed(answer, names, is_scored=answer.prompt in generic) for answer in answers]
    return ModelAnalysis(
        state="completed",
        score=_score(analysed),
        providers=[_of_provider(provider, analysed) for provider in given],
        prompts=[_of_prompt(prompt, analysed) for prompt in prompts],
        answers=analysed,
        competitors=competitors_of([each for each in analysed if each.score], names),
        use=use_of(answers),
    )


def _analysed(answer: Answer, names: BusinessNames, *, is_scored: bool) -> AnalysedAnswer:
    mentions = mentions_of(answer.text, names)
    score = score_of([parts_of(mentions)]) if is_scored else None
    return AnalysedAnswer(answer=answer, mentions=mentions, score=score)


def _score(analysed: Iterable[AnalysedAnswer]) -> Score | None:
    return score_of([parts_of(each.mentions) for each in analysed if each.score])


def _of_provider(given: ProviderAnswers, analysed: Sequence[AnalysedAnswer]) -> ProviderAnalysis:
    own = [each for each in analysed if each.answer.provider == given.provider]
    return ProviderAnalysis(
        provider=given.provider,
        model=given.model,
        state=given.state,
        score=_score(own),
        failures=given.failures,
        use=use_of(given.answers),
    )


def _of_prompt(prompt: Prompt, analysed: Sequence[AnalysedAnswer]) -> PromptAnalysis:
    own = [each for each in analysed if each.answer.prompt == prompt.id]
    return PromptAnalysis(prompt=prompt.id, score=_score(own))


def use_of(answers: Sequence[Answer]) -> Use:
    costs = [answer.cost for answer in answers if answer.cost is not None]
    return Use(
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        completion_tokens=sum(answer.completion_tokens for answer in answers),
        cost=sum(costs, Decimal()) if costs else None,
    )
