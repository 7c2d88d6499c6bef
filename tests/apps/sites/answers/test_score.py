"""Scores, competitors and the analysis of a run."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.answers import (
    Answer,
    BusinessNames,
    Mention,
    ModelAnalysis,
    PromptFailure,
    ProviderAnswers,
    Score,
    analysis_of,
    mentions_of,
)
from apps.sites.answers.score import Parts, parts_of, score_of
from apps.sites.models import Prompt

NAMES = BusinessNames(("Business Casual",), "business-casual.example")
GENERIC = [Prompt(id=f"g{n}", text="Which?", kind="generic") for n in (1, 2)]
DIRECT = Prompt(id="direct", text="What about Business Casual?", kind="direct")
PROMPTS = [*GENERIC, DIRECT]

FIRST = "1. Business Casual\n2. Heart Roasters"
THIRD = "1. Heart Roasters\n2. Coava Coffee\n3. Business Casual"
NOBODY = "I do not know."


def provider(name: str, *texts: str | None, cost: str | None = None) -> ProviderAnswers:
    """Answers to the prompts in order. None is a failure."""
    pairs = list(zip(PROMPTS, texts, strict=True))
    answers = [
        Answer(
            provider=name,
            model="small",
            prompt=prompt.id,
            text=text,
            prompt_tokens=10,
            completion_tokens=5,
            cost=Decimal(cost) if cost else None,
        )
        for prompt, text in pairs
        if text is not None
    ]
    failures = [
        PromptFailure(prompt=prompt.id, code="unavailable", message="The provider failed.")
        for prompt, text in pairs
        if text is None
    ]
    state = "failed" if not answers else "partial" if failures else "answered"
    return ProviderAnswers(
        provider=name, model="small", state=state, answers=answers, failures=failures
    )


def by_hand(score: Score) -> float:
    """The formula of the documentation, on the parts that are stored."""
    parts = [Decimal(str(it)) for it in (score.position, score.visibility, score.mentions)]
    exact = sum(
        weight * part
        for weight, part in zip(map(Decimal, ("0.5", "0.3", "0.2")), parts, strict=True)
    )
    return float(Decimal(exact).quantize(Decimal("0.0001"), ROUND_HALF_UP))


# One answer


@pytest.mark.parametrize(
    ("answer", "position", "visibility", "mentions", "value"),
    [
        (NOBODY, 0, 0, 0, 0),
        (FIRST, 1, 1, 0.3333, 0.8667),
        (THIRD, 0.3333, 1, 0.3333, 0.5333),
        ("Business Casual. Business Casual! Business Casual?", 1, 1, 1, 1),
        ("Business Casual. " * 9, 1, 1, 1, 1),
        ("Try one. Business Casual and business-casual.example.", 0.5, 1, 0.6667, 0.6833),
    ],
)
def test_the_score_of_an_answer(
    answer: str, position: float, visibility: float, mentions: float, value: float
) -> None:
    score = score_of([parts_of(mentions_of(answer, NAMES))])
    assert score == Score(
        value=value, position=position, visibility=visibility, mentions=mentions, answers=1
    )


def test_a_half_is_rounded_away_from_zero() -> None:
    score = score_of([Parts(Fraction(1, 20_000), Fraction(0), Fraction(0))])
    assert score is not None and score.position == 0.0001


ranks = st.lists(st.integers(1, 30), max_size=6)


@given(st.lists(ranks, min_size=1, max_size=30))
def test_every_score_is_the_weighted_sum_of_its_parts(answers: list[list[int]]) -> None:
    parts = [parts_of([mention(rank, n) for n, rank in enumerate(each)]) for each in answers]
    score = score_of(parts)
    assert score is not None
    assert score.value == by_hand(score)
    assert score == score_of(parts[::-1])
    for part in (score.value, score.position, score.visibility, score.mentions):
        assert 0 <= part <= 1
    assert score.visibility == pytest.approx(sum(map(bool, answers)) / len(answers), abs=0.0001)


def mention(rank: int, start: int) -> Mention:
    return Mention(
        text="A",
        kind="name",
        start=start,
        end=start + 1,
        rank=rank,
        ranked_by="business",
        sentence="A",
    )


# A run


def test_scores_are_means_over_answered_generic_prompts() -> None:
    found = analysis_of(
        [
            provider("a", FIRST, NOBODY, "Business Casual is great."),
            provider("b", THIRD, None, None),
            provider("c", None, None, None),
        ],
        PROMPTS,
        NAMES,
    )
    scores = {it.provider: it.score for it in found.providers}
    assert scores["a"] == Score(
        value=0.4333, position=0.5, visibility=0.5, mentions=0.1667, answers=2
    )
    assert scores["b"] and scores["b"].answers == 1
    assert scores["c"] is None
    assert [it.score and it.score.answers for it in found.prompts] == [2, 1, None]
    assert found.score and found.score.answers == 3
    assert found.score.position == 0.4444
    assert [it.state for it in found.providers] == ["answered", "partial", "failed"]
    assert [len(it.failures) for it in found.providers] == [0, 2, 3]


def test_an_answer_to_a_direct_question_is_shown_but_not_scored() -> None:
    found = analysis_of(
        [provider("a", NOBODY, NOBODY, "Business Casual is great.")], PROMPTS, NAMES
    )
    assert found.score and found.score.value == 0
    direct = found.answers[-1]
    assert direct.score is None and len(direct.mentions) == 1


def test_tokens_and_costs_add_up() -> None:
    found = analysis_of(
        [provider("a", FIRST, FIRST, FIRST, cost="0.1"), provider("b", FIRST, None, None)],
        PROMPTS,
        NAMES,
    )
    assert (found.use.prompt_tokens, found.use.completion_tokens) == (40, 20)
    assert found.use.cost == Decimal("0.3")
    assert [it.use.cost for it in found.providers] == [Decimal("0.3"), None]


def test_without_providers_the_analysis_was_skipped() -> None:
    found = analysis_of([], PROMPTS, NAMES)
    assert found == ModelAnalysis(state="skipped: not_configured")
    assert found.model_dump(mode="json", by_alias=True)["score"] is None


# Competitors


def test_competitors_are_counted_over_answers_without_the_business_itself() -> None:
    found = analysis_of(
        [
            provider(
                "a", FIRST, "1. HEART ROASTERS LLC\n2. Business Casual Inc.", "1. Not Counted"
            ),
            provider(
                "b", "- **Heart Roasters**\n- Heart Roasters", "1. Heárt Roasters\n2. Coava", None
            ),
        ],
        PROMPTS,
        NAMES,
    )
    heart, coava = found.competitors
    assert (heart.name, heart.count, heart.instead) == ("Heart Roasters", 4, 2)
    assert [(it.provider, it.prompt) for it in heart.answers] == [
        ("a", "g1"),
        ("a", "g2"),
        ("b", "g1"),
        ("b", "g2"),
    ]
    assert (coava.name, coava.count, coava.instead) == ("Coava", 1, 1)


def test_the_analysis_survives_json() -> None:
    found = analysis_of([provider("a", FIRST, THIRD, NOBODY, cost="0.00000015")], PROMPTS, NAMES)
    assert ModelAnalysis.model_validate_json(found.model_dump_json(by_alias=True)) == found
