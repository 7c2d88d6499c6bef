"""Sentences and their times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.calls.analysis import sentences_of
from apps.calls.models import Segment, Transcript, Word
from apps.calls.transcript.words import words_in
from tests.apps.calls.calls import segment, transcript


def texts(*segments: Segment) -> list[str]:
    return [sentence.text for sentence in sentences_of(transcript(*segments))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello. How are you? Fine!", ["Hello.", "How are you?", "Fine!"]),
        ("Mr. Smith and Dr. No. They left.", ["Mr. Smith and Dr. No.", "They left."]),
        ("It costs $3.50 or 4.20. Okay.", ["It costs $3.50 or 4.20.", "Okay."]),
        ("At 8 a.m. or 10 p.m. Then go.", ["At 8 a.m. or 10 p.m.", "Then go."]),
        ("J. R. Smith from the U.S. army.", ["J. R. Smith from the U.S. army."]),
        ("So did I. You too.", ["So did I.", "You too."]),
        ("Is it? No. I can't.", ["Is it?", "No.", "I can't."]),
        ("It is No. 7. Really.", ["It is No. 7.", "Really."]),
        ("I was... thinking. Well... Yes.", ["I was... thinking.", "Well...", "Yes."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        ("Visit example.com today.", ["Visit example.com today."]),
        ("今日は雨です。傘を持って。はい", ["今日は雨です。", "傘を持って。", "はい"]),
        ("مرحبا؟ نعم.", ["مرحبا؟", "نعم."]),
        ("no punctuation at all", ["no punctuation at all"]),
    ],
)
def test_a_segment_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert texts(segment(text)) == expected


def test_sentences_have_the_times_of_their_words() -> None:
    words = [
        Word(start=1, end=1.4, text="Yes."),
        Word(start=2.5, end=2.6, text="I"),
        Word(start=2.6, end=3.1, text="do."),
    ]
    found = sentences_of(
        transcript(Segment(speaker=2, start=1, end=3.1, text="Yes. I do.", words=words))
    )
    assert [(each.speaker, each.start, each.end, each.text) for each in found] == [
        (2, 1, 1.4, "Yes."),
        (2, 2.5, 3.1, "I do."),
    ]


def test_without_words_times_follow_the_characters() -> None:
    first, second = sentences_of(transcript(segment("abcd. efg.", 10, 19)))
    assert (first.start, first.end, second.start, second.end) == (10, 15, 15, 19)


def test_a_sentence_goes_on_in_the_next_segment_of_the_speaker() -> None:
    assert texts(
        segment("I got a car from the dealership and the", 0, 5),
        segment("Mm-hmm.", 4, 4.5, 2),
        segment("service light came on.", 5.5, 7),
    ) == ["I got a car from the dealership and the service light came on.", "Mm-hmm."]


def test_a_long_pause_ends_a_sentence() -> None:
    assert texts(segment("I was", 0, 1), segment("thinking.", 3.1, 4)) == ["I was", "thinking."]
    words = [Word(start=0, end=1, text="We"), Word(start=6.1, end=7, text="go.")]
    assert texts(Segment(speaker=1, start=0, end=7, text="We go.", words=words)) == ["We", "go."]


def test_without_punctuation_each_segment_is_a_sentence() -> None:
    assert texts(segment("hello there", 0, 1), segment("how are you", 1, 2)) == [
        "hello there",
        "how are you",
    ]


def test_long_text_without_punctuation_is_cut() -> None:
    found = texts(segment("word " * 200))
    assert [len(text.split()) for text in found] == [80, 80, 40]


def test_sentences_are_in_the_order_of_time() -> None:
    assert texts(
        segment("Third.", 9, 10), segment("First.", 0, 1), segment("Second.", 4, 5, 2)
    ) == [
        "First.",
        "Second.",
        "Third.",
    ]


@st.composite
def any_transcript(draw: st.DrawFn) -> Transcript:
    number = st.floats(-10, 100, allow_nan=False)
    text = st.text(st.one_of(st.sampled_from("ab .?!\n"), st.characters()), max_size=40)
    word = st.builds(Word, start=number, end=number, text=text)
    made = st.builds(
        Segment,
        speaker=st.integers(1, 3),
        start=number,
        end=number,
        text=text,
        words=st.lists(word, max_size=4),
    )
    return transcript(*draw(st.lists(made, max_size=5)))


@given(any_transcript())
def test_every_word_is_in_one_sentence(found: Transcript) -> None:
    sentences = sentences_of(found)
    assert all(0 <= each.start <= each.end and each.words for each in sentences)
    assert [each.start for each in sentences] == sorted(each.start for each in sentences)
    expected = "".join(
        each.text if words_in(each.text) else "".join(word.text for word in each.words)
        for each in found.segments
    )
    letters = sorted(letter for letter in expected if letter.isalnum())
    assert letters == sorted(
        letter for each in sentences for letter in each.text if letter.isalnum()
    )
