"""Every error of reading a recording.

    RecordingError            Permanent: another attempt with this file would fail too
    ├── NotAudio              NOT_AUDIO: neither audio nor video
    │   └── Undecodable       the same code: the sound cannot be decoded
    ├── EmptyFile             EMPTY_FILE: no bytes, or a header without sound after it
    ├── NoSound               NO_SOUND: a video without an audio track
    ├── Truncated             TRUNCATED: the end is missing
    ├── TooLong               TOO_LONG
    ├── SilentChannel         SILENT_CHANNEL, with `channel`
    └── ToolMissing           TOOL_MISSING: a program is not installed on this machine
    ToolFailed                Transient, TOOL_FAILED: a program crashed or took too long

The code is for programs. The message is shown to end users unchanged. What ffmpeg says is for
operators: it is the cause of the error.
"""

from batchmill import Permanent, Transient

_SIDES = ("left", "right")


class RecordingError(Permanent):
    code = "RECORDING"

    def __init__(self, message: str):
        super().__init__(message, code=self.code)


class NotAudio(RecordingError):
    code = "NOT_AUDIO"

    def __init__(
        self,
        message: str = "This file is not a recording that can be read. Upload audio or video, "
        "such as WAV, MP3, M4A, OGG or MP4.",
    ):
        super().__init__(message)


class Undecodable(NotAudio):
    def __init__(self) -> None:
        super().__init__(
            "The sound in this file cannot be decoded. Export it again as WAV, MP3 or M4A, then "
            "upload that file."
        )


class EmptyFile(RecordingError):
    code = "EMPTY_FILE"

    def __init__(self, name: str = "This file"):
        super().__init__(f"{name} is empty. Check the recording, then upload it again.")


class NoSound(RecordingError):
    code = "NO_SOUND"

    def __init__(self) -> None:
        super().__init__("This file has no audio track. Upload a recording with sound.")


class Truncated(RecordingError):
    """Without lengths, the structure of the file shows that its end is missing."""

    code = "TRUNCATED"

    def __init__(self, decoded: float | None = None, declared: float | None = None):
        what = "its end is missing"
        if decoded is not None and declared is not None:
            what = f"only {_length(decoded)} of {_length(declared)} can be read"
        super().__init__(
            f"This recording is incomplete: {what}. Download or export it again, then upload it."
        )


class TooLong(RecordingError):
    code = "TOO_LONG"

    def __init__(self, limit: float, duration: float | None = None):
        takes = f"is {_length(duration)} long" if duration is not None else "is too long"
        super().__init__(
            f"This recording {takes}; the limit is {_length(limit)}. Split it into shorter "
            "recordings, then upload them."
        )


class SilentChannel(RecordingError):
    """`channel` counts from 1."""

    code = "SILENT_CHANNEL"

    def __init__(self, channel: int, channels: int):
        self.channel = channel
        if channels == 1:
            message = "This recording is silent. Check the microphone, then upload another one."
        else:
            message = (
                f"The {_SIDES[channel - 1]} channel (speaker {channel}) is silent. Upload a "
                "recording with one speaker on each channel, or a mono recording of both."
            )
        super().__init__(message)


class ToolMissing(RecordingError):
    code = "TOOL_MISSING"

    def __init__(self, name: str):
        super().__init__(
            f"The program {name} is not installed where recordings are processed. Run "
            "`bin/install-servers apps` there, then retry."
        )


class ToolFailed(Transient):
    """A crash or a time limit. Both may be due to the load of the machine."""

    def __init__(self, message: str):
        super().__init__(message, code="TOOL_FAILED")


def _length(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"
