"""A short summary: the sentences that say most, in the order of time."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from apps.calls.analysis.models import Summary, SummaryPoint
from apps.calls.analysis.questions import has_mark
from apps.calls.analysis.sentences import Sentence
from apps.calls.analysis.terms import terms_of
from apps.calls.analysis.textrank import centralities

METHOD = "textrank"
# The time to compare all sentences grows with their square, so only the most promising ones are.
MOST_COMPARED = 200
# A sentence with fewer terms says little, and one with more words is no summary.
LEAST_TERMS, MOST_WORDS = 3, 45
# A call begins with its reason, and ends with what was agreed.
EDGE, EDGE_BONUS = 0.15, 0.2
# A sentence whose terms are all in the summary already counts a fifth.
COVERAGE = 0.8
# They say nothing about this call. In other languages they are rarely central.
_GREETING = re.compile(
    r"\b(?:thank you|thanks) for (?:calling|your)\b|\bmy name is\b|\bspeaking with\b"
    r"|\bthis is \w+(?: \w+)?(?: speaking)?\W*$|^good (?:morning|afternoon|evening)\b|\bbye\b"
    r"|\bgoodbye\b|\bhave an? (?:\w+ )?(?:day|evening|night|one|weekend)\b|\bsee you\b",
    re.IGNORECASE,
)
# (most sentences of a call, sentences of its summary)
LENGTHS = ((15, 3), (60, 4))
LONGEST = 5


class Candidate(NamedTuple):
    sentence: Sentence
    terms: frozenset[str]


def summary_of(sentences: Sequence[Sentence], length: float, *, is_english: bool) -> Summary:
    count = next((count for most, count in LENGTHS if len(sentences) <= most), LONGEST)
    candidates = _candidates(sentences, count, is_english)
    ranks = centralities([candidate.terms for candidate in candidates])
    scores = [
        _score(candidate.sentence, rank, length)
        for candidate, rank in zip(candidates, ranks, strict=True)
    ]
    chosen = sorted(_chosen(candidates, scores, count))
    quotes = [candidates[at].sentence.quote() for at in chosen]
    return Summary(
        method=METHOD,
        items=[SummaryPoint(method=METHOD, quote=quote, text=quote.text) for quote in quotes],
    )


def _candidates(sentences: Sequence[Sentence], least: int, is_english: bool) -> list[Candidate]:
    """The sentences that say most, in the order of time. If they are too few for a summary, those
    that say less, and at last all."""
    found = [Candidate(sentence, terms_of(sentence, is_english)) for sentence in sentences]
    for fits in (_says_enough, _says_something):
        if len(good := [each for each in found if fits(each)]) >= least:
            return _most_frequent(good)
    return _most_frequent(found)


def _says_enough(candidate: Candidate) -> bool:
    has_length = len(candidate.sentence.words) <= MOST_WORDS
    return has_length and len(candidate.terms) >= LEAST_TERMS and _says_something(candidate)


def _says_something(candidate: Candidate) -> bool:
    """A question says less than its answer."""
    sentence, terms = candidate
    return bool(terms) and not has_mark(sentence) and not _GREETING.search(sentence.text)


def _most_frequent(candidates: Sequence[Candidate]) -> list[Candidate]:
    """As many as can be compared: those with the most frequent terms."""
    counts = Counter(term for each in candidates for term in each.terms)
    weights = [sum(counts[term] for term in each.terms) for each in candidates]
    best = sorted(range(len(candidates)), key=lambda at: -weights[at])[:MOST_COMPARED]
    return [candidates[at] for at in sorted(best)]


def _score(sentence: Sentence, rank: float, length: float) -> float:
    edge = length * EDGE
    is_edge = sentence.start < edge or sentence.end > length - edge
    return rank + EDGE_BONUS * is_edge


def _chosen(candidates: Sequence[Candidate], scores: Sequence[float], count: int) -> list[int]:
    """One after the other, because what has been chosen changes how much a sentence adds."""
    chosen: list[int] = []
    covered: set[str] = set()
    for _ in range(min(count, len(candidates))):
        rest = [at for at in range(len(candidates)) if at not in chosen]
        best = max(rest, key=lambda at: scores[at] * _news(candidates[at].terms, covered))
        chosen.append(best)
        covered |= candidates[best].terms
    return chosen


def _news(terms: frozenset[str], covered: set[str]) -> float:
    part = len(terms - covered) / len(terms) if terms else 0.0
    return 1 - COVERAGE + COVERAGE * part
