"""Levels of samples, measured in pieces."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.calls.audio.peaks import LOUDEST, MOST_BUCKETS, RATE, Meter


def measured(samples: "array[int]", channels: int, piece: int = 1 << 16) -> Meter:
    meter = Meter(channels)
    data = samples.tobytes()
    for start in range(0, len(data), piece):
        meter.feed(data[start : start + piece])
    meter.finish()
    return meter


def second(*levels: int) -> "array[int]":
    """A second in which each channel swings between a level and silence."""
    return array(
        "h", [value for _ in range(RATE // 2) for value in (*levels, *([0] * len(levels)))]
    )


def test_each_channel_has_its_own_peaks():
    meter = measured(second(1_000, -200) + second(500, -400), channels=2)
    left, right = meter.peaks()
    assert len(left) == len(right) == 80
    assert (left[0], left[79], right[0], right[79]) == (100, 50, 50, 100)
    assert meter.seconds == 2


def test_the_most_negative_sample_is_a_peak_too():
    assert measured(second(-32_768), channels=1).peaks() == [[LOUDEST] * 40]


@pytest.mark.parametrize("seconds", [49, 50, 51, 100, 101, 1_000])
def test_a_long_recording_has_no_more_buckets(seconds: int):
    (peaks,) = measured(second(100) * seconds, channels=1).peaks()
    assert MOST_BUCKETS / 2 < len(peaks) <= MOST_BUCKETS


def test_a_short_sound_is_seen_in_a_long_recording():
    (peaks,) = measured(second(10) * 500 + second(1_000) + second(10) * 499, channels=1).peaks()
    assert [at / len(peaks) for at, peak in enumerate(peaks) if peak == LOUDEST] == [0.5, 0.5005]


@given(st.lists(st.integers(-32_768, 32_767), min_size=2, max_size=1_000), st.integers(1, 999))
def test_the_size_of_the_pieces_does_not_matter(samples: list[int], piece: int):
    whole = array("h", samples[: len(samples) // 2 * 2])
    one, many = measured(whole, channels=2), measured(whole, channels=2, piece=piece)
    assert one.peaks() == many.peaks()
    assert one.seconds == many.seconds == len(whole) / 2 / RATE
    assert one.silent_channel() == many.silent_channel()


@pytest.mark.parametrize(
    ("levels", "silent"),
    [((33, 33), None), ((32, 33), 1), ((33, -32), 2), ((0, 0), 1), ((33,), None), ((0,), 1)],
)
def test_channels_below_60_decibels_are_silent(levels: tuple[int, ...], silent: int | None):
    assert measured(second(*levels), channels=len(levels)).silent_channel() == silent


def test_nothing_was_heard():
    meter = measured(array("h"), channels=2)
    assert meter.peaks() == [[], []]
    assert (meter.seconds, meter.silent_channel()) == (0, 1)
