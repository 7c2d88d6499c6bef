"""Deadlines in a sentence: "by Friday", "within two days", "tomorrow at 3 p.m."."""

import re

from apps.calls.analysis.english import Folded

_NUMBER = (
    r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty"
    r"|thirty|forty-five|a couple of|a few|the next(?: few| two| three)?)"
)
_WEEKDAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_PART = "morning|afternoon|evening|night"
_CLOCK = (
    r"(?:\d{1,2}(?::\d\d)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r"(?: (?:thirty|fifteen|forty-five))?(?: ?(?:o'clock|a\.?m|p\.?m)\b)?"
)
_DAY = (
    rf"(?:(?:next |this )?(?:{_WEEKDAY})|tomorrow|today|tonight|the day after tomorrow"
    rf"|(?:this|next) (?:{_PART}|week|weekend|month)|(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?"
    rf"|the \d{{1,2}}(?:st|nd|rd|th)(?: of (?:{_MONTH}))?)"
)
_MOMENT = (
    rf"(?:{_DAY}(?: (?:{_PART}))?(?: (?:at|by|before) (?:{_CLOCK}|noon))?"
    r"|(?:the )?end of (?:the |this |next )?(?:business )?(?:day|week|month|year|business)"
    rf"|noon|midnight|lunch|{_CLOCK}(?: (?:on )?{_DAY})?)"
)
_UNIT = "(?:business |working )?(?:minute|hour|day|week|month)s?"
# The first kind that is in the sentence counts.
_KINDS = [
    re.compile(rf"\b(?:by|before|until|no later than) {_MOMENT}\b"),
    re.compile(rf"\b(?:with)?in {_NUMBER} {_UNIT}\b|\b{_NUMBER} {_UNIT} from (?:now|today)\b"),
    re.compile(
        rf"\b(?:on )?{_DAY}(?: (?:{_PART}))?"
        rf"(?: (?:at|around|between) {_CLOCK}(?: and {_CLOCK})?)?\b"
    ),
]


def deadline_in(sentence: Folded) -> str | None:
    """The deadline as it was spoken."""
    for kind in _KINDS:
        if found := kind.search(sentence.text):
            return sentence.original(found.start(), found.end())
    return None
