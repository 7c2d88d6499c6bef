"""Transcripts as files. Expected files are written by hand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.calls.models import Segment, Speech, Transcript, Word
from apps.calls.transcript import (
    InvalidTranscript,
    as_srt,
    as_txt,
    as_vtt,
    formatted,
    has_estimated_times,
    read_transcript,
)
from apps.calls.transcript.cues import LINE, LONGEST, cues_of
from apps.calls.transcript.words import TimedWord, spread, timed_words
from batchmill import Permanent

# Two long texts, so that each is longer than a line.
LONG = "We have two options right now and you can bring it in anytime that we are open on weekdays"


def segment(text: str, start: float, end: float, speaker: int = 1) -> Segment:
    return Segment(speaker=speaker, start=start, end=end, text=text)


def transcript(*segments: Segment, duration: float = 60.0) -> Transcript:
    return Transcript(
        provider="local", language="en", duration=duration, speakers=2, segments=list(segments)
    )


def read(text: str | bytes, duration: float = 60.0) -> Transcript:
    return read_transcript(text, language="en", duration=duration)


def said(found: Transcript) -> list[tuple[int, float, float, str]]:
    return [(each.speaker, each.start, each.end, each.text) for each in found.segments]


def refused(text: str | bytes, duration: float = 60.0) -> InvalidTranscript:
    with pytest.raises(InvalidTranscript) as raised:
        read(text, duration)
    assert isinstance(raised.value, Permanent)
    assert raised.value.error_code == "INVALID_TRANSCRIPT"
    assert f"Line {raised.value.line} of the transcript" in str(raised.value)
    return raised.value


HELLO = transcript(
    segment("Hello.", 0.5, 1.75), segment("Hi, Tom & Ann.", 3723.004, 3725.0, 2), duration=4_000
)


# Writing


def test_txt_has_a_line_for_each_segment() -> None:
    assert as_txt(HELLO) == "Speaker 1: Hello.\nSpeaker 2: Hi, Tom & Ann.\n"


def test_srt_has_numbers_times_and_speakers() -> None:
    assert as_srt(HELLO) == (
        "1\n00:00:00,500 --> 00:00:01,750\nSpeaker 1: Hello.\n"
        "\n2\n01:02:03,004 --> 01:02:05,000\nSpeaker 2: Hi, Tom & Ann.\n"
    )


def test_vtt_has_voices() -> None:
    assert as_vtt(HELLO) == (
        "WEBVTT\n"
        "\n00:00:00.500 --> 00:00:01.750\n<v Speaker 1>Hello.\n"
        "\n01:02:03.004 --> 01:02:05.000\n<v Speaker 2>Hi, Tom &amp; Ann.\n"
    )


def test_vtt_escapes_what_has_a_meaning() -> None:
    text = as_vtt(transcript(segment("a --> b <i>c</i> & &amp;", 0, 3)))
    assert "a --&gt; b &lt;i&gt;c&lt;/i&gt; &amp; &amp;amp;" in text.replace("\n", " ")
    assert text.count("-->") == 1
    assert read(text).text == "a --> b <i>c</i> & &amp;"


def test_srt_has_no_arrow_and_no_tag_in_a_text() -> None:
    text = as_srt(transcript(segment("a ---> b <i>c</i> {\\an8}d <<i>b>e & <f", 0, 3)))
    assert text.splitlines()[2] == "Speaker 1: a -> b c d b>e & f"
    assert text.count("-->") == 1


def test_hours_are_written_with_two_digits_or_more() -> None:
    late = transcript(segment("Still here.", 360_000.0, 360_001.5), duration=400_000)
    assert "100:00:00,000 --> 100:00:01,500" in as_srt(late)
    assert said(read(as_vtt(late), 400_000)) == [(1, 360_000.0, 360_001.5, "Still here.")]


def spoken(text: str, each: float) -> Segment:
    """Each word takes 0.3 seconds."""
    words = [
        Word(start=at * each, end=at * each + 0.3, text=word)
        for at, word in enumerate(text.split())
    ]
    return Segment(speaker=1, start=0, end=words[-1].end, text=text, words=words)


def test_a_cue_has_at_most_two_lines_of_42_characters() -> None:
    assert as_vtt(transcript(spoken(LONG, 0.3))).splitlines()[2:] == [
        "00:00:00.000 --> 00:00:05.400",
        "<v Speaker 1>We have two options right now and you can",
        "bring it in anytime that we are open on",
        "",
        "00:00:05.400 --> 00:00:06.400",
        "<v Speaker 1>weekdays",
    ]


def test_a_cue_takes_at_most_seven_seconds() -> None:
    assert as_vtt(transcript(spoken(LONG, 0.4))).splitlines()[2:] == [
        "00:00:00.000 --> 00:00:06.700",
        "<v Speaker 1>We have two options right now and you can",
        "bring it in anytime that we are open",
        "",
        "00:00:06.800 --> 00:00:07.800",
        "<v Speaker 1>on weekdays",
    ]


def test_the_name_of_the_speaker_counts_as_part_of_the_line() -> None:
    lines = as_srt(transcript(spoken(LONG, 0.3))).splitlines()
    assert lines[2:4] == [
        "Speaker 1: We have two options right now",
        "and you can bring it in anytime that we",
    ]


def test_a_word_after_a_pause_is_not_shown_before_it_is_spoken() -> None:
    words = [Word(start=0, end=0.4, text="Okay."), Word(start=3, end=4.5, text="Tomorrow.")]
    long = Segment(speaker=1, start=0, end=4.5, text="Okay. Tomorrow.", words=words)
    cues = cues_of(transcript(long), lambda speaker: "")
    assert [(cue.start, cue.end, cue.lines) for cue in cues] == [
        (0, 1_000, ["Okay."]),
        (3_000, 4_500, ["Tomorrow."]),
    ]


def test_a_short_cue_is_prolonged_until_the_next_one_of_the_speaker() -> None:
    found = cues_of(
        transcript(
            segment("One", 1, 1.1),
            segment("Two", 1.5, 1.5),
            segment("Other", 1.2, 1.3, 2),
            segment("Last", 59.5, 59.6),
        ),
        lambda speaker: "",
    )
    assert [(cue.start, cue.end) for cue in found] == [
        (1_000, 1_500),
        (1_200, 2_200),
        (1_500, 2_500),
        (59_500, 60_000),
    ]


def test_a_word_longer_than_a_line_is_cut() -> None:
    found = cues_of(transcript(segment("x" * 5_000, 0, 50)), lambda speaker: "")
    assert "".join(line for cue in found for line in cue.lines) == "x" * 5_000
    assert all(len(line) <= LINE for cue in found for line in cue.lines)


def test_segments_without_words_are_left_out() -> None:
    silent = transcript(segment(" \n", 0, 1), segment("\x00\x07", 1, 2))
    assert (as_txt(silent), as_srt(silent), as_vtt(silent)) == ("", "", "WEBVTT\n")


def test_each_format_is_chosen_by_its_name() -> None:
    assert formatted(HELLO, "json") == HELLO.model_dump_json(by_alias=True)
    assert [formatted(HELLO, "txt"), formatted(HELLO, "srt"), formatted(HELLO, "vtt")] == [
        as_txt(HELLO),
        as_srt(HELLO),
        as_vtt(HELLO),
    ]


# Times of words


def test_times_of_words_are_taken_from_the_provider() -> None:
    words = [Word(start=1, end=1.5, text="hello"), Word(start=3, end=4, text="there")]
    both = Segment(speaker=1, start=1, end=4, text="Hello, there.", words=words)
    assert timed_words(both) == [(1, 1.5, "Hello,"), (3, 4, "there.")]


def test_other_words_in_the_text_get_times_by_their_characters() -> None:
    """The provider heard two words of four letters. The text has four words of two letters."""
    heard = [TimedWord(0, 2, "abcd"), TimedWord(10, 12, "efgh")]
    assert spread(["ab", "cd", "ef", "gh"], heard) == [
        (0, 1, "ab"),
        (1, 2, "cd"),
        (10, 11, "ef"),
        (11, 12, "gh"),
    ]


def test_parts_of_a_word_keep_their_times() -> None:
    words = [
        Word(start=0, end=1, text="10"),
        Word(start=1, end=1.2, text="a"),
        Word(start=1.2, end=1.6, text=".m."),
        Word(start=5, end=6, text="then"),
    ]
    found = timed_words(Segment(speaker=1, start=0, end=6, text="10 a.m. then", words=words))
    assert found == [(0, 1, "10"), (1, pytest.approx(1.6), "a.m."), (5, 6, "then")]


def test_times_in_the_wrong_order_are_exchanged() -> None:
    words = [Word(start=2, end=1, text="late"), Word(start=float("nan"), end=3, text="lost")]
    found = timed_words(Segment(speaker=1, start=1, end=2, text="late lost", words=words))
    assert found == [(1, 2, "late"), (0, 3, "lost")]


# Reading


SRT = """1
00:00:01,000 --> 00:00:02,500
Anna: Hello there,
how are you?

