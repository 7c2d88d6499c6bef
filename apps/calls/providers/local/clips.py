"""Clips of speech that fit into Whisper's window of 30 seconds.

Whisper needs context, and takes as long for one second as for 30. So utterances share a clip. Long
pauses between them are shortened, and what is left out of a clip is silence.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from apps.calls.providers.local.channels import RATE, Samples, Signal, signal
from apps.calls.providers.local.voice import Span

LONGEST = 28 * RATE
# What is left of a longer pause, and what is added before and after a clip.
PAUSE = RATE
MARGIN = RATE // 4


@dataclass(frozen=True)
class Clip:
    """`pieces` are the parts of the channel that the clip consists of, one for each utterance."""

    speech: list[Span]
    pieces: list[Span]

    @property
    def length(self) -> int:
        return sum(piece.length for piece in self.pieces)

    def signal(self, samples: Samples) -> Signal:
        return np.concatenate([signal(samples[piece.start : piece.end]) for piece in self.pieces])

    def placed(self, start: float, end: float) -> tuple[float, float]:
        """The seconds in the recording of a word in the clip, inside one utterance."""
        number = self._piece_at((start + end) / 2)
        piece, offset = self.pieces[number], self._offsets[number]
        shift = (piece.start - offset) / RATE
        low, high = piece.start / RATE, piece.end / RATE
        begin = min(max(start + shift, low), high)
        return begin, min(max(end + shift, begin), high)

    def _piece_at(self, seconds: float) -> int:
        return max(0, bisect_right(self._offsets, seconds * RATE) - 1)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each piece begins in the clip."""
        return [0, *accumulate(piece.length for piece in self.pieces)][:-1]


def clips_of(speech: list[Span], end: int) -> Iterator[Clip]:
    """`end` is the number of samples in the channel."""
    left = list(speech)
    while left:
        count = fitting(left)
        if count < len(left):
            count = before_widest_pause(left[: count + 1])
        yield Clip(left[:count], pieces_of(left[:count], end))
        left = left[count:]


def fitting(spans: list[Span]) -> int:
    """How many of the spans fit into one clip, at least one."""
    length = 2 * MARGIN + spans[0].length
    for number, (before, span) in enumerate(pairwise(spans), 1):
        length += min(PAUSE, span.start - before.end) + span.length
        if length > LONGEST:
            return number
    return len(spans)


def before_widest_pause(spans: list[Span]) -> int:
    """How many spans come before the widest pause in the second half, where a sentence probably
    ends."""
    pauses = [span.start - before.end for before, span in pairwise(spans)]
    half = len(pauses) // 2
    widest = max(range(half, len(pauses)), key=lambda at: (pauses[at], at))
    return widest + 1


def pieces_of(spans: list[Span], end: int) -> list[Span]:
    """Each utterance with half of the pause around it, as far as the pause is kept."""
    starts = [max(0, spans[0].start - MARGIN)]
    ends = list[int]()
    for before, span in pairwise(spans):
        half = min(PAUSE, span.start - before.end) // 2
        ends.append(before.end + half)
        starts.append(span.start - half)
    ends.append(min(end, spans[-1].end + MARGIN))
    return [Span(start, stop) for start, stop in zip(starts, ends, strict=True)]
