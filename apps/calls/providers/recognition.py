"""SpeechKit's answers, and the transcript in them."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from apps.calls.models import Recording, Segment, Transcript, Word
from apps.calls.providers.utterances import within


def without_unit(given: Any) -> Any:
    text = given.strip().removesuffix("s") if isinstance(given, str) else given
    return 0.0 if text in (None, "") else text


# Sent as a text such as "0.879s".
Seconds = Annotated[float, BeforeValidator(without_unit), Field(allow_inf_nan=False)]


class Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")


class RecognisedWord(Part):
    start_time: Seconds = 0.0
    end_time: Seconds = 0.0
    word: str = ""

    def to_word(self, duration: float) -> Word:
        start, end = within(self.start_time, self.end_time, duration)
        return Word(start=start, end=end, text=self.word)


class Alternative(Part):
    text: str = ""
    words: list[RecognisedWord] = Field(default_factory=list)


class Chunk(Part):
    """An utterance of one channel. The first alternative is the best."""

    alternatives: list[Alternative] = Field(default_factory=list)
    channel_tag: int = 1

    def segment(self, before: float, duration: float) -> Segment | None:
        """None if there is no text. Without words, its time is `before`."""
        best = self.alternatives[0] if self.alternatives else Alternative()
        words = [word.to_word(duration) for word in best.words]
        text = best.text.strip() or " ".join(word.text for word in words)
        if not text:
            return None
        start = words[0].start if words else before
        end = max([start, *(word.end for word in words)])
        speaker = max(1, self.channel_tag)
        return Segment(speaker=speaker, start=start, end=end, text=text, words=words)


class Recognition(Part):
    chunks: list[Chunk] = Field(default_factory=list)


class Problem(Part):
    """`code` is a code of gRPC."""

    code: int = 2
    message: str = ""


class Refusal(Part):
    """The body of an answer that is not a success."""

    code: int
    message: str


class Operation(Part):
    """An operation that is done has a response or an error."""

    id: str
    done: bool = False
    error: Problem | None = None
    response: Recognition | None = None


def recognised_transcript(found: Recognition, recording: Recording, provider: str) -> Transcript:
    segments, ends = list[Segment](), dict[int, float]()
    for chunk in found.chunks:
        if segment := chunk.segment(ends.get(chunk.channel_tag, 0.0), recording.duration):
            ends[chunk.channel_tag] = segment.end
            segments.append(segment)
    return Transcript(
        provider=provider,
        language=recording.language,
        duration=recording.duration,
        speakers=max([recording.channels, *(segment.speaker for segment in segments)]),
        segments=sorted(segments, key=lambda segment: (segment.start, segment.speaker)),
    )
