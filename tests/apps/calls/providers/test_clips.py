"""Clips of speech, and where their words are in the recording."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.calls.providers.local.channels import RATE
from apps.calls.providers.local.clips import LONGEST, MARGIN, PAUSE, Clip, clips_of
from apps.calls.providers.local.voice import Span


def spans(*times: tuple[float, float]) -> list[Span]:
    return [Span(int(start * RATE), int(end * RATE)) for start, end in times]


def clips(speech: list[Span], seconds: float = 10_000.0) -> list[Clip]:
    return list(clips_of(speech, int(seconds * RATE)))


def test_utterances_share_a_clip_and_long_pauses_are_shortened() -> None:
    (clip,) = clips(spans((1, 2), (50, 52)))
    pieces = [(piece.start / RATE, piece.end / RATE) for piece in clip.pieces]
    assert pieces == [(0.75, 2.5), (49.5, 52.25)]


def test_short_pauses_are_kept_as_they_are() -> None:
    (clip,) = clips(spans((1, 2), (2.4, 3)))
    samples = np.arange(5 * RATE) % 1_000
    heard = clip.signal(samples.astype(np.int16)) * 32_768
    whole = samples[int(0.75 * RATE) : int(3.25 * RATE)]
    assert np.array_equal(np.rint(heard), whole)


def test_a_clip_ends_before_the_widest_pause_of_its_second_half() -> None:
    """All five do not fit. The pause after the third is the widest of the later ones."""
    first, second = clips(spans((0, 5), (8, 13), (14, 19), (21, 26), (27, 32), (33, 38)))
    assert len(first.speech) == 3
    assert len(second.speech) == 3


def test_words_are_placed_in_the_recording() -> None:
    (clip,) = clips(spans((1, 2), (50, 52)))
    assert clip.placed(0.25, 0.75) == (1.0, 1.5)
    # The second utterance begins after 1.75 s of the clip, with half a second of the pause.
    assert clip.placed(2.25, 2.75) == (50.0, 50.5)


def test_a_word_does_not_reach_over_a_pause_that_was_shortened() -> None:
    (clip,) = clips(spans((1, 2), (50, 52)))
    assert clip.placed(1.0, 2.0) == (1.75, 2.5)
    assert clip.placed(1.6, 2.6) == (49.5, 50.35)


lengths = st.lists(
    st.tuples(st.integers(0, 40 * RATE), st.integers(RATE // 10, 26 * RATE)), max_size=40
)


@given(lengths)
def test_every_utterance_is_in_one_clip_that_fits_into_the_window(
    drawn: list[tuple[int, int]],
) -> None:
    speech, at = list[Span](), 0
    for pause, length in drawn:
        speech.append(Span(at + pause, at + pause + length))
        at = speech[-1].end
    found = list(clips_of(speech, at))
    assert [span for clip in found for span in clip.speech] == speech
    for clip in found:
        assert clip.length <= LONGEST
        for span, piece in zip(clip.speech, clip.pieces, strict=True):
            assert piece.start <= span.start and span.end <= piece.end <= at
            assert piece.length <= span.length + PAUSE + 2 * MARGIN
        assert all(a.end <= b.start for a, b in pairwise(clip.pieces))
        for span in clip.speech:
            start = clip_time(clip, span)
            assert clip.placed(start, start + 0.05)[0] == pytest.approx(span.start / RATE)


def clip_time(clip: Clip, span: Span) -> float:
    """Where an utterance begins in the clip."""
    before = 0
    for piece in clip.pieces:
        if piece.start <= span.start < piece.end:
            return (before + span.start - piece.start) / RATE
        before += piece.length
    raise AssertionError("The utterance is not in the clip.")
