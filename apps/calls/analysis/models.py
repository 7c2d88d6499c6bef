"""The analysis of a call. A page draws it without further computation.

Every section has a `method`: how its items were found. `none: …` says why there are none. Items
quote a sentence of the transcript exactly. Times are seconds, rounded to milliseconds.
"""

from typing import Literal

from apps.calls.models import Model

NOT_ENGLISH = "none: not English"


class Span(Model):
    start: float
    end: float


class Quote(Span):
    """A sentence of the transcript."""

    speaker: int
    text: str


class Item(Model):
    """Something that one sentence shows."""

    method: str
    quote: Quote


class SpeakerTime(Model):
    """`share` is the part of the speech of all speakers, from 0 to 1."""

    speaker: int
    name: str
    seconds: float
    share: float
    spans: list[Span]


class Overlap(Span):
    """A time in which several speakers talk."""

    speakers: list[int]


class Monologue(Span):
    """`quote` is its first sentence, if it has words."""

    speaker: int
    seconds: float
    quote: Quote | None


class Talk(Model):
    """`method` is `speech` if the times were measured in the audio. `words` and `segments` are the
    times of the transcript. `estimate` means that the transcript had no times.

    `ratio` is the time of speaker 1 divided by the time of speaker 2, if there are two.
    """

    method: Literal["speech", "words", "segments", "estimate", "none: no speech"]
    speakers: list[SpeakerTime]
    ratio: float | None
    overlaps: list[Overlap]
    overlap_seconds: float
    silence_seconds: float
    longest_monologue: Monologue | None


class SentimentPoint(Item):
    """`score` is from -1 to 1. `words` decided it."""

    score: float
    words: list[str]


class CurvePoint(Model):
    time: float
    score: float


class SpeakerSentiment(Model):
    """`score` is the mean of all sentences of the speaker, and None without sentences. Times in
    which the speaker says nothing have no points in `curve`."""

    speaker: int
    name: str
    score: float | None
    curve: list[CurvePoint]


class Sentiment(Model):
    method: str
    speakers: list[SpeakerSentiment]
    points: list[SentimentPoint]


class KeyPhrase(Item):
    """`quote` is the first sentence with the phrase. `count` includes its variants."""

    phrase: str
    count: int


class KeyPhrases(Model):
    method: str
    items: list[KeyPhrase]


class Question(Item):
    """`sign` is what marks the sentence as a question."""

    sign: Literal["mark", "form", "tag"]


class Questions(Model):
    method: str
    items: list[Question]


class ActionItem(Item):
    """A promise, or a request. `assignee` is the speaker who is to act, if that is known. `due` is
    copied from the sentence."""

    text: str
    kind: Literal["promise", "request"]
    assignee: int | None
    due: str | None


class ActionItems(Model):
    """`unverified` counts what a model wrote without a quote that is in the transcript."""

    method: str
    items: list[ActionItem]
    unverified: int = 0


class SummaryPoint(Item):
    """`text` is the sentence itself, or what a model wrote about it."""

    text: str


class Summary(Model):
    method: str
    items: list[SummaryPoint]
    unverified: int = 0


class Analysis(Model):
    """`sentences` is the number of sentences. `model_error` is the code of the error because of
    which a model wrote nothing, so that the results of the rules are kept. `unread_seconds` is the
    length of the end of a very long call that a model did not read."""

    language: str
    duration: float
    sentences: int
    talk: Talk
    sentiment: Sentiment
    key_phrases: KeyPhrases
    questions: Questions
    action_items: ActionItems
    summary: Summary
    model_error: str | None = None
    unread_seconds: float = 0.0
