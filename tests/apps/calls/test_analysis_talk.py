"""Talk times, with values computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.calls.analysis.models import Talk
from apps.calls.analysis.sentences import sentences_of
from apps.calls.analysis.spans import merged, total, without
from apps.calls.analysis.talk import talk_times
from apps.calls.models import Segment, Speech, Transcript, Word
from apps.calls.transcript import read_transcript
from tests.apps.calls.calls import segment, speech, transcript


def talk(found: Transcript) -> Talk:
    return talk_times(found, sentences_of(found))


def heard(*spans: tuple[int, float, float], duration: float = 60.0) -> Talk:
    return talk(transcript(speech=[speech(*span) for span in spans], duration=duration))


def times(found: Talk) -> list[tuple[int, float, float]]:
    return [(each.speaker, each.seconds, each.share) for each in found.speakers]


def test_seconds_shares_ratio_and_silence() -> None:
    found = heard((1, 0, 30), (2, 30, 40), duration=50)
    assert times(found) == [(1, 30.0, 0.75), (2, 10.0, 0.25)]
    assert (found.ratio, found.silence_seconds, found.overlap_seconds) == (3.0, 10.0, 0.0)
    assert found.method == "speech"
    assert [each.name for each in found.speakers] == ["Speaker 1", "Speaker 2"]


def test_overlaps_have_their_times_and_count_for_both() -> None:
    found = heard((1, 0, 10), (2, 8, 12), (1, 20, 21), (2, 19, 30), duration=30)
    assert [(each.start, each.end, each.speakers) for each in found.overlaps] == [
        (8.0, 10.0, [1, 2]),
        (20.0, 21.0, [1, 2]),
    ]
    assert found.overlap_seconds == 3.0
    assert times(found) == [(1, 11.0, 0.423), (2, 15.0, 0.577)]
    # 30 - (12 + 11)
    assert found.silence_seconds == 7.0


def test_three_speakers_have_no_ratio() -> None:
    found = heard((1, 0, 4), (2, 1, 3), (3, 2, 5))
    assert found.ratio is None
    assert [(each.start, each.end, each.speakers) for each in found.overlaps] == [
        (1.0, 2.0, [1, 2]),
        (2.0, 3.0, [1, 2, 3]),
        (3.0, 4.0, [1, 3]),
    ]


def test_spans_of_a_speaker_that_overlap_count_once() -> None:
    assert times(heard((1, 0, 10), (1, 5, 12), (1, 12, 15)))[0] == (1, 15.0, 1.0)


def test_a_speaker_who_says_nothing_has_no_time() -> None:
    found = heard((1, 0, 10))
    assert times(found) == [(1, 10.0, 1.0), (2, 0.0, 0.0)]
    assert found.ratio is None


def test_without_measured_speech_words_with_short_gaps_are_joined() -> None:
    words = [
        Word(start=0, end=0.4, text="Hello"),
        Word(start=0.6, end=1.0, text="there."),
        Word(start=2.0, end=2.5, text="Bye."),
    ]
    found = talk(transcript(Segment(speaker=1, start=0, end=2.5, text="", words=words)))
    assert found.method == "words"
    assert [(span.start, span.end) for span in found.speakers[0].spans] == [(0, 1.0), (2.0, 2.5)]


def test_the_pause_that_a_recogniser_adds_to_a_word_is_no_speech() -> None:
    """A word of three letters takes at most 0.3 + 3 × 0.08 seconds."""
    words = [Word(start=1, end=5, text="and"), Word(start=5, end=5.4, text="then")]
    found = talk(transcript(Segment(speaker=1, start=1, end=5.4, text="and then", words=words)))
    assert [(span.start, span.end) for span in found.speakers[0].spans] == [(1, 1.54), (5, 5.4)]


def test_without_words_segments_are_used() -> None:
    found = talk(transcript(segment("Hello", 1, 3), segment("Hi", 3, 7, 2)))
    assert (found.method, times(found)) == ("segments", [(1, 2.0, 0.333), (2, 4.0, 0.667)])


def test_estimated_times_are_labelled() -> None:
    text = "Anna: aaaaaa\nBen: bb"
    found = talk(read_transcript(text, language="en", duration=20))
    assert (found.method, times(found)) == ("estimate", [(1, 15.0, 0.75), (2, 5.0, 0.25)])


def test_times_outside_of_the_recording_do_not_count() -> None:
    found = heard((1, -5, 5), (2, 55, 70), (2, 80, 90))
    assert times(found) == [(1, 5.0, 0.5), (2, 5.0, 0.5)]
    assert found.silence_seconds == 50.0


# The longest monologue


def monologue(*spans: tuple[int, float, float]) -> tuple[int, float, float] | None:
    found = heard(*spans).longest_monologue
    return found and (found.speaker, found.start, found.end)


def test_short_pauses_are_bridged() -> None:
    assert monologue((1, 0, 5), (1, 5.9, 10), (1, 11.1, 12), (2, 30, 38)) == (1, 0, 10)


def test_a_backchannel_does_not_interrupt() -> None:
    assert monologue((1, 0, 5), (2, 5.0, 5.5), (1, 5.5, 10), (2, 7, 8), (2, 30, 36)) == (1, 0, 10)


def test_a_longer_speech_of_another_interrupts() -> None:
    """Speaker 2 talks from 4 to 5.2, at the same time as speaker 1."""
    assert monologue((1, 0, 10), (2, 4, 5.2)) == (1, 5.2, 10)


def test_an_interruption_is_not_bridged() -> None:
    assert monologue((1, 0, 5), (2, 5, 6.5), (1, 5.8, 10)) == (1, 0, 5)


def test_of_equal_monologues_the_first_counts() -> None:
    assert monologue((2, 10, 15), (1, 20, 25)) == (2, 10, 15)


def test_without_speech_there_is_none() -> None:
    assert monologue() is None


def test_a_monologue_quotes_its_first_sentence() -> None:
    found = talk(
        transcript(
            segment("Earlier.", 0, 1),
            segment("First. Second.", 10, 30),
            segment("Other.", 12, 12.5, 2),
            duration=40,
        )
    ).longest_monologue
    assert found is not None and found.quote is not None
    assert (found.seconds, found.quote.text, found.quote.speaker) == (20.0, "First.", 1)


# Spans

span_lists = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 10)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=12,
)


@given(span_lists, span_lists)
def test_spans_contain_the_seconds_that_they_should(
    spans: list[tuple[float, float]], holes: list[tuple[float, float]]
) -> None:
    """Compared with sets of whole seconds."""

    def seconds(of: list[tuple[float, float]]) -> set[int]:
        return {second for start, end in of for second in range(int(start), int(end))}

    assert total(merged(spans)) == len(seconds(merged(spans))) == len(seconds(spans))
    rest = without(merged(spans), merged(holes))
    assert seconds(rest) == seconds(spans) - seconds(holes)
    assert total(rest) == len(seconds(rest))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 59), st.integers(0, 60)), max_size=15))
def test_speech_and_silence_add_up(spans: list[tuple[int, int, int]]) -> None:
    found = heard(*((speaker, min(a, b), max(a, b)) for speaker, a, b in spans))
    talking = [
        {second for span in each.spans for second in range(int(span.start), int(span.end))}
        for each in found.speakers
    ]
    everything = set[int]().union(*talking)
    assert found.silence_seconds == 60 - len(everything)
    twice = [s for s in everything if sum(s in each for each in talking) > 1]
    assert found.overlap_seconds == len(twice)
    assert sum(each.share for each in found.speakers) == pytest.approx(
        1.0 if everything else 0.0, abs=0.01
    )


def test_an_unknown_duration_is_that_of_the_transcript() -> None:
    found = talk(transcript(segment("Hello", 2, 4), duration=0))
    assert found.silence_seconds == 2.0


def test_all_speakers_are_shown_but_not_any_number() -> None:
    found = transcript(speakers=1_000_000_000, speech=[Speech(speaker=77, start=0, end=1)])
    assert [each.speaker for each in talk(found).speakers] == [*range(1, 33), 77]
