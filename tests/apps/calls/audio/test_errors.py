"""Recordings that cannot be used: each kind has its own code, and leaves nothing behind."""

import struct
import zlib
from pathlib import Path

import pytest

from apps.calls.audio import (
    EmptyFile,
    NoSound,
    NotAudio,
    RecordingError,
    SilentChannel,
    TooLong,
    Truncated,
    Undecodable,
)
from batchmill import Permanent
from tests.apps.calls.audio.recordings import SECONDS, Recordings, extracted, wav_header
from tests.apps.calls.audio.test_extract import FORMATS

# Raw AAC and MP3 without a length can end anywhere. ffprobe measures WMA by its size.
UNNOTICED = {"tones.aac", "tones.wma", "no-length.mp3", "variable-rate-no-length.mp3"}


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    size = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 9 * 8)
    parts = chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


NOT_AUDIO = {
    "letter.txt": b"Dear customer, the free recording is attached.\n" * 100,
    "letter.mp3": b"Dear customer, the recording is attached.\n" * 100,
    "picture.png": png(),
    # The boxes of HEIC: like MP4, but without an index of tracks.
    "picture.heic": b"\0\0\0\x10ftypheic\0\0\0\0\0\0\0\x0cmeta\0\0\0\0\0\0\0\x0cmdatabcd",
    "page.html": b"<!doctype html><title>Not found</title>",
    "one-byte.wav": b"R",
    "zeros.wav": bytes(100_000),
    # A multiplicative generator: looks random, so that some bytes look like frames of MP3.
    "noise.mp3": b"".join(pow(5, n, 2**61 - 1).to_bytes(8) for n in range(1, 200_000)),
}


def refused(
    source: Path, target: Path, error: type[RecordingError], **options: float
) -> RecordingError:
    with pytest.raises(error) as caught:
        extracted(source, target, **options)
    assert not target.exists()
    assert type(caught.value) is error
    assert "/" not in str(caught.value) and source.name not in str(caught.value)
    return caught.value


def test_every_error_has_its_own_code_and_says_what_to_do():
    errors = [
        NotAudio(), EmptyFile(), NoSound(), Truncated(), TooLong(1), SilentChannel(1, 2)
    ]  # fmt: skip
    assert [error.error_code for error in errors] == [
        "NOT_AUDIO", "EMPTY_FILE", "NO_SOUND", "TRUNCATED", "TOO_LONG", "SILENT_CHANNEL"
    ]  # fmt: skip
    assert Undecodable().error_code == NotAudio().error_code
    assert all(isinstance(error, Permanent) for error in errors)
    assert all(str(error).count(". ") == 1 and str(error).endswith(".") for error in errors)


@pytest.mark.parametrize("name", NOT_AUDIO)
def test_other_files_are_not_audio(name: str, recordings: Recordings, target: Path):
    refused(recordings.written(name, NOT_AUDIO[name]), target, NotAudio)


def test_a_codec_that_nobody_knows_cannot_be_decoded(recordings: Recordings, target: Path):
    source = wav_header(8_000, codec=0x9999) + bytes(8_000)
    refused(recordings.written("codec.wav", source), target, Undecodable)


def test_a_track_without_channels_cannot_be_decoded(recordings: Recordings, target: Path):
    changed = bytearray(recordings.tones("tones.m4a").read_bytes().replace(b"esds", b"xxxx"))
    # The name of the codec, 16 other bytes, and the number of channels.
    codec = changed.index(b"mp4a")
    changed[codec : codec + 4] = b"xxxx"
    changed[codec + 20 : codec + 22] = b"\0\0"
    refused(recordings.written("no-channels.m4a", bytes(changed)), target, Undecodable)


def test_damaged_sound_cannot_be_decoded(recordings: Recordings, target: Path):
    whole = recordings.tones("index-first.m4a", *FORMATS["index-first.m4a"]).read_bytes()
    start = whole.index(b"mdat") + 4
    source = recordings.written("damaged.m4a", whole[:start] + b"\xaa" * (len(whole) - start))
    refused(source, target, Undecodable)


@pytest.mark.parametrize("content", [b"", wav_header(0)], ids=["no bytes", "only a header"])
def test_an_empty_file(content: bytes, recordings: Recordings, target: Path):
    refused(recordings.written("empty.wav", content), target, EmptyFile)


@pytest.mark.parametrize("name", ["mute.mp4", "mute.mkv"])
def test_a_video_without_sound(name: str, recordings: Recordings, target: Path):
    refused(recordings.video(name, "-an"), target, NoSound)


@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in UNNOTICED])
def test_a_file_without_its_end(name: str, share: float, recordings: Recordings, target: Path):
    whole = recordings.tones(name, *FORMATS[name])
    refused(recordings.cut(whole, share), target, Truncated)


@pytest.mark.parametrize("name", ["video.mp4", "video.mkv"])
def test_a_video_without_its_end(name: str, recordings: Recordings, target: Path):
    refused(recordings.cut(recordings.video(name), 0.5), target, Truncated)


def test_an_interrupted_recorder_has_not_written_the_index(recordings: Recordings, target: Path):
    whole = recordings.tones("tones.m4a").read_bytes()
    source = recordings.written("interrupted.m4a", whole[: whole.index(b"moov") - 4])
    refused(source, target, Truncated)