2
00:00:03.000 --> 00:00:04.25 X1:10
<i>Fine</i>, {\\an8}thanks.

00:00:05,000 --> 00:00:06,000
BEN: Good.
"""


def test_srt_is_read_with_names_and_without_tags() -> None:
    found = read(SRT)
    assert said(found) == [
        (1, 1.0, 2.5, "Hello there, how are you?"),
        (1, 3.0, 4.25, "Fine, thanks."),
        (2, 5.0, 6.0, "Good."),
    ]
    assert (found.provider, found.speakers, found.duration) == ("manual", 2, 60.0)
    assert not has_estimated_times(found)


def test_cues_in_another_order_are_sorted() -> None:
    cues = ["00:00:05,000 --> 00:00:06,000\nB: Two.", "00:00:01,000 --> 00:00:02,000\nA: One."]
    assert said(read("\n\n".join(cues))) == [(2, 1.0, 2.0, "One."), (1, 5.0, 6.0, "Two.")]


VTT = """WEBVTT - a call
Kind: captions

NOTE This is
a comment

STYLE
::cue { color: red }

intro
00:01.000 --> 00:04.000 align:start
<v.loud Anna Berg>Tom &amp; I <b>agree</b> &lt;3</v>

00:05.000 --> 00:09.000
<v Ben>abcd<v Anna Berg>efgh

