"""The words of a sentence that tell what it is about."""

import re

from apps.calls.analysis.english import LONGEST_WORD, folded_word
from apps.calls.analysis.sentences import Sentence
from apps.calls.analysis.stopwords import STOPWORDS

# Without a list of stop words, shorter words are taken for grammar.
SHORTEST = 4
MOST_PAIRS = 200
_LETTER = re.compile(r"[^\W\d_]")
_NO_SPACES = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0e7f]")


def stem(word: str) -> str:
    """The word without the ending of a plural or a possessive, so that variants are equal."""
    word = word.removesuffix("'s").removesuffix("'")
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def terms_of(sentence: Sentence, is_english: bool) -> frozenset[str]:
    if is_english:
        return frozenset(stem(word) for word in map(folded_word, sentence.words) if is_term(word))
    return frozenset(term for word in sentence.words for term in _foreign(folded_word(word)))


def is_term(word: str) -> bool:
    return 2 < len(word) <= LONGEST_WORD and word not in STOPWORDS and bool(_LETTER.search(word))


def _foreign(word: str) -> list[str]:
    """Scripts without spaces between words are compared by pairs of characters."""
    if _NO_SPACES.search(word):
        return [word[at : at + 2] for at in range(min(len(word) - 1, MOST_PAIRS))]
    return [word] if SHORTEST <= len(word) <= LONGEST_WORD else []
