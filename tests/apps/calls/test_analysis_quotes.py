"""Quotes are found only if somebody said them."""

import pytest

from apps.calls.analysis.quotes import Quotes
from apps.calls.analysis.sentences import Sentence
from tests.apps.calls.calls import sentence

SAID = [
    sentence("Hello, it’s Anna-Lena from Acme.", 0, 2),
    sentence("I'll send the follow-up for $3.50.", 2, 5),
    sentence("Sounds great!", 5, 6, 2),
    sentence("Call me.", 7, 8, 2),
    sentence("I'll send the invoice.", 9, 10),
    sentence("今日は雨です。", 11, 12),
]


def found(quote: str, said: list[Sentence] = SAID) -> tuple[int, float, float, str] | None:
    quoted = Quotes(said).find(quote)
    return quoted and (quoted.speaker, quoted.start, quoted.end, quoted.text)


@pytest.mark.parametrize(
    "quote",
    [
        "I'll send the follow-up for $3.50.",
        "i’ll SEND the follow up for 3.50",
        "  Speaker 1:  I'll send\nthe follow-up…",
        '"send the follow-up"',
    ],
)
def test_case_punctuation_and_white_space_do_not_matter(quote: str) -> None:
    assert found(quote) == (1, 2.0, 5.0, "I'll send the follow-up for $3.50.")


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "...",
        "I will send the follow-up for $3.50.",
        "I'll send the follow-up for $350.",
        "I'll send the ... for $3.50.",
        "end the follow up for",
        "ll send the follow",
        "send the",
        "great",
        "The refund is approved.",
        "Sounds great! I'll send the invoice.",
        "for $3.50. Sounds great!",
        "send the follow-up for $3.50 tomorrow",
    ],
)
def test_what_nobody_said_is_not_found(quote: str) -> None:
    assert found(quote) is None


def test_a_short_quote_must_be_a_whole_sentence() -> None:
    assert found("sounds great") == (2, 5.0, 6.0, "Sounds great!")


def test_a_quote_may_span_sentences_of_one_speaker() -> None:
    assert found("it's Anna Lena from Acme. I'll send the follow-up") == (
        1,
        0.0,
        5.0,
        "Hello, it’s Anna-Lena from Acme. I'll send the follow-up for $3.50.",
    )
    assert found("Sounds great! Call me.") == (2, 5.0, 8.0, "Sounds great! Call me.")


def test_a_quote_may_not_span_many_sentences() -> None:
    said = [sentence(f"Number {at} is here.", at, at + 1) for at in range(4)]
    assert found("here. Number 1 is here. Number 2", said) is not None
    assert found(" ".join(each.text for each in said), said) is None


def test_of_equal_sentences_the_first_counts() -> None:
    said = [sentence("I'll call you back.", at, at + 1) for at in (3, 9)]
    assert found("I'll call you back", said) == (1, 3.0, 4.0, "I'll call you back.")


def test_scripts_without_spaces_are_found_too() -> None:
    assert found("雨です") == (1, 11.0, 12.0, "今日は雨です。")
    assert found("雪です") is None


def test_nothing_is_found_in_nothing() -> None:
    assert found("I'll call you back", []) is None