00:10.000 --> 00:11.000
<c.yellow>Who?</c>
"""


def test_vtt_is_read_with_voices() -> None:
    assert said(read(VTT)) == [
        (1, 1.0, 4.0, "Tom & I agree <3"),
        (2, 5.0, 7.0, "abcd"),
        (1, 7.0, 9.0, "efgh"),
        (1, 10.0, 11.0, "Who?"),
    ]


def test_plain_text_gets_estimated_times_in_proportion_to_characters() -> None:
    found = read("Speaker 2: abcde\n\nName: abcdefghij\nklmno\n", duration=20.0)
    assert said(found) == [
        (2, 0.0, 5.0, "abcde"),
        (1, 5.0, 15.0, "abcdefghij"),
        (1, 15.0, 20.0, "klmno"),
    ]
    assert has_estimated_times(found)


def test_plain_text_needs_no_names() -> None:
    assert said(read("It is 10:30 now.\nnote: nobody.\n", 20.0)) == [
        (1, 0.0, pytest.approx(11.034, abs=0.001), "It is 10:30 now."),
        (1, pytest.approx(11.034, abs=0.001), 20.0, "note: nobody."),
    ]


def test_a_name_may_stand_on_a_line_of_its_own() -> None:
    found = read("Agent:\nHello.\ncustomer:\nHi.\nAGENT: Bye.")
    assert [(each.speaker, each.text) for each in found.segments] == [
        (1, "Hello."),
        (2, "Hi."),
        (1, "Bye."),
    ]


def test_numbered_speakers_keep_their_numbers_beside_names() -> None:
    found = read("Anna: a\nSpeaker 1: b\nBen: c\nSpeaker 3: d\nSpeaker 99: e")
    assert [each.speaker for each in found.segments] == [2, 1, 4, 3, 5]


def test_our_own_json_is_read_with_words_and_speech() -> None:
    words = [Word(start=1, end=1.5, text="hello")]
    given = transcript(
        Segment(speaker=2, start=1, end=1.5, text="Hello.", words=words), segment("Bye.", 0, 0.5)
    ).model_copy(update={"speech": [Speech(speaker=2, start=1, end=2)], "language": "fr"})
    found = read(given.model_dump_json(by_alias=True))
    assert found.segments == given.segments[::-1]
    assert (found.speech, found.provider, found.language) == (given.speech, "manual", "en")


def test_estimated_times_stay_estimated_in_json() -> None:
    assert has_estimated_times(read(read("Hello.").model_dump_json()))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_may_have_any_unicode_encoding(encoding: str) -> None:
    assert read("Zoë: Ça va?\r\nشكرا: مرحبا\r".encode(encoding)).text == "Ça va? مرحبا"


def test_unreadable_characters_are_removed() -> None:
    assert read("Anna: he\x00llo\x07 \ufeffthere\x1fnow\u2028then").text == "hello there now then"


def test_a_cue_may_end_a_little_after_the_recording() -> None:
    cue = "1\n00:00:59,500 --> 00:01:03,000\nBye.\n"
    assert said(read(cue)) == [(1, 59.5, 60.0, "Bye.")]


# Errors


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "empty"),
        (" \n\n", 1, "empty"),
        ("1\n00:00:01,000 --> 00:00:02,000\n\n", 1, "no words"),
        ("1\n00:00:01,000 -> 00:00:02,000\nHi", 2, "expected times such as"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHi\n\n2\nHello", 6, 'found "Hello"'),
        ("1\n00:00:01,000 --> 00:61:02,000\nHi", 2, "expected times such as"),
        ("1\n00:00:03,000 --> 00:00:02,000\nHi", 2, "ends before it begins"),
        (
            "1\n00:00:01,000 --> 00:00:02,000\nHi\n\n2\n00:02:00,000 --> 00:02:01,000\nHi",
            6,
            "60.000",
        ),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n\nWhat is this?", 6, "What is this?"),
        ("\n".join(f"{chr(65 + at // 26)}{chr(97 + at % 26)}: x" for at in range(33)), 33, "32"),
    ],
)
def test_an_error_names_the_line(text: str, line: int, problem: str) -> None:
    found = refused(text)
    assert found.line == line
    assert problem in str(found)


def json_of(*segments: str) -> str:
    head = '{"provider": "x", "language": "en", "duration": 1, "speakers": 1,\n"segments": [\n'
    return head + ",\n".join(segments) + "\n]}"


GOOD = '{"speaker": 1, "start": 0, "end": 1, "text": "segments\\": [", "words": []}'


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"provider": "x",\n"language": }', 2, "not valid JSON"),
        ('{"provider": "x"}', 1, "language: Field required"),
        (json_of(GOOD, GOOD, '{"speaker": 1}'), 5, "segments.2.start: Field required"),
        (json_of(GOOD, GOOD.replace("1,", "99,", 1)), 4, "from 1 to 32, not 99"),
        (json_of(GOOD.replace('"end": 1', '"end": -1')), 3, "ends at -1.000 s"),
        (json_of(GOOD.replace('"start": 0', '"start": NaN')), 3, "a number of seconds"),
        (
            json_of(GOOD, GOOD.replace('"start": 0, "end": 1', '"start": 62, "end": 63')),
            4,
            "60.000",
        ),
        (json_of(GOOD.replace("[]", '[{"start": -2, "end": 1, "text": "a"}]')), 3, "negative"),
        ('{"a":' * 100_000, 1, "cannot be read"),
        (f'{{"duration": {"9" * 5_000}}}', 1, "cannot be read"),
    ],
)
def test_an_error_in_json_names_the_line_of_the_segment(text: str, line: int, problem: str) -> None:
    found = refused(text)
    assert found.line == line
    assert problem in str(found)


def test_other_encodings_are_refused_with_the_line() -> None:
    assert refused(b"Hello\nGr\xfc\xdfe\n").line == 2


def test_the_number_of_segments_is_limited() -> None:
    found = refused("a\n" * 50_001)
    assert (found.line, "50,000" in str(found)) == (50_001, True)


# Round trips

texts = st.text(
    st.one_of(
        st.sampled_from("aB1 .,:;-<>&/\\{}\n\t\"'ibv0"),
        st.characters(exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=120,
)
times = st.integers(0, 60_000)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    segments = []
    for _ in range(draw(st.integers(1, 6))):
        start, end = sorted((draw(times) / 1_000, draw(times) / 1_000))
        segments.append(segment(draw(texts), start, end, draw(st.integers(1, 3))))
    return transcript(*sorted(segments, key=lambda each: each.start))


@given(transcripts())
def test_srt_becomes_the_same_srt(found: Transcript) -> None:
    text = as_srt(found)
    if text:
        assert as_srt(read(text)) == text


@given(transcripts())
def test_vtt_becomes_the_same_vtt(found: Transcript) -> None:
    text = as_vtt(found)
    if "-->" in text:
        assert as_vtt(read(text.encode())) == text


@given(transcripts())
def test_txt_becomes_the_same_txt(found: Transcript) -> None:
    text = as_txt(found)
    if text:
        assert as_txt(read(text)) == text


@given(transcripts())
def test_every_cue_can_be_read(found: Transcript) -> None:
    for cue in cues_of(found, lambda speaker: f"Speaker {speaker}: "):
        assert 0 < cue.end - cue.start <= LONGEST
        assert 1 <= len(cue.lines) <= 2
        assert all(len(line) <= LINE for line in cue.lines)


@given(transcripts())
def test_vtt_keeps_every_character_but_white_space(found: Transcript) -> None:
    def letters(text: str) -> list[str]:
        return sorted(re.sub(r"[\s\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff]", "", text))

    text = as_vtt(found)
    if "-->" in text:
        assert letters(read(text).text) == letters(found.text)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    for head in ("", "WEBVTT\n\n", "1\n00:00:01,000 --> 00:00:02,000\n", "{"):
        try:
            read(head + text)
        except InvalidTranscript as error:
            assert 1 <= error.line <= (head + text).count("\n") + (head + text).count("\r") + 1