def test_a_header_that_promises_more_than_there_is(recordings: Recordings, target: Path):
    for name, header in {"data": wav_header(40_000), "fmt": wav_header(0)[:30]}.items():
        source = recordings.written(f"{name}.wav", header + b"\0\xff" * 4_000 * (name == "data"))
        refused(source, target, Truncated)


def test_a_few_missing_frames_do_not_matter(recordings: Recordings, target: Path):
    whole = recordings.tones("tones.flac")
    assert extracted(recordings.cut(whole, 0.93), target).duration < SECONDS - 0.2


def test_lengths_are_in_the_message(recordings: Recordings, target: Path):
    whole = recordings.tones("tones.flac")
    error = refused(recordings.cut(whole, 0.5), target, Truncated)
    assert f"of {SECONDS:g} s can be read" in str(error)


@pytest.mark.parametrize("name", ["opus.ogg", "tones.m4a", "tones.wav", "tones.mp3", "tones.flac"])
def test_bytes_after_the_end_do_not_matter(name: str, recordings: Recordings, target: Path):
    whole = recordings.tones(name, *FORMATS[name]).read_bytes()
    source = recordings.written(f"more-{name}", whole + b"TAG of some program" + bytes(109))
    assert extracted(source, target).duration == pytest.approx(SECONDS, abs=0.1)


def test_an_ogg_whose_recorder_did_not_mark_the_last_page(recordings: Recordings, target: Path):
    whole = recordings.tones("opus.ogg", *FORMATS["opus.ogg"]).read_bytes()
    last = whole.rindex(b"OggS")
    source = recordings.written("page-less.ogg", whole[:last])
    assert extracted(source, target).duration == pytest.approx(SECONDS, abs=1.1)


def test_a_picture_longer_than_its_sound_is_no_missing_sound(recordings: Recordings, target: Path):
    sound = ("-f", "lavfi", "-i", "sine=frequency=440:duration=2")
    picture = ("-f", "lavfi", "-i", "testsrc=size=64x64:rate=5:duration=6")
    sources = [
        recordings.made(f"long-picture.{kind}", *picture, *sound, "-c:v", "mpeg4")
        for kind in ("mkv", "mp4", "avi")
    ]
    # Without this tag, Matroska states only the length of the whole.
    bare = sources[0].read_bytes().replace(b"DURATION", b"SOMETHNG")
    for source in (*sources, recordings.written("bare.mkv", bare)):
        assert extracted(source, target).duration == pytest.approx(2, abs=0.1)


def test_sound_that_starts_late_is_no_missing_sound(recordings: Recordings, target: Path):
    late = "setts=pts=PTS+5000:dts=DTS+5000"
    whole = recordings.tones("opus.ogg", *FORMATS["opus.ogg"])
    source = recordings.made("late.mka", "-i", str(whole), "-c", "copy", "-bsf:a", late)
    assert extracted(source, target).duration == pytest.approx(SECONDS, abs=0.1)


def test_ten_hours_are_too_long(recordings: Recordings, target: Path):
    size = 10 * 3600 * 8_000
    source = recordings.written("ten-hours.wav", wav_header(size))
    with source.open("r+b") as file:
        file.truncate(len(wav_header(size)) + size)
    error = refused(source, target, TooLong)
    assert "is 10 h long; the limit is 4 h" in str(error)


def test_sound_that_never_ends_is_stopped(recordings: Recordings, target: Path):
    """No header states these lengths."""
    for source in (
        recordings.piped("tones.flac", "-f", "flac"),
        recordings.tones("no-length.mp3", *FORMATS["no-length.mp3"]),
    ):
        error = refused(source, target, TooLong, longest=3)
        assert "is too long; the limit is 3 s" in str(error)


def test_the_limit_itself_is_not_too_long(recordings: Recordings, target: Path):
    assert extracted(recordings.tones("tones.wav"), target, longest=SECONDS).duration == SECONDS


@pytest.mark.parametrize(
    ("left", "right", "channel", "side"),
    [("0", "0.3*sin(440*t)", 1, "left"), ("0.3*sin(440*t)", "0.0005*sin(440*t)", 2, "right")],
)
def test_a_silent_channel(
    left: str, right: str, channel: int, side: str, recordings: Recordings, target: Path
):
    source = recordings.sound(f"silent-{side}.wav", f"aevalsrc={left}|{right}:d=2")
    error = refused(source, target, SilentChannel)
    assert isinstance(error, SilentChannel)
    assert error.channel == channel
    assert f"The {side} channel (speaker {channel}) is silent." in str(error)


def test_a_silent_mono_recording(recordings: Recordings, target: Path):
    error = refused(recordings.sound("silence.wav", "anullsrc=cl=mono:d=2"), target, SilentChannel)
    assert str(error).startswith("This recording is silent.")


def test_a_quiet_channel_is_not_silent(recordings: Recordings, target: Path):
    """-54 dBFS, and only for a tenth of a second."""
    short = "aevalsrc=0.3*sin(440*t)|0.002*sin(2600*t)*between(t\\,1\\,1.1):d=2"
    assert extracted(recordings.sound("quiet.wav", short), target).channels == 2
