"""Finds a quote in the sentences of a transcript, to verify that somebody said it."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from apps.calls.analysis.models import Quote
from apps.calls.analysis.sentences import Sentence

# A shorter quote could be in any transcript, unless it is a whole sentence.
LEAST_WORDS = 3
MOST_SENTENCES = 3
_SPEAKER = re.compile(r"\s*speaker \d+\s*:", re.IGNORECASE)
_APOSTROPHES = re.compile("['’‘ʼ`´]")
_NOT_WORDS = re.compile(r"[\W_]+")
# Scripts without spaces between words: each character is compared like a word.
_NO_SPACES = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0e7f])")


def compared(text: str) -> str:
    """The words of the text, without case and punctuation, with a space after each."""
    plain = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text).casefold())
    words = _NOT_WORDS.sub(" ", _NO_SPACES.sub(r" \1 ", plain)).split()
    return "".join(f"{word} " for word in words)


class Quotes:
    """The sentences that can be quoted."""

    def __init__(self, sentences: Sequence[Sentence]):
        self._sentences = sentences
        parts = [compared(sentence.text) for sentence in sentences]
        for at in range(1, len(parts)):
            # A quote does not go on in a sentence of another speaker.
            if sentences[at - 1].speaker != sentences[at].speaker:
                parts[at - 1] += "\n "
        self._starts = list(accumulate(map(len, parts[:-1]), initial=1))
        self._text = f" {''.join(parts)}"

    def find(self, quote: str) -> Quote | None:
        """The sentences that contain the quote, as they are in the transcript."""
        wanted = compared(_SPEAKER.sub("", quote, count=1))
        # With the space before it, the quote begins with a whole word.
        at = self._text.find(f" {wanted}") + 1 if wanted else 0
        if not at:
            return None
        first = bisect_right(self._starts, at) - 1
        last = bisect_right(self._starts, at + len(wanted) - 1) - 1
        return _quote(self._sentences[first : last + 1], wanted)


def _quote(sentences: Sequence[Sentence], wanted: str) -> Quote | None:
    is_whole = any(compared(sentence.text) == wanted for sentence in sentences)
    if len(sentences) > MOST_SENTENCES or not (is_whole or wanted.count(" ") >= LEAST_WORDS):
        return None
    quotes = [sentence.quote() for sentence in sentences]
    return Quote(
        speaker=quotes[0].speaker,
        start=quotes[0].start,
        end=max(quote.end for quote in quotes),
        text=" ".join(quote.text for quote in quotes),
    )
