"""The provider `local`: real Whisper, real voice activity detection."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.calls.models import Transcript
from apps.calls.providers import OperationRefused, ProviderNotConfigured
from apps.calls.providers.local import package, voice
from apps.calls.providers.local.package import INSTALL, SHA256, model_directory, verify
from apps.calls.providers.local.transcriber import transcribed
from apps.calls.providers.local.whisper import Whisper, loaded
from apps.calls.settings import LocalSettings
from tests.apps.calls.providers.speech import filtered, generated

FIXTURE = Path(__file__).parents[4].parent / "shared/fixtures/calls"
CHORDS = "+".join(
    f"0.15*sin({root * step}*2*PI*t)*exp(-2*mod(t\\,1))"
    for root in (220, 277, 330)
    for step in (1, 2)
)

Transcribe = Callable[[bytes], Transcript]


@pytest.fixture(scope="module")
def transcribe(tmp_path_factory: pytest.TempPathFactory) -> Transcribe:
    """Without an operation, in this process."""

    def run(audio: bytes) -> Transcript:
        folder = tmp_path_factory.mktemp("local")
        path = folder / "audio.ogg"
        path.write_bytes(audio)
        return transcribed(path, folder, loaded(LocalSettings()), lambda percent: None)

    return run


@pytest.fixture(scope="module")
def heard(transcribe: Transcribe, call: bytes) -> Transcript:
    return transcribe(call)


def talk(transcript: Transcript, speaker: int) -> float:
    return sum(s.end - s.start for s in transcript.speech if s.speaker == speaker)


def text(transcript: Transcript, speaker: int) -> str:
    return " ".join(s.text for s in transcript.segments if s.speaker == speaker)


# What is heard


@pytest.mark.parametrize(
    "sound",
    [
        "anullsrc=r=48000:cl=stereo:d=10",
        "anoisesrc=c=white:a=0.1:d=10:s=1",
        "anoisesrc=c=pink:a=0.5:d=10:s=1",
        "sine=440:d=10",
        f"aevalsrc={CHORDS}:s=48000:d=10",
    ],
    ids=["silence", "white noise", "pink noise", "tone", "chords"],
)
def test_no_words_are_invented(transcribe: Transcribe, sound: str) -> None:
    transcript = transcribe(generated(sound))
    assert (transcript.segments, transcript.speech) == ([], [])
    assert transcript.duration == pytest.approx(10, abs=0.1)


def test_speech_is_measured_in_each_channel(heard: Transcript) -> None:
    """espeak-ng speaks for 3.4 s on the left and for 4.2 s on the right, with pauses."""
    assert talk(heard, 1) == pytest.approx(2.9, abs=0.6)
    assert talk(heard, 2) == pytest.approx(3.8, abs=0.6)
    assert all(s.end <= 4.2 for s in heard.speech if s.speaker == 1)
    assert all(s.start >= 4.3 for s in heard.speech if s.speaker == 2)
    starts = [s.start for s in heard.speech]
    assert starts == sorted(starts)


def test_words_are_where_they_are_spoken(heard: Transcript) -> None:
    words = [w for s in heard.segments if s.speaker == 2 for w in s.words]
    assert words[0].start == pytest.approx(4.5, abs=0.4)
    assert words[-1].text.startswith("car")
    assert words[-1].end == pytest.approx(8.6, abs=0.5)


def test_the_same_recording_always_gives_the_same_transcript(
    transcribe: Transcribe, call: bytes, heard: Transcript
) -> None:
    assert transcribe(call) == heard


def test_a_recording_in_mono_has_one_speaker(transcribe: Transcribe, call: bytes) -> None:
    transcript = transcribe(filtered(call, "[0:a]pan=mono|c0=c0+c1[out]"))
    assert transcript.speakers == 1
    assert "calling" in text(transcript, 1) and "Jack" in text(transcript, 1)


# Crosstalk


@pytest.mark.parametrize(
    "echo",
    ["volume=0.1", "volume=0.1,adelay=120", "volume=0.03", "volume=0.5,aecho=0.8:0.5:40:0.3"],
)
def test_an_echo_of_the_other_speaker_is_not_transcribed(
    transcribe: Transcribe, call: bytes, echo: str
) -> None:
    """The right channel has only an echo of the left one."""
    graph = f"[0:a]pan=mono|c0=c0,asplit[a][b];[b]{echo}[e];[a][e]join=inputs=2[out]"
    transcript = transcribe(filtered(call, graph))
    assert "Thank you for calling" in text(transcript, 1)
    assert (text(transcript, 2), talk(transcript, 2)) == ("", 0)


def test_mono_that_was_stored_as_stereo_has_each_word_once(
    transcribe: Transcribe, call: bytes
) -> None:
    transcript = transcribe(filtered(call, "[0:a]pan=stereo|c0=c0+c1|c1=c0+c1[out]"))
    assert "calling" in text(transcript, 1) and "Jack" in text(transcript, 1)
    assert (text(transcript, 2), talk(transcript, 2)) == ("", 0)


def test_a_quiet_speaker_who_interrupts_is_heard(transcribe: Transcribe, call: bytes) -> None:
    """Both begin at the same time, and the caller is 14 dB more quiet."""
    graph = (
        "[0:a]asplit[x][y];[x]pan=mono|c0=c0[a];"
        "[y]pan=mono|c0=0.2*c1,atrim=start=4,asetpts=PTS-STARTPTS,apad=whole_dur=9[b];"
        "[a][b]join=inputs=2[out]"
    )
    transcript = transcribe(filtered(call, graph))
    assert talk(transcript, 1) == pytest.approx(2.9, abs=0.6)
    assert talk(transcript, 2) == pytest.approx(3.8, abs=0.6)
    assert "Jack" in text(transcript, 2)


# Long recordings


def test_blocks_of_a_long_recording_are_heard_as_one(
    transcribe: Transcribe, call: bytes, heard: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a few minutes of a recording are in memory at once."""
    monkeypatch.setattr(voice, "BLOCK", 2 * voice.RATE)
    blocks = transcribe(call)
    assert len(blocks.speech) > len(heard.speech)
    assert talk(blocks, 2) == pytest.approx(talk(heard, 2), abs=0.4)
    assert "Jack" in text(blocks, 2)


