"""Sentiment over time, by a lexicon."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apps.calls.analysis.curve import curve_of, mean
from apps.calls.analysis.english import ends_clause, folded_word
from apps.calls.analysis.lexicon import (
    INTENSIFIERS,
    LONGEST_PHRASE,
    NEGATORS,
    PHRASES,
    STATEMENTS,
    WEIGHTS,
)
from apps.calls.analysis.models import Sentiment, SentimentPoint, SpeakerSentiment
from apps.calls.analysis.questions import is_question
from apps.calls.analysis.sentences import Sentence
from apps.calls.transcript.speakers import speaker_name

METHOD = "lexicon"
# A negator changes a word of the lexicon that is at most three words later.
REACH = 3
# An intensifier is nearer: "very happy", "very much appreciated".
NEAR = 2
# "Not good" is weaker than "bad". "Nobody was hurt" has no sentiment.
NEGATED_POSITIVE, NEGATED_NEGATIVE = -0.7, 0.0
# "Is there a problem?" and "Would Friday be good?" have no sentiment. "Why are you so rude?" has.
LEAST_IN_QUESTION = -2.0


class Hit(NamedTuple):
    """A word or phrase with sentiment."""

    weight: float
    text: str


def sentiment_of(
    sentences: Sequence[Sentence], speakers: Sequence[int], length: float
) -> Sentiment:
    scored = [(sentence, *score_of(sentence)) for sentence in sentences]
    return Sentiment(
        method=METHOD,
        speakers=[
            _speaker_sentiment(speaker, [each[:2] for each in scored], length)
            for speaker in speakers
        ],
        points=[
            SentimentPoint(method=METHOD, quote=sentence.quote(), score=score, words=words)
            for sentence, score, words in scored
            if score
        ],
    )


def _speaker_sentiment(
    speaker: int, scored: Sequence[tuple[Sentence, float]], length: float
) -> SpeakerSentiment:
    """Sentences without sentiment count as 0."""
    own = [(sentence.middle, score) for sentence, score in scored if sentence.speaker == speaker]
    return SpeakerSentiment(
        speaker=speaker,
        name=speaker_name(speaker),
        score=mean([score for _, score in own]),
        curve=curve_of(own, length),
    )


def score_of(sentence: Sentence) -> tuple[float, list[str]]:
    """A number from -1 to 1, and the words that decided it."""
    hits = [hit for clause in _clauses(sentence.words) for hit in _hits(clause) if hit.weight]
    if is_question(sentence):
        hits = [hit for hit in hits if hit.weight <= LEAST_IN_QUESTION]
    whole = sum(hit.weight for hit in hits)
    return round(whole / (abs(whole) + 2.0), 3), [hit.text for hit in hits]


def _clauses(words: Sequence[str]) -> Iterator[list[str]]:
    """Negation does not reach beyond punctuation: "No, that is great." """
    clause: list[str] = []
    for word in words:
        clause.append(folded_word(word))
        if ends_clause(word):
            yield clause
            clause = []
    yield clause


def _hits(clause: list[str]) -> Iterator[Hit]:
    # A negator that is part of a phrase does not change the words after the phrase.
    before: list[str] = []
    while len(before) < len(clause):
        rest = clause[len(before) :]
        if phrase := _phrase(rest):
            yield Hit(PHRASES[phrase], " ".join(phrase))
            before += [""] * len(phrase)
            continue
        if weight := WEIGHTS.get(rest[0]):
            yield Hit(_changed(weight, before), rest[0])
        before.append(rest[0])


def _phrase(words: Sequence[str]) -> tuple[str, ...] | None:
    """The longest phrase with which the words begin."""
    lengths = range(min(LONGEST_PHRASE, len(words)), 1, -1)
    return next((found for n in lengths if (found := tuple(words[:n])) in PHRASES), None)


def _changed(weight: float, before: Sequence[str]) -> float:
    near = (INTENSIFIERS[word] for word in reversed(before[-NEAR:]) if word in INTENSIFIERS)
    weight *= next(near, 1.0)
    if not _is_negated(before[-REACH:]):
        return weight
    return weight * (NEGATED_POSITIVE if weight > 0 else NEGATED_NEGATIVE)


def _is_negated(before: Sequence[str]) -> bool:
    return any(
        word.endswith("n't") or (word in NEGATORS and not _is_answer(before[at:]))
        for at, word in enumerate(before)
    )


def _is_answer(words: Sequence[str]) -> bool:
    return words[0] == "no" and not STATEMENTS.isdisjoint(words[1:])
