"""The extractive summary."""

import pytest

from apps.calls.analysis import summary as module
from apps.calls.analysis.sentences import Sentence
from apps.calls.analysis.summary import MOST_COMPARED, summary_of
from apps.calls.analysis.textrank import centralities, similarity
from tests.apps.calls.calls import sentence
from tests.apps.calls.conversations import DELIVERY_COMPLAINT, lines_of


def said(*texts: str) -> list[Sentence]:
    return [sentence(text, at * 10.0, at * 10.0 + 9.0) for at, text in enumerate(texts)]


def chosen(*texts: str, is_english: bool = True) -> list[str]:
    found = summary_of(said(*texts), len(texts) * 10.0, is_english=is_english)
    return [item.text for item in found.items]


def test_similar_sentences_share_terms() -> None:
    a, b = frozenset({"brake", "pad", "noise"}), frozenset({"brake", "pad", "price"})
    # 2 / (ln 4 + ln 4)
    assert similarity(a, b) == pytest.approx(2 / 2.7726, abs=0.0001)
    assert similarity(a, frozenset({"car"})) == 0


def test_the_sentence_that_shares_most_is_most_central() -> None:
    terms = [{"a", "b"}, {"a", "x"}, {"b", "y"}, {"z"}]
    ranks = centralities([frozenset(each) for each in terms])
    assert ranks[0] == 1.0
    assert ranks[1] == pytest.approx(ranks[2]) and ranks[1] < 1.0
    assert ranks[3] == min(ranks)


def test_two_linked_sentences_are_equal() -> None:
    assert centralities([frozenset("a"), frozenset("a"), frozenset("b")]) == pytest.approx(
        [1.0, 1.0, 0.15]
    )


TALK = (
    "The delivery driver broke the oak table yesterday.",
    "My sister likes purple flowers.",
    "The oak table from the delivery has a broken leg.",
    "Did the driver break the oak table?",
    "Good morning, delivery driver and oak table department.",
    "We replace the oak table with a free delivery.",
    "Nothing else.",
)


def test_central_sentences_are_chosen_in_the_order_of_time() -> None:
    assert chosen(*TALK) == [TALK[0], TALK[2], TALK[5]]


def test_a_repetition_is_not_chosen_twice() -> None:
    again = (TALK[0], TALK[0], TALK[0], *TALK[1:])
    assert chosen(*again).count(TALK[0]) == 1


def test_the_begin_and_the_end_of_a_call_count_more() -> None:
    """All sentences are equally central."""
    texts = [f"Alpha beta gamma{chr(97 + at)}." for at in range(12)]
    assert chosen(*texts) == [texts[0], texts[1], texts[10]]


@pytest.mark.parametrize(("sentences", "length"), [(2, 2), (3, 3), (15, 3), (16, 4), (61, 5)])
def test_the_length_depends_on_the_length_of_the_call(sentences: int, length: int) -> None:
    texts = [f"Word{at} other{at % 7} third{at % 5}." for at in range(sentences)]
    assert len(chosen(*texts)) == length


def test_without_better_sentences_the_others_are_chosen() -> None:
    assert chosen("Hello?", "Good morning.", "Bye.") == ["Hello?", "Good morning.", "Bye."]


def test_other_languages_have_a_summary() -> None:
    german = (
        "Der Fahrer hat den Tisch beschädigt.",
        "Meine Schwester mag Blumen.",
        "Der Tisch hat seit der Lieferung ein kaputtes Bein.",
        "Hat der Fahrer den Tisch beschädigt?",
        "Wir ersetzen den Tisch mit der nächsten Lieferung.",
    )
    assert chosen(*german, is_english=False) == [german[0], german[2], german[4]]


def test_a_bounded_number_of_sentences_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def counting(terms: list[frozenset[str]]) -> list[float]:
        compared.append(len(terms))
        return centralities(terms)

    monkeypatch.setattr(module, "centralities", counting)
    texts = [line.text for line in lines_of(DELIVERY_COMPLAINT)] * 100
    assert len(chosen(*texts)) == 5
    assert compared == [MOST_COMPARED]


def test_each_sentence_is_quoted_with_its_method() -> None:
    found = summary_of(said(*TALK), 70.0, is_english=True)
    assert found.method == "textrank"
    assert [(item.quote.start, item.quote.end) for item in found.items] == [
        (0.0, 9.0),
        (20.0, 29.0),
        (50.0, 59.0),
    ]
    assert all(item.method == "textrank" and item.text == item.quote.text for item in found.items)
