"""TextRank: a sentence is central if it shares terms with many central sentences."""

import math
from collections import defaultdict
from collections.abc import Sequence

ROUNDS = 30
DAMPING = 0.85

Links = list[dict[int, float]]


def similarity(a: frozenset[str], b: frozenset[str]) -> float:
    """Terms in common, in relation to the lengths of the sentences."""
    common = len(a & b)
    # One more than the length: the logarithm of a single term would be zero.
    return common / (math.log(len(a) + 1) + math.log(len(b) + 1)) if common else 0.0


def centralities(terms: Sequence[frozenset[str]]) -> list[float]:
    """A number for each sentence, from 0 to 1. The most central one has 1."""
    links = _links(terms)
    weights = [math.fsum(each.values()) for each in links]
    ranks = [1.0] * len(terms)
    for _ in range(ROUNDS):
        ranks = [
            1 - DAMPING + DAMPING * sum(ranks[to] * w / weights[to] for to, w in each.items())
            for each in links
        ]
    highest = max(ranks, default=1.0)
    return [rank / highest for rank in ranks]


def _links(terms: Sequence[frozenset[str]]) -> Links:
    """Each sentence with the sentences that share a term with it, in the order of sentences: the
    order of a set differs between processes, and so would the rounding of sums."""
    having: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(terms):
        for term in each:
            having[term].append(at)
    links: Links = []
    for at, each in enumerate(terms):
        others = sorted({other for term in each for other in having[term]} - {at})
        links.append({other: similarity(each, terms[other]) for other in others})
    return links
