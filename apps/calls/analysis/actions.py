"""Action items: promises and requests, by rules."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from apps.calls.analysis.acts import ACT, ACTING, ADVERBS, ANY_ACT, CONTACT, DONE
from apps.calls.analysis.deadlines import deadline_in
from apps.calls.analysis.english import Folded, folded
from apps.calls.analysis.models import ActionItem, ActionItems
from apps.calls.analysis.sentences import Sentence

METHOD = "rules"
Kind = Literal["promise", "request"]

_ONE_OF_US = (
    "(?:he|she|they|someone|somebody|(?:mr|mrs|ms|dr) [a-z]+|(?:our|my) [a-z]+(?: [a-z]+)?)"
    "(?: (?:from|in|at) (?:our|the|my) [a-z]+)?"
)
_WILL = "(?:i|we)(?:'ll| will|(?:'m|'re| am| are)(?: also| just)? (?:going to|gonna))"
_THEY_WILL = "(?:'ll| will| is going to| are going to)"
_PROMISE = re.compile(
    rf"\b{_WILL} {ADVERBS}(?:{ANY_ACT}|be {ACTING}|be in touch\b)"
    rf"|\b(?:i|we) promise to {ADVERBS}{ACT}"
    rf"|\blet (?:me|us) {ADVERBS}{ANY_ACT}"
    rf"|\b{_ONE_OF_US}{_THEY_WILL} {ADVERBS}(?:{ACT}|{CONTACT})"
    rf"|\b(?:the|an?) [a-z]+(?: [a-z]+)?{_THEY_WILL} {ADVERBS}{CONTACT}"
)
# Promises only with a deadline: "it will be ready" alone says little.
_RESULT = re.compile(
    rf"\b(?:[a-z]+(?:'ll| will)|is going to) be {DONE}"
    r"|\byou(?:'ll| will) (?:get|have|receive) (?!to\b)[a-z]"
)
_CLAUSE = "(?:^|, )(?:(?:and|but|so|or|then|okay|ok|just|also|well|yeah|yes|sure|please) (?:, )?)*"
_REQUEST = re.compile(
    rf"\b(?:can|will) you {ADVERBS}{ACT}"
    rf"|\b(?:could|would) you {ADVERBS}{ANY_ACT}"
    rf"|\bplease (?:don't |do not )?{ADVERBS}{ANY_ACT}"
    rf"|\byou(?:'ll|'d| will| would)?(?: also| just)? (?:need|have) to {ADVERBS}{ANY_ACT}"
    rf"|\byou (?:must|should) {ADVERBS}(?!get ){ACT}"
    rf"|{_CLAUSE}(?:don't forget|remember|be sure) to {ADVERBS}{ACT}"
    rf"|{_CLAUSE}make sure (?!(?:that )?(?:i|i'm|we|we're)\b)[a-z]"
    rf"|{_CLAUSE}(?:let (?:me|us) know|give (?:me|us) an? (?:call|ring))\b"
    rf"|{_CLAUSE}(?:don't |do not )?{ACT}.* please$"
    rf"|\b(?:i|we)(?: need| want|'d like| would like) you to {ADVERBS}{ACT}"
    rf"|\bwould you mind {ADVERBS}{ACTING}"
)
# Before these words, the same words report, doubt or ask: "they said someone will call", "if you
# need to call", "when can you send it", "I don't think I'll bring it".
_NOT_AFTER = re.compile(
    r"(?:^| )(?:if|when|whenever|whether|unless|until|before|after|once|why|where|how|what"
    r"|(?:how|what|which) [a-z]+|said|says|thought|told|(?:told|tell|promised) [a-z]+|promised"
    r"|do|does|did|don't|(?:don't|not|doesn't|didn't) (?:think|know|believe|suppose))"
    r"(?: that)? ?$"
)


def action_items_of(sentences: Sequence[Sentence], speakers: Sequence[int]) -> ActionItems:
    items = [item for sentence in sentences for item in _items(sentence, speakers)]
    return ActionItems(method=METHOD, items=items)


def _items(sentence: Sentence, speakers: Sequence[int]) -> Iterator[ActionItem]:
    spoken = folded(sentence.words)
    for kind in _kinds(spoken):
        yield ActionItem(
            method=METHOD,
            quote=sentence.quote(),
            text=sentence.text,
            kind=kind,
            assignee=assignee_of(kind, sentence.speaker, speakers),
            due=deadline_in(spoken),
        )


def assignee_of(kind: Kind, speaker: int, speakers: Sequence[int]) -> int | None:
    """Who makes a promise keeps it. Only between two speakers it is clear who is asked."""
    if kind == "promise":
        return speaker
    others = [other for other in speakers if other != speaker]
    return others[0] if len(others) == 1 else None


def _kinds(spoken: Folded) -> Iterator[Kind]:
    if _has(_PROMISE, spoken.text) or (_has(_RESULT, spoken.text) and deadline_in(spoken)):
        yield "promise"
    if _has(_REQUEST, spoken.text):
        yield "request"


def _has(pattern: re.Pattern[str], text: str) -> bool:
    return any(not _NOT_AFTER.search(text[: found.start()]) for found in pattern.finditer(text))
