"""Answers in the format `verbose_json`, of different endpoints."""

from typing import Any

import pytest
from pydantic import ValidationError

from apps.calls.models import Segment
from apps.calls.providers.verbose import VerboseAnswer


def spoken(**answer: Any) -> list[Segment]:
    return VerboseAnswer.model_validate({"text": "", **answer}).spoken(2, 10.0)


def word(text: str, start: float, end: float) -> dict[str, Any]:
    return {"word": text, "start": start, "end": end}


def test_words_beside_the_segments_are_put_into_them() -> None:
    segments = [
        {"start": 0.0, "end": 2.0, "text": " Hello Jack.", "id": 0},
        {"start": 3.0, "end": 4.0, "text": " Bye."},
    ]
    words = [word("Hello", 0.1, 0.5), word("Jack", 0.6, 2.1), word("Bye", 3.1, 3.5)]
    first, second = spoken(segments=segments, words=words, language="english")
    assert (first.text, [w.text for w in first.words]) == ("Hello Jack.", ["Hello", "Jack"])
    assert (second.text, [w.text for w in second.words]) == ("Bye.", ["Bye"])
    assert (first.speaker, second.start, second.end) == (2, 3.0, 4.0)


def test_words_inside_the_segments_are_read_too() -> None:
    inside = [word(" Hello", 0.1, 0.5), word(" ", 0.5, 0.6)]
    (segment,) = spoken(segments=[{"start": 0, "end": 1, "text": "Hello", "words": inside}])
    assert [w.text for w in segment.words] == ["Hello"]


def test_words_without_segments_are_joined() -> None:
    words = [word("Hello", 0.1, 0.5), word("Jack", 0.6, 0.9), word("Bye", 3.1, 3.5)]
    assert [segment.text for segment in spoken(words=words)] == ["Hello Jack", "Bye"]


def test_a_text_alone_is_one_segment() -> None:
    (segment,) = spoken(text=" Hello. ")
    assert (segment.text, segment.start, segment.end) == ("Hello.", 0.0, 10.0)


@pytest.mark.parametrize("answer", [{}, {"text": " "}, {"segments": [], "words": []}])
def test_silence_is_no_segment(answer: dict[str, Any]) -> None:
    assert spoken(**answer) == []


def test_times_are_inside_the_recording() -> None:
    segments = [{"start": -1.0, "end": 12.0, "text": "Hello"}]
    (segment,) = spoken(segments=segments, words=[word("Hello", 9.0, 8.0)])
    assert (segment.start, segment.end) == (0.0, 10.0)
    assert (segment.words[0].start, segment.words[0].end) == (9.0, 9.0)


@pytest.mark.parametrize("answer", ["[]", "{}", '{"text": null}', '{"text": "", "words": [1]}'])
def test_other_answers_are_not_valid(answer: str) -> None:
    with pytest.raises(ValidationError):
        VerboseAnswer.model_validate_json(answer)
