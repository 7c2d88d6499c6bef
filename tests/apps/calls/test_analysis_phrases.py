"""Key phrases: counts, variants, and parts of longer phrases."""

import pytest

from apps.calls.analysis.models import KeyPhrase
from apps.calls.analysis.phrases import MOST_PHRASES, key_phrases_of
from apps.calls.analysis.terms import stem, terms_of
from tests.apps.calls.calls import sentence


def phrases(*texts: str) -> list[KeyPhrase]:
    return key_phrases_of([sentence(text, at, at + 1) for at, text in enumerate(texts)]).items


def counts(*texts: str) -> list[tuple[str, int]]:
    return [(each.phrase, each.count) for each in phrases(*texts)]


def test_a_phrase_is_counted_with_its_variants_and_first_sentence() -> None:
    found = phrases("Your oil change is due.", "Oil changes are cheap.", "Is the oil change done?")
    assert [(each.phrase, each.count) for each in found] == [("oil change", 3)]
    assert (found[0].quote.text, found[0].quote.start) == ("Your oil change is due.", 0.0)
    assert found[0].method == "c-value"


def test_a_part_of_a_phrase_counts_only_outside_of_it() -> None:
    texts = ["The oil change.", "An oil change.", "More oil.", "The oil!"]
    assert counts(*texts) == [("oil change", 2), ("oil", 4)]
    assert counts(*texts[:3]) == [("oil change", 2)]


def test_what_is_said_once_is_no_key_phrase() -> None:
    assert counts("The transmission fluid leaks.") == []


def test_phrases_do_not_cross_punctuation_or_stop_words() -> None:
    assert counts("My brakes, tires and wipers.", "New brakes, tires and wipers.") == [
        ("brakes", 2),
        ("tires", 2),
        ("wipers", 2),
    ]


def test_names_keep_their_capitals_and_first_words_do_not() -> None:
    assert counts(
        "Brakes squeak.", "The brakes smell.", "Call Platinum Motors.", "Platinum Motors."
    ) == [
        ("Platinum Motors", 2),
        ("brakes", 2),
    ]


def test_longer_and_more_frequent_phrases_come_first() -> None:
    texts = ["Check engine light.", "The engine light again."] + ["My warranty."] * 5
    assert counts(*texts) == [("warranty", 5), ("engine light", 2)]


def test_numbers_and_long_words_are_no_phrases() -> None:
    assert counts("10:30 2016 " + "x" * 50, "10:30 2016 " + "x" * 50) == []


def test_the_number_of_phrases_is_limited() -> None:
    texts = [f"Product{chr(97 + at)}." for at in range(26)] * 2
    assert len(phrases(*texts)) == MOST_PHRASES


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("brakes", "brake"),
        ("batteries", "battery"),
        ("boxes", "box"),
        ("glass", "glass"),
        ("bus", "bus"),
        ("customer's", "customer"),
        ("gas", "gas"),
    ],
)
def test_plurals_and_possessives_are_variants(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_terms_of_other_languages_need_no_word_list() -> None:
    assert terms_of(sentence("Die Bremsen sind kaputt."), False) == {"bremsen", "sind", "kaputt"}
    assert terms_of(sentence("今日は"), False) == {"今日", "日は"}
