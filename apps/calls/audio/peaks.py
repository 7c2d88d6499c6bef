"""How loud the channels are over time: for drawing a waveform, and for finding silent ones."""

import sys
from array import array

# Telephones transmit up to 4 kHz, so a signal of speech cannot hide above that.
RATE = 8_000
# The name of the sample format in ffmpeg, in the byte order of this machine.
FORMAT = f"s16{sys.byteorder[0]}e"

MOST_BUCKETS = 2_000
LOUDEST = 100

_SAMPLE = 2
# A level for each 25 ms: four hours in stereo are 2.3 MB.
_BLOCK = RATE // 40
# -60 dBFS. The noise of a connected line is louder.
_SILENT = 32_768 / 1_000


class Meter:
    """Measures 16-bit samples with interleaved channels, in pieces of any size."""

    def __init__(self, channels: int):
        self._levels = [array("H") for _ in range(channels)]
        self._size = _BLOCK * _SAMPLE * channels
        self._rest = b""
        self._bytes = 0

    @property
    def channels(self) -> int:
        return len(self._levels)

    @property
    def seconds(self) -> float:
        return self._bytes / (RATE * _SAMPLE * self.channels)

    def feed(self, data: bytes) -> None:
        self._bytes += len(data)
        data = self._rest + data
        end = len(data) - len(data) % self._size
        for start in range(0, end, self._size):
            self._measure(data[start : start + self._size])
        self._rest = data[end:]

    def finish(self) -> None:
        if self._rest:
            self._measure(self._rest)
        self._rest = b""

    def silent_channel(self) -> int | None:
        """The first channel without a signal, counted from 1."""
        loudest = (max(levels, default=0) for levels in self._levels)
        return next((at for at, level in enumerate(loudest, 1) if level <= _SILENT), None)

    def peaks(self) -> list[list[int]]:
        """For each channel the loudest sample of every bucket. `LOUDEST` is the loudest sample of
        that channel, so that a quiet speaker can be seen too. All buckets have the same length,
        except the last."""
        return [_scaled(_buckets(levels)) for levels in self._levels]

    def _measure(self, block: bytes) -> None:
        samples = array("h", block)
        for channel, levels in enumerate(self._levels):
            one = samples[channel :: self.channels]
            levels.append(max(max(one), -min(one)))


def _buckets(levels: "array[int]") -> list[int]:
    size = -(-len(levels) // MOST_BUCKETS) or 1
    return [max(levels[start : start + size]) for start in range(0, len(levels), size)]


def _scaled(buckets: list[int]) -> list[int]:
    loudest = max(buckets, default=0) or 1
    return [round(LOUDEST * level / loudest) for level in buckets]
