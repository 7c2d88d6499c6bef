"""Removes speech that a channel only repeats from another channel: crosstalk between wires, an echo
of the loudspeaker in the microphone, or a recording in mono that was stored as stereo.

A window of speech is a copy if the other channel has the same wave, perhaps a little earlier, and
at least as loud. The level alone is no evidence: a speaker with a quiet microphone may interrupt.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from apps.calls.providers.local.channels import RATE, Samples, Signal, signal
from apps.calls.providers.local.voice import Span

WINDOW = RATE // 2
# The longest delay of an echo.
DELAY = RATE // 2
# Shorter remains of an utterance are not words.
SHORTEST = RATE // 4
# From which correlation on two waves are the same. In half a second, an echo with reverberation has
# more than 0.3 in 95 % of cases, and the speech of someone else has less in 99 %.
ALIKE = 0.3
# Of two channels that are equally loud, up to this difference in decibel, the first is kept.
SAME = 1.0
FRAME = RATE // 20
# Keeps quotients of silence finite.
TINY = 1e-9


def without_crosstalk(channels: Sequence[Samples], spans: Sequence[list[Span]]) -> list[list[Span]]:
    """The spans of each channel that are its own."""
    kept = [list(found) for found in spans]
    for own, samples in enumerate(channels):
        for other, source in enumerate(channels):
            if other != own:
                louder = SAME if own > other else -SAME
                pair = Pair(samples, source, spans[other], louder)
                kept[own] = [part for span in kept[own] for part in pair.own_parts(span)]
    return kept


class Pair:
    """A channel, and another one that it may repeat."""

    def __init__(self, own: Samples, other: Samples, spoken: list[Span], louder: float):
        self._own, self._other = own, other
        self._spoken = frames_of(spoken, len(other))
        self._louder = louder

    def own_parts(self, span: Span) -> Iterator[Span]:
        for is_copy, group in groupby(windows(span), self._is_copy):
            parts = list(group)
            part = Span(parts[0].start, parts[-1].end)
            if not is_copy and (part == span or part.length >= SHORTEST):
                yield part

    def _is_copy(self, window: Span) -> bool:
        begin = max(0, window.start - DELAY)
        if not self._spoken[begin // FRAME : window.end // FRAME + 1].any():
            return False
        own = signal(self._own[window.start : window.end])
        likeness, louder = compared(own, signal(self._other[begin : window.end]))
        return likeness >= ALIKE and louder <= self._louder


def windows(span: Span) -> list[Span]:
    """Windows of the same length."""
    count = max(1, round(span.length / WINDOW))
    edges = np.linspace(span.start, span.end, count + 1).astype(int).tolist()
    return [Span(start, end) for start, end in pairwise(edges)]


def frames_of(spans: list[Span], samples: int) -> NDArray[np.bool_]:
    """Which frames of a channel are in a span."""
    frames = np.zeros(samples // FRAME + 1, bool)
    for span in spans:
        frames[span.start // FRAME : span.end // FRAME + 1] = True
    return frames


def compared(part: Signal, whole: Signal) -> tuple[float, float]:
    """The correlation of a part with the most similar place of a longer signal, and by how many
    decibel the part is louder than that place."""
    size = 1 << (len(part) + len(whole)).bit_length()
    products = np.fft.irfft(np.fft.rfft(whole, size) * np.conj(np.fft.rfft(part, size)), size)
    places = len(whole) - len(part) + 1
    sums = np.concatenate([[0.0], np.cumsum(whole.astype(np.float64) ** 2)])
    energies = sums[len(part) :] - sums[:places] + TINY
    energy = float(np.sum(part.astype(np.float64) ** 2)) + TINY
    correlations = np.abs(products[:places]) / np.sqrt(energies * energy)
    best = int(np.argmax(correlations))
    return float(correlations[best]), 10 * float(np.log10(energy / energies[best]))
