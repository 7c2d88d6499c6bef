"""Which of Whisper's words are believed, and the segments that they form."""

from typing import Any

import pytest
from faster_whisper.transcribe import Segment as Window
from faster_whisper.transcribe import Word as WordPart

from apps.calls.models import Word
from apps.calls.providers.local.channels import RATE
from apps.calls.providers.local.clips import Clip, clips_of
from apps.calls.providers.local.voice import Span
from apps.calls.providers.local.whisper import plausible, without_repeats
from apps.calls.providers.utterances import segments_of


@pytest.fixture
def clip() -> Clip:
    """Speech from 10 to 14 and from 20 to 22 seconds."""
    (clip,) = clips_of([Span(10 * RATE, 14 * RATE), Span(20 * RATE, 22 * RATE)], 60 * RATE)
    return clip


def window(*words: tuple[str, float, float], **values: Any) -> Window:
    parts = [
        WordPart(start=start, end=end, word=text, probability=0.9) for text, start, end in words
    ]
    given = {"avg_logprob": -0.3, "compression_ratio": 1.2, "no_speech_prob": 0.1} | values
    text = "".join(part.word for part in parts)
    return Window(
        id=1, seek=0, start=0, end=1, text=text, tokens=[], words=parts, temperature=0, **given
    )


def texts(words: Any) -> list[str]:
    return [word.text for word in words]


def spoken(text: str, start: float = 0.0, step: float = 0.25) -> list[Word]:
    return [
        Word(start=start + step * n, end=start + step * n + 0.2, text=word)
        for n, word in enumerate(text.split())
    ]


def test_words_get_the_times_of_the_recording(clip: Clip) -> None:
    (word,) = plausible(window((" Hello", 0.25, 0.75)), clip)
    assert (word.text, word.start, word.end) == ("Hello", 10.0, 10.5)


def test_parts_of_a_word_with_hyphens_are_one_word(clip: Clip) -> None:
    parts = window((" in", 0.3, 0.5), ("-house", 0.5, 0.9), (" now.", 1.0, 1.2))
    found = list(plausible(parts, clip))
    assert texts(found) == ["in-house", "now."]
    assert (found[0].start, found[0].end) == (10.05, 10.65)


def test_words_in_the_margin_of_a_clip_are_invented() -> None:
    """Whisper adds "Thank you." where speech has ended."""
    speech = Span(10 * RATE, 14 * RATE)
    wide = Clip([speech], [Span(9 * RATE, 16 * RATE)])
    words = window((" Bye.", 4.0, 4.8), (" Thank", 5.6, 6.0), (" you.", 6.0, 6.4))
    assert texts(plausible(words, wide)) == ["Bye."]


def test_guesses_are_left_out(clip: Clip) -> None:
    guess = window((" Hello", 0.25, 0.75), avg_logprob=-1.3)
    assert list(plausible(guess, clip)) == []


def test_loops_are_cut(clip: Clip) -> None:
    said = [(" so", 0.3, 0.4), *((" I", 0.4, 0.5), (" know", 0.5, 0.6)) * 20, (" right", 0.6, 0.7)]
    looped = window(*said, compression_ratio=5.0)
    assert texts(plausible(looped, clip)) == ["so", *["I", "know"] * 3, "right"]


def test_a_speaker_may_repeat_a_word(clip: Clip) -> None:
    said = [(" no,", 0.3 + n / 10, 0.4 + n / 10) for n in range(6)]
    assert texts(plausible(window(*said), clip)) == ["no,"] * 6


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a b c", "a b c"),
        ("no no no", "no no no"),
        ("No, no. no! no no x", "No, no. no! x"),
        ("a b " * 9 + "c", "a b a b a b c"),
        ("one two three four " * 5, "one two three four " * 3),
        ("", ""),
    ],
)
def test_a_phrase_is_kept_three_times(given: str, kept: str) -> None:
    assert texts(without_repeats(spoken(given))) == kept.split()


# Segments


def test_a_pause_begins_a_segment() -> None:
    words = [*spoken("how are you"), *spoken("fine thanks", start=1.8)]
    first, second = segments_of(2, words)
    assert (first.text, first.start, first.end) == ("how are you", 0.0, 0.7)
    assert (second.text, second.speaker, second.words) == ("fine thanks", 2, words[3:])


def test_a_long_segment_ends_with_a_sentence() -> None:
    words = spoken("word " * 39 + "end. Next one. short.", step=0.25)
    first, second = segments_of(1, words)
    assert first.text.endswith("end.") and second.text == "Next one. short."


def test_nothing_said_is_no_segment() -> None:
    assert segments_of(1, []) == []
