"""The answer of an OpenAI-compatible endpoint in the format `verbose_json`."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from apps.calls.models import Segment, Word
from apps.calls.providers.utterances import segments_of, within


class Timed(BaseModel):
    model_config = ConfigDict(extra="ignore")

    start: float = Field(default=0.0, allow_inf_nan=False)
    end: float = Field(default=0.0, allow_inf_nan=False)


class TimedWord(Timed):
    word: str = ""

    def to_word(self, duration: float) -> Word:
        start, end = within(self.start, self.end, duration)
        return Word(start=start, end=end, text=self.word.strip())


class TimedSegment(Timed):
    """Some endpoints send the words of each segment in it."""

    text: str = ""
    words: list[TimedWord] | None = None


class VerboseAnswer(BaseModel):
    """An endpoint may send no words, or no segments either."""

    model_config = ConfigDict(extra="ignore")

    text: str
    segments: list[TimedSegment] | None = None
    words: list[TimedWord] | None = None

    def spoken(self, speaker: int, duration: float) -> list[Segment]:
        words = [word.to_word(duration) for word in self._words() if word.word.strip()]
        if self.segments:
            return list(self._segments(speaker, duration, words))
        if words:
            return segments_of(speaker, words)
        text = self.text.strip()
        whole = Segment(speaker=speaker, start=0.0, end=duration, text=text)
        return [whole] if text else []

    def _words(self) -> list[TimedWord]:
        inside = (word for segment in self.segments or () for word in segment.words or ())
        return self.words or list(inside)

    def _segments(self, speaker: int, duration: float, words: list[Word]) -> Iterator[Segment]:
        """Each word belongs to the segment in which its middle is."""
        at = 0
        for segment in self.segments or ():
            start, end = within(segment.start, segment.end, duration)
            first = at
            while at < len(words) and (words[at].start + words[at].end) / 2 < end:
                at += 1
            if text := segment.text.strip():
                yield Segment(
                    speaker=speaker, start=start, end=end, text=text, words=words[first:at]
                )
