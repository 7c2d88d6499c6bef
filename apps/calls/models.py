"""The data that stages pass on, and the result. JSON uses camelCase names."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from batchmill import Artifact

ProviderName = Literal["local", "speechkit", "openai", "manual"]


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    def to_json(self) -> bytes:
        """The JSON that is stored."""
        return self.model_dump_json(by_alias=True).encode()


class Word(Model):
    """Times are seconds from the start of the recording."""

    start: float
    end: float
    text: str


class Segment(Model):
    """One uninterrupted utterance of a speaker. A speaker is a channel; the first one is 1."""

    speaker: int
    start: float
    end: float
    text: str
    words: list[Word] = Field(default_factory=list)


class Speech(Model):
    """A time in which a speaker can be heard."""

    speaker: int
    start: float
    end: float


class Transcript(Model):
    """Segments of all speakers in the order of their start. `speech` is measured in the audio; a
    provider that does not measure it leaves it empty."""

    provider: str
    language: str
    duration: float
    speakers: int
    segments: list[Segment]
    speech: list[Speech] = Field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(segment.text for segment in self.segments)


class Recording(Model):
    """A recording between stages: OGG Opus with one speaker for each channel. Each stage adds what
    the next one needs. `transcript` is the file that a user gave, for the provider `manual`.
    `operation` is the id of the first operation at the provider, and `words` its transcript."""

    name: str
    provider: ProviderName
    language: str
    duration: float
    channels: int
    audio: Artifact
    peaks: Artifact
    transcript: Artifact | None = None
    operation: str | None = None
    words: Artifact | None = None

    def updated(self, **more: object) -> "Recording":
        return self.model_copy(update=more)


class Choice(Model):
    """What an upload chooses. Languages are codes such as `en` and `pt_BR`."""

    provider: ProviderName
    language: Annotated[str, Field(max_length=20, pattern="^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]


class SubmittedRecording(Choice):
    """A recording as it was uploaded."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    file: Artifact
    transcript: Artifact | None = None


class CallResult(Model):
    """The files of a call that are kept, and what a list shows."""

    name: str
    duration: float
    channels: int
    audio: Artifact
    peaks: Artifact
    transcript: Artifact
    analysis: Artifact
