"""Good recordings in many formats, and what is kept of them."""

import subprocess
import sys
import wave
from pathlib import Path

import pytest

from apps.calls.audio import extract
from tests.apps.calls.audio.recordings import (
    LEFT,
    RATE,
    RIGHT,
    SECONDS,
    Recordings,
    channels_of,
    extracted,
    ffmpeg,
    loudness,
    pitch,
    shown,
)

FORMATS = {
    "tones.wav": (),
    "tones-24bit.wav": ("-c:a", "pcm_s24le"),
    "tones.mp3": (),
    "no-length.mp3": ("-write_xing", "0"),
    # The first frames are smaller than the others, so ffprobe's estimate of the length is wrong.
    "variable-rate-no-length.mp3": ("-q:a", "5", "-write_xing", "0"),
    "tones.m4a": (),
    "index-first.m4a": ("-movflags", "faststart"),
    "fragments.m4a": ("-movflags", "frag_keyframe+empty_moov", "-frag_duration", "1000000"),
    "opus.ogg": ("-c:a", "libopus"),
    "vorbis.ogg": ("-c:a", "libvorbis"),
    "tones.flac": (),
    "tones.webm": (),
    "tones.mka": ("-c:a", "libopus"),
    "tones.aac": (),
    "tones.wma": (),
    "tones.aiff": (),
}
LIMITED = """
import resource, sys
from pathlib import Path
from apps.calls.audio import extract
for limit in (resource.RLIMIT_DATA, resource.RLIMIT_AS):
    resource.setrlimit(limit, (1 << 30, 1 << 30))
print(extract(Path(sys.argv[1]), Path(sys.argv[2]), lambda percent: None).channels)
"""


@pytest.mark.parametrize("name", FORMATS)
def test_both_channels_of_every_format_are_kept(name: str, recordings: Recordings, target: Path):
    found = extracted(recordings.tones(name, *FORMATS[name]), target)
    assert found.duration == pytest.approx(SECONDS, abs=0.1)
    assert found.channels == 2
    assert shown(target, "codec_name") == "opus"
    assert [round(pitch(samples), -1) for samples in channels_of(target)] == [LEFT, RIGHT]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tones.wav", ("-f", "wav")),
        ("tones.mp3", ("-f", "mp3")),
        ("tones.flac", ("-f", "flac")),
        ("tones.webm", ("-f", "webm")),
    ],
)
def test_a_file_that_does_not_state_its_length_is_accepted(
    name: str, options: tuple[str, ...], recordings: Recordings, target: Path
):
    assert extracted(recordings.piped(name, *options), target).duration == pytest.approx(
        SECONDS, abs=0.1
    )


def test_telephone_quality_stays_mono(recordings: Recordings, target: Path):
    phone = ("-ac", "1", "-ar", "8000", "-c:a", "pcm_mulaw")
    found = extracted(
        recordings.sound("phone.wav", "sine=frequency=440:duration=3", *phone), target
    )
    assert found.channels == len(found.peaks) == 1
    assert [round(pitch(samples), -1) for samples in channels_of(target)] == [440]


def test_the_sound_of_a_video_is_extracted(recordings: Recordings, target: Path):
    assert extracted(recordings.video("video.mp4"), target).duration == pytest.approx(
        SECONDS, abs=0.1
    )
    assert len(channels_of(target)) == 2


def test_only_the_first_audio_track_counts(recordings: Recordings, target: Path):
    source = recordings.made(
        "two-tracks.mka",
        *("-f", "lavfi", "-i", "sine=frequency=440:duration=2"),
        *("-f", "lavfi", "-i", "sine=frequency=700:duration=4"),
        *("-map", "0", "-map", "1", "-c:a", "libopus"),
    )
    assert extracted(source, target).duration == pytest.approx(2, abs=0.1)
    assert round(pitch(channels_of(target)[0]), -1) == 440


def test_the_middle_channel_of_a_film_is_heard_on_both_sides(recordings: Recordings, target: Path):
    sound = "aevalsrc=0|0|0.3*sin(440*2*PI*t)|0|0|0:d=3:c=5.1"
    found = extracted(recordings.sound("film.wav", sound), target)
    assert found.channels == 2
    assert [round(pitch(samples), -1) for samples in channels_of(target)] == [440, 440]


