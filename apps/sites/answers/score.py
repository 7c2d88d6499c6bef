"""The score of answers: 0.5 · position + 0.3 · visibility + 0.2 · mentions.

Each part of one answer is from 0 to 1:

- position: 1 / rank of the first mention, and 0 without one. The rank is the place among the
  businesses that the answer lists, or the number of the sentence if it lists none.
- visibility: 1 if the answer names the business, otherwise 0. As a mean, it is the share of answers
  that name the business.
- mentions: the number of mentions, up to 3, divided by 3.

The parts of several answers are the means of their parts before rounding. Every answer counts the
same. All parts are rounded to four places, halves away from zero, and then the score is their
weighted sum, rounded in the same way. So a score can always be recomputed from the parts beside it.

Answers to direct questions are not scored: the question names the business, so a mention proves
nothing about its visibility.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from apps.sites.answers.models import Mention, Score

POSITION, VISIBILITY, MENTIONS = Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)
ENOUGH_MENTIONS = 3
PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Parts:
    """Exact, so that no rounding depends on the order of answers."""

    position: Fraction
    visibility: Fraction
    mentions: Fraction


def parts_of(mentions: Sequence[Mention]) -> Parts:
    if not mentions:
        return Parts(Fraction(0), Fraction(0), Fraction(0))
    first = min(mentions, key=lambda mention: mention.start)
    count = min(len(mentions), ENOUGH_MENTIONS)
    return Parts(Fraction(1, first.rank), Fraction(1), Fraction(count, ENOUGH_MENTIONS))


def score_of(answers: Sequence[Parts]) -> Score | None:
    """None without answers."""
    if not answers:
        return None
    position = _rounded(_mean([parts.position for parts in answers]))
    visibility = _rounded(_mean([parts.visibility for parts in answers]))
    mentions = _rounded(_mean([parts.mentions for parts in answers]))
    value = _rounded(POSITION * position + VISIBILITY * visibility + MENTIONS * mentions)
    return Score(
        value=float(value),
        position=float(position),
        visibility=float(visibility),
        mentions=float(mentions),
        answers=len(answers),
    )


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _rounded(value: Fraction) -> Fraction:
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return Fraction(exact.quantize(PLACES, ROUND_HALF_UP))
