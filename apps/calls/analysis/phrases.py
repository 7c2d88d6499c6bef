"""Key phrases: terms that are said several times, alone or together.

They are ranked like C-values: the logarithm of the number of words, times how often the phrase
occurs outside of longer phrases. Variants such as "oil change" and "Oil changes" are one phrase.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from apps.calls.analysis.english import ends_clause, folded_word, trimmed
from apps.calls.analysis.models import KeyPhrase, KeyPhrases
from apps.calls.analysis.sentences import Sentence
from apps.calls.analysis.terms import is_term, stem

METHOD = "c-value"
MOST_WORDS = 3
LEAST_COUNT = 2
MOST_PHRASES = 12

Stems = tuple[str, ...]


class Occurrences(NamedTuple):
    """The first sentence with a phrase, and how often each of its forms occurs."""

    first: Sentence
    forms: Counter[str]


def key_phrases_of(sentences: Sequence[Sentence]) -> KeyPhrases:
    found: dict[Stems, Occurrences] = {}
    for sentence in sentences:
        for stems, form in _phrases(sentence.words):
            found.setdefault(stems, Occurrences(sentence, Counter())).forms[form] += 1
    alone = _counts_alone({stems: each.forms.total() for stems, each in found.items()})
    # Sorting is stable: between equal scores, the phrase that is said first comes first.
    best = sorted(alone, key=lambda stems: -alone[stems] * math.log2(len(stems) + 1))
    return KeyPhrases(method=METHOD, items=[_item(found[stems]) for stems in best[:MOST_PHRASES]])


def _item(phrase: Occurrences) -> KeyPhrase:
    """Shows the most frequent form, and of these one in lower case: the first word of a sentence
    has a capital letter for no other reason."""
    form = min(phrase.forms, key=lambda form: (-phrase.forms[form], form != form.lower()))
    return KeyPhrase(
        method=METHOD, quote=phrase.first.quote(), phrase=form, count=phrase.forms.total()
    )


def _counts_alone(counts: Mapping[Stems, int]) -> dict[Stems, int]:
    """How often each phrase occurs outside of longer phrases, if that is often enough."""
    repeated = {stems: count for stems, count in counts.items() if count >= LEAST_COUNT}
    longer: Counter[Stems] = Counter()
    for stems, count in repeated.items():
        for part in _parts(stems):
            longer[part] = max(longer[part], count)
    return {
        stems: count - longer[stems]
        for stems, count in repeated.items()
        if count - longer[stems] >= LEAST_COUNT
    }


def _parts(stems: Stems) -> Iterator[Stems]:
    for length in range(1, len(stems)):
        for first in range(len(stems) - length + 1):
            yield stems[first : first + length]


def _phrases(words: Sequence[str]) -> Iterator[tuple[Stems, str]]:
    for run in _runs(words):
        for first in range(len(run)):
            for last in range(first + 1, min(first + MOST_WORDS, len(run)) + 1):
                part = run[first:last]
                stems = tuple(stem(folded_word(word)) for word in part)
                yield stems, " ".join(trimmed(word) for word in part)


def _runs(words: Sequence[str]) -> Iterator[list[str]]:
    """Terms that follow each other within a clause."""
    run: list[str] = []
    for word in words:
        is_part = is_term(folded_word(word))
        if is_part:
            run.append(word)
        if run and (not is_part or ends_clause(word)):
            yield run
            run = []
    if run:
        yield run
