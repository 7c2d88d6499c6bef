"""Recordings that ffmpeg makes for the tests, and what can be heard in them.

The basic recording has a tone of 440 Hz on the left and one of 700 Hz on the right. So a test can
see whether channels were swapped, mixed or lost.
"""

import itertools
import struct
import subprocess
from array import array
from pathlib import Path

from apps.calls.audio import Extracted, extract

LEFT, RIGHT = 440, 700
SECONDS = 4.0
RATE = 16_000
TONES = f"aevalsrc=0.3*sin({LEFT}*2*PI*t)|0.3*sin({RIGHT}*2*PI*t):s=48000:d={SECONDS}"
PICTURE = f"testsrc=size=64x64:rate=5:duration={SECONDS}"


class Recordings:
    """Makes each file once."""

    def __init__(self, folder: Path):
        self._folder = folder

    def tones(self, name: str, *options: str) -> Path:
        """The basic recording, in the format of the name."""
        return self.made(name, "-f", "lavfi", "-i", TONES, *options)

    def sound(self, name: str, source: str, *options: str) -> Path:
        """A recording of what a filter of ffmpeg generates."""
        return self.made(name, "-f", "lavfi", "-i", source, *options)

    def video(self, name: str, *options: str) -> Path:
        """The basic recording with a moving picture."""
        inputs = ("-f", "lavfi", "-i", PICTURE, "-f", "lavfi", "-i", TONES)
        return self.made(name, *inputs, "-c:v", "mpeg4", *options)

    def path(self, name: str) -> Path:
        return self._folder / name

    def made(self, name: str, *arguments: str) -> Path:
        path = self.path(name)
        if not path.exists():
            ffmpeg(*arguments, f"file:{path}")
        return path

    def piped(self, name: str, *options: str) -> Path:
        """The basic recording from a program that cannot go back to write its length."""
        path = self.path(f"piped-{name}")
        path.write_bytes(ffmpeg("-f", "lavfi", "-i", TONES, *options, "pipe:1"))
        return path

    def cut(self, path: Path, share: float) -> Path:
        whole = path.read_bytes()
        return self.written(f"{share}-{path.name}", whole[: int(share * len(whole))])

    def written(self, name: str, content: bytes) -> Path:
        path = self.path(name)
        path.write_bytes(content)
        return path


def ffmpeg(*arguments: str) -> bytes:
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def extracted(source: Path, target: Path, **options: float) -> Extracted:
    return extract(source, target, lambda percent: None, **options)


def channels_of(path: Path) -> list["array[int]"]:
    """The samples of each channel. The path is one of `extract`, so it has at most two."""
    count = int(shown(path, "channels"))
    samples = array("h", ffmpeg("-i", str(path), "-f", "s16le", "-ar", str(RATE), "pipe:1"))
    return [samples[channel::count] for channel in range(count)]


def shown(path: Path, field: str) -> str:
    """Fields of the first audio stream, from ffprobe."""
    fields = ["-select_streams", "a:0", "-show_entries", f"stream={field}"]
    command = ["ffprobe", "-v", "error", *fields, "-of", "csv=p=0", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def pitch(samples: "array[int]") -> float:
    """The frequency of a tone, from the number of times that it crosses zero upwards."""
    middle = samples[len(samples) // 4 : 3 * len(samples) // 4]
    upwards = sum(a < 0 <= b for a, b in itertools.pairwise(middle))
    return upwards * RATE / len(middle)


def loudness(samples: "array[int]") -> float:
    """The root mean square. A full tone has 0.7."""
    return (sum(sample * sample for sample in samples) / len(samples)) ** 0.5 / 32_768


def wav_header(bytes_of_sound: int, *, rate: int = 8_000, codec: int = 1, bits: int = 8) -> bytes:
    """The header of a mono WAV file. With 8 bits, zero bytes are not silence."""
    width = bits // 8
    fmt = struct.pack("<HHIIHH", codec, 1, rate, rate * width, width, bits)
    sound = b"data" + struct.pack("<I", bytes_of_sound)
    size = struct.pack("<I", 4 + 8 + len(fmt) + 8 + bytes_of_sound)
    return b"RIFF" + size + b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + sound
