"""Percentages from lines of ffmpeg."""

from apps.calls.audio.progress import Progress


def reported(expected: float | None, *pieces: bytes) -> list[float]:
    percents: list[float] = []
    progress = Progress(expected, percents.append)
    for piece in pieces:
        progress.feed(piece)
    return percents


def test_times_become_percentages():
    lines = b"frame=1\nout_time_us=1000000\nprogress=continue\nout_time_us=2500000\n"
    assert reported(10, lines) == [10, 25]


def test_lines_may_come_in_pieces():
    assert reported(10, b"out_ti", b"me_us=10000", b"00\nout_time_us=", b"2000000", b"\n") == [
        10,
        20,
    ]


def test_percentages_never_fall_nor_reach_100():
    assert reported(10, b"out_time_us=3000000\nout_time_us=2000000\n") == [30]
    assert reported(1, b"out_time_us=1000000\nout_time_us=9000000\n") == [99]


def test_unknown_times_are_not_reported():
    assert reported(10, b"out_time_us=N/A\nout_time_us=-5\nout_time_us=0\n") == []
    assert reported(None, b"out_time_us=1000000\n") == []
