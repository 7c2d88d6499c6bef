"""The channels of a recording as samples."""

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.error import FFmpegError
from numpy.typing import NDArray

from apps.calls.providers.contract import OperationRefused

RATE = 16_000
LOUDEST = 32_768.0

Samples = NDArray[np.int16]
Signal = NDArray[np.float32]


def decoded(recording: Path, target: Path) -> list[Samples]:
    """One array for each channel. They are views of the file `target`, so that an hour of audio
    takes no memory until it is read."""
    try:
        channels = write(recording, target)
    except FFmpegError as error:
        raise OperationRefused("The recording cannot be decoded.") from error
    if not target.stat().st_size:
        return [np.zeros(0, np.int16) for _ in range(channels)]
    samples = np.memmap(target, np.int16, mode="r").reshape(-1, channels)
    return [samples[:, channel] for channel in range(channels)]


def write(recording: Path, target: Path) -> int:
    """Writes the samples of all channels in turn. Returns the number of channels."""
    with av.open(str(recording), metadata_errors="ignore") as source, target.open("wb") as file:
        stream = source.streams.audio[0]
        resampler = AudioResampler("s16", stream.codec_context.layout, RATE)
        for block in resampled(source.decode(stream), resampler):
            file.write(block)
        return stream.codec_context.channels


def resampled(frames: Iterator[av.AudioFrame], resampler: AudioResampler) -> Iterator[bytes]:
    for frame in frames:
        # The audio has no gaps. Without times, the resampler does not try to fill any.
        frame.pts = None
        for block in resampler.resample(frame):
            yield block.to_ndarray().tobytes()
    for block in resampler.resample(None):
        yield block.to_ndarray().tobytes()


def signal(samples: Samples) -> Signal:
    """Samples from -1 to 1."""
    return samples.astype(np.float32) / LOUDEST