def test_no_channel_of_a_conference_is_lost(recordings: Recordings, target: Path):
    # Without a layout, ffmpeg takes the third channel for the bass, and drops it.
    sound = f"aevalsrc=0|0.3*sin(700*2*PI*t)|0.3*sin(440*2*PI*t):s={RATE}:d=3"
    samples = ffmpeg("-f", "lavfi", "-i", sound, "-f", "s16le", "pipe:1")
    with wave.open(str(source := recordings.path("three.wav")), "wb") as file:
        file.setparams((3, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples)
    assert shown(source, "channels,channel_layout") == "3,unknown"
    extracted(source, target)
    assert [round(pitch(samples), -1) for samples in channels_of(target)] == [440, 700]


def test_high_frequencies_are_kept(recordings: Recordings, target: Path):
    """The samples for the peaks have a low rate, which the sound must not get."""
    source = recordings.sound("high.wav", "sine=frequency=6000:sample_rate=48000:duration=3")
    extracted(source, target)
    assert pitch(channels_of(target)[0]) == pytest.approx(6_000, abs=20)


def test_a_speaker_is_not_heard_on_the_other_channel(recordings: Recordings, target: Path):
    alone = "lt(mod(t\\,4)\\,2)"
    voice = "0.3*(sin(220*2*PI*t)+sin(610*2*PI*t)*sin(9*t)+sin(1900*2*PI*t)*sin(7*t))/2"
    sound = f"aevalsrc={alone}*{voice}|(1-{alone})*{voice}:s=48000:d=8"
    extracted(recordings.sound("turns.wav", sound), target)
    left, right = channels_of(target)
    quiet, loud = (slice(int(at * RATE), int((at + 1) * RATE)) for at in (0.5, 2.5))
    assert loudness(right[loud]) > 0.05 and loudness(left[quiet]) > 0.05
    # -50 dB
    assert loudness(right[quiet]) < loudness(left[quiet]) / 300
    assert loudness(left[loud]) < loudness(right[loud]) / 300


def test_gaps_between_packets_become_silence(recordings: Recordings, target: Path):
    """A call over a bad network is recorded with gaps. Later words keep their time."""
    later = (
        "setts=pts=if(gte(PTS\\,2000)\\,PTS+2000\\,PTS):dts=if(gte(DTS\\,2000)\\,DTS+2000\\,DTS)"
    )
    whole = recordings.tones("opus.ogg", *FORMATS["opus.ogg"])
    source = recordings.made("gap.mka", "-i", str(whole), "-c", "copy", "-bsf:a", later)
    found = extracted(source, target)
    assert found.duration == pytest.approx(SECONDS + 2, abs=0.1)
    bucket = found.duration / len(found.peaks[0])
    assert max(found.peaks[0][int(2.2 / bucket) : int(3.8 / bucket)]) == 0
    assert min(found.peaks[0][int(4.2 / bucket) : int(5.8 / bucket)]) > 50


def test_every_run_gives_the_same_bytes(recordings: Recordings, tmp_path: Path):
    tagged = ("-metadata", "title=A call", "-metadata", "comment=private")
    source = recordings.tones("tagged.m4a", *tagged)
    runs = [(tmp_path / f"{number}.ogg") for number in range(3)]
    assert len({str(extracted(source, run)) for run in runs}) == 1
    assert len({run.read_bytes() for run in runs}) == 1
    for unwanted in (b"A call", b"private", b"Lavc5", b"Lavf"):
        assert unwanted not in runs[0].read_bytes()


def test_progress_grows_and_ends_at_100(recordings: Recordings, target: Path):
    reported: list[float] = []
    source = recordings.sound("minutes.flac", "sine=frequency=440:duration=120", "-ac", "2")
    extract(source, target, reported.append)
    assert reported == sorted(set(reported))
    assert reported[0] > 0
    assert reported[-2:] == [99, 100]


@pytest.mark.parametrize(
    "name",
    [
        "a b.wav",
        "'it\"s.wav",
        "-y.wav",
        "two\nlines.wav",
        "http:x.wav",
        "concat:x.wav",
        "pipe:0",
        "%03d.wav",
        "ünï.wav",
        "tones.m3u8",
    ],
)
def test_names_have_no_meaning(
    name: str, recordings: Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(recordings.tones("tones.wav").read_bytes())
    found = extracted(Path(name), Path(f"{name}.ogg"))
    assert found.duration == pytest.approx(SECONDS, abs=0.1)
    assert Path(f"{name}.ogg").read_bytes().startswith(b"OggS")
    assert {path.name for path in Path().iterdir()} == {name, f"{name}.ogg"}


def test_a_gibibyte_of_memory_is_enough(recordings: Recordings, target: Path):
    command = [sys.executable, "-c", LIMITED, str(recordings.tones("tones.m4a")), str(target)]
    assert subprocess.run(command, check=True, capture_output=True).stdout == b"2\n"


def test_a_real_call(target: Path):
    folders = (parent / "shared/fixtures/calls" for parent in Path(__file__).resolve().parents)
    source = next(
        (call for folder in folders for call in folder.glob("auto_repairs_40*.ogg")), None
    )
    if source is None:
        pytest.skip("The real recording is not available.")
    found = extracted(source, target)
    assert found.duration == pytest.approx(245.38, abs=0.01)
    assert found.channels == 2
    # The speakers take turns, so the channels are rarely loud together.
    loud = [[peak > 15 for peak in peaks] for peaks in found.peaks]
    both = sum(left and right for left, right in zip(*loud, strict=True))
    assert all(0.2 < sum(channel) / len(channel) < 0.5 for channel in loud)
    assert both < 0.05 * len(loud[0])


def test_a_browser_can_seek(recordings: Recordings, target: Path):
    """Players find a position by the times of the pages."""
    extracted(recordings.tones("tones.wav"), target)
    rest = ffmpeg("-ss", "3", "-i", str(target), "-f", "s16le", "-ar", str(RATE), "pipe:1")
    assert len(rest) / (4 * RATE) == pytest.approx(SECONDS - 3, abs=0.1)
