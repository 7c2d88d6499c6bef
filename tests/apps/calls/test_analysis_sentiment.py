"""Sentiment by the lexicon: hand-computed scores, negation, and the curve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.calls.analysis.curve import curve_of
from apps.calls.analysis.lexicon import PHRASES, WEIGHTS
from apps.calls.analysis.sentiment import score_of, sentiment_of
from tests.apps.calls.calls import sentence


def score(text: str) -> float:
    return score_of(sentence(text))[0]


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("This is great.", 2.0),
        ("This is really great.", 3.0),
        ("This is a little annoying.", -1.0),
        ("It is good but late.", 0.0),
        ("I am not happy.", -1.4),
        ("I am not at all happy.", -1.4),
        ("It is not the best or nearly as happy.", -0.7 + 2.0),
        ("They aren't very helpful.", -2.1),
        ("Nobody was hurt.", 0.0),
        ("I'm fed up with this terrible mess!", -2.0 - 3.0 - 2.0),
        ("That is not a problem.", 1.0),
        ("It does not work.", -2.0),
        ("Good morning.", 0.0),
        ("It's not only fast but excellent.", 3.0),
        ("It was not, but great.", 2.0),
        ("no problem great", 1.0 + 2.0),
        ("The car is red.", 0.0),
    ],
)
def test_a_score_is_the_sum_of_weights_on_a_scale_from_minus_1_to_1(
    text: str, weight: float
) -> None:
    assert score(text) == round(weight / (abs(weight) + 2), 3)


@pytest.mark.parametrize("text", ["No, that is great.", "No that's great.", "No it is great"])
def test_an_answer_is_no_negation(text: str) -> None:
    assert score(text) > 0


def test_the_words_that_decided_are_named() -> None:
    assert score_of(sentence("Sorry, it DOESN’T work, which is awful!"))[1] == [
        "sorry",
        "doesn't work",
        "awful",
    ]


@pytest.mark.parametrize(
    "text", ["Is there a problem?", "Would Friday be good?", "What is wrong", "Are you happy?"]
)
def test_a_question_has_no_sentiment(text: str) -> None:
    assert score(text) == 0


def test_a_question_with_a_strong_negative_word_has() -> None:
    assert score("Why are you so rude?") < 0


def test_points_are_sentences_with_sentiment() -> None:
    found = sentiment_of(
        [sentence("The car is red.", 0, 2), sentence("I love it.", 3, 4, 2)], [1, 2], 10.0
    )
    assert found.method == "lexicon"
    [point] = found.points
    assert (point.score, point.words, point.method) == (0.6, ["love"], "lexicon")
    assert point.quote.model_dump() == {
        "speaker": 2,
        "start": 3.0,
        "end": 4.0,
        "text": "I love it.",
    }
    assert [(each.speaker, each.name, each.score) for each in found.speakers] == [
        (1, "Speaker 1", 0.0),
        (2, "Speaker 2", 0.6),
    ]


def test_a_speaker_without_sentences_has_no_score() -> None:
    [only] = sentiment_of([], [7], 10.0).speakers
    assert (only.score, only.curve) == (None, [])


def test_a_curve_is_the_mean_around_each_point() -> None:
    """20 seconds have 4 points. All scores are within 30 seconds of each of them."""
    found = curve_of([(1.0, 0.5), (2.0, 0.0), (19.0, -0.2)], 20.0)
    assert [(each.time, each.score) for each in found] == [
        (2.5, 0.1),
        (7.5, 0.1),
        (12.5, 0.1),
        (17.5, 0.1),
    ]


def test_a_curve_leaves_out_times_without_sentences() -> None:
    found = curve_of([(10.0, 1.0), (290.0, -1.0)], 300.0)
    assert {each.score for each in found} == {1.0, -1.0}
    assert [each.time for each in found if 40 < each.time < 260] == []
    # 2.5, 7.5, …, 37.5 and 262.5, …, 297.5
    assert len(found) == 16


@given(
    st.lists(st.tuples(st.floats(0, 5_000), st.floats(-1, 1)), max_size=50), st.floats(0.1, 5_000)
)
def test_a_curve_has_at_most_100_points_between_the_scores(
    scored: list[tuple[float, float]], length: float
) -> None:
    found = curve_of(scored, length)
    scores = [score for _, score in scored]
    assert len(found) <= 100
    assert all(min(scores) - 0.001 <= each.score <= max(scores) + 0.001 for each in found)
    assert [each.time for each in found] == sorted({each.time for each in found})


def test_the_lexicon_has_a_few_hundred_words_without_contradictions() -> None:
    assert 300 < len(WEIGHTS) < 1_000
    assert all(0 < abs(weight) <= 3 for weight in WEIGHTS.values())
    assert all(word == word.casefold() for word in WEIGHTS)
    assert all(len(phrase) > 1 for phrase in PHRASES)