# What cannot be read


def test_what_is_not_audio_is_refused(transcribe: Transcribe) -> None:
    with pytest.raises(OperationRefused, match="cannot be decoded"):
        transcribe(b"not audio at all")


# The model


def test_without_the_packages_the_command_to_install_them_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    with pytest.raises(ProviderNotConfigured) as raised:
        model_directory(LocalSettings())
    assert INSTALL in str(raised.value)
    assert INSTALL == "pip install -c constraints.txt '.[calls]'"


def test_the_model_is_that_of_the_pinned_package() -> None:
    verify(model_directory(LocalSettings()))


@pytest.mark.parametrize("name", sorted(SHA256))
def test_a_model_that_was_changed_is_not_loaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tmp_path / "model"
    shutil.copytree(package.packaged_directory(), changed)
    with (changed / name).open("r+b") as file:
        file.write(b"x")
    monkeypatch.setattr(package, "packaged_directory", lambda: changed)
    with pytest.raises(ProviderNotConfigured, match=f"^{name} is not the file of"):
        loaded(LocalSettings())


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProviderNotConfigured, match="CALLS_LOCAL_MODEL has no model") as raised:
        model_directory(LocalSettings(model=tmp_path))
    assert str(tmp_path) not in str(raised.value)


def test_another_model_is_not_compared_with_the_packaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copytree(package.packaged_directory(), own)
    (own / "config.json").write_text((own / "config.json").read_text() + "\n")
    monkeypatch.setenv("CALLS_LOCAL_MODEL", str(own))
    assert isinstance(loaded(LocalSettings.read()), Whisper)


# A real call


@pytest.mark.skipif(not FIXTURE.is_dir(), reason="The recording is not part of the project.")
def test_a_real_call(transcribe: Transcribe) -> None:
    (recording,) = FIXTURE.glob("*agent-left*.ogg")
    transcript = transcribe(recording.read_bytes())
    assert "Platinum Motors" in text(transcript, 1) and "Platinum" not in text(transcript, 2)
    assert "Jack" in text(transcript, 2)
    assert talk(transcript, 1) == pytest.approx(88.9, rel=0.1)
    assert talk(transcript, 2) == pytest.approx(84.2, rel=0.1)
    spoken = sum(talk(transcript, speaker) for speaker in (1, 2))
    assert transcript.duration - spoken == pytest.approx(72.2, rel=0.1)
