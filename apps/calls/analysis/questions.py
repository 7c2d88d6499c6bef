"""Questions: by their mark, by their form or by a tag at the end."""

import re
from collections.abc import Sequence
from typing import Literal

from apps.calls.analysis.english import Folded, folded, listed
from apps.calls.analysis.models import Question, Questions
from apps.calls.analysis.sentences import Sentence

METHOD = "rules"
MARK_METHOD = "rules: question marks only"
Sign = Literal["mark", "form", "tag"]

_MARK = re.compile("[?？؟][\"'”’)\\]»」』）]*$")
# With a question mark, these ask only whether the other listens or agrees.
_REACTIONS = listed("ok okay right yeah yes yep no huh hm hmm hello hi sorry pardon really oh so")

_BE = "is|are|was|were"
_AUXILIARY = (
    f"{_BE}|am|do|does|did|can|could|will|would|should|shall|may|might|have|has|had|isn't|aren't"
    "|wasn't|weren't|don't|doesn't|didn't|can't|couldn't|won't|wouldn't|shouldn't|haven't|hasn't"
)
_SUBJECT = (
    "i|you|he|she|it|we|they|this|that|these|those|there|the|your|my|his|her|our|their|any|anyone"
    "|anybody|anything|someone|somebody|everyone|everything"
)
_PERSON = "i|you|we|they|he|she|it"
# The order of an auxiliary verb and its subject. Left out are orders that statements have too:
# "do the same", "should you need help", "had I known", "don't you worry".
_INVERSION = (
    rf"(?:(?:{_BE}|does|did|has|can|could|will|would|isn't|aren't|wasn't|weren't|doesn't|didn't"
    rf"|can't|couldn't|won't|wouldn't|hasn't) (?:{_SUBJECT})"
    r"|(?:do|have|haven't) (?:i|you|we|they|these|those)"
    r"|don't (?:i|we|they|you (?!worry|dare|forget|be|ever))"
    r"|(?:should|shall|may|might|shouldn't) (?:i|we)|am i) \w"
)
_MEASURE = "much|many|long|often|far|soon|old|big|late|early|fast|quickly|bad|large|high"
_THING = "kind|sort|type|time|day|date|year|month|color|colour|make|model|size|number|name|part"
_ASKING = (
    rf"(?:what|why|how)(?: (?:{_AUXILIARY})|'s|'re|'d|'ll) (?!more\b)\w"
    rf"|how (?:{_MEASURE})(?: [\w']+){{0,2}} (?:{_AUXILIARY})\b"
    rf"|what (?:{_THING})s?(?: [\w']+){{0,3}} (?:{_AUXILIARY})\b"
    rf"|what (?!(?:{_PERSON}|this|that|happened)\b)[\w']+ (?:{_AUXILIARY}) (?:{_SUBJECT}) \w"
    r"|(?:how|what) about \w|how come \w|what if \w|what else\b|why not\b|what happened(?! is| was)"
)
# After a comma, these can begin a statement about the word before it.
_ASKING_FIRST = (
    rf"(?:where|when|who|whose)(?: (?:{_AUXILIARY})|'s|'re|'d|'ll) \w"
    rf"|which (?:[\w']+ ){{1,3}}(?:{_AUXILIARY}) (?:{_SUBJECT}) \w"
)
_FILLERS = (
    r"(?:(?:and|but|so|or|then|now|well|okay|ok|alright|all right|right|yes|yeah|yep|no|um|uh|oh|hi"
    r"|hello|hey|sure|great|perfect|good|also|sorry|excuse me|please|just|actually|anyway|because"
    r"|i mean|you know|thank you|thanks|sir|ma'am|got it|i see|by the way|of course) (?:, )?)*"
)
_FORM = re.compile(
    rf"^{_FILLERS}(?:{_INVERSION}|{_ASKING}|{_ASKING_FIRST})"
    r"|\bhow (?:can|may) (?:i|we) help\b"
    rf"|, {_FILLERS}(?:(?:can|could|will|would|does|did|is|are) (?:{_PERSON}) \w"
    rf"|(?:do|have) (?:i|you|we|they) \w|{_ASKING})"
)
_TAG = re.compile(
    r"[\w']+ [\w']+ (?:, )?(?:isn't|aren't|wasn't|weren't|don't|doesn't|didn't|won't|wouldn't|can't"
    rf"|couldn't|haven't|hasn't|shouldn't) (?:{_PERSON}|there|that)$"
    rf"|(?:n't|\bnot|\bnever) .*, (?:{_AUXILIARY}) (?:{_PERSON}|there)$"
)


def questions_of(sentences: Sequence[Sentence], *, is_english: bool) -> Questions:
    method = METHOD if is_english else MARK_METHOD
    items = [
        Question(method=method, quote=sentence.quote(), sign=sign)
        for sentence in sentences
        if (sign := _sign(sentence, is_english))
    ]
    return Questions(method=method, items=items)


def has_mark(sentence: Sentence) -> bool:
    return bool(_MARK.search(sentence.words[-1]))


def is_question(sentence: Sentence) -> bool:
    """For English."""
    return has_mark(sentence) or _sign(sentence, True) is not None


def _sign(sentence: Sentence, is_english: bool) -> Sign | None:
    """Some recognisers write no question marks, so the form counts too."""
    spoken = folded(sentence.words)
    if has_mark(sentence):
        return None if is_english and _is_reaction(spoken) else "mark"
    if not is_english or "!" in sentence.words[-1]:
        return None
    return "form" if _FORM.search(spoken.text) else "tag" if _TAG.search(spoken.text) else None


def _is_reaction(spoken: Folded) -> bool:
    return set(spoken.text.replace(",", "").split()) <= _REACTIONS
