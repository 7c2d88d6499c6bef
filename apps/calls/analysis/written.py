"""What a model wrote about a transcript, and which of it the transcript confirms.

The model is not trusted: an item counts only if somebody said the sentence that it quotes. So
instructions that are spoken in a call can add nothing but items with quotes of what was said.
"""

from collections.abc import Sequence
from typing import Literal

from apps.calls.analysis.actions import assignee_of
from apps.calls.analysis.models import ActionItem, ActionItems, Quote, Summary, SummaryPoint
from apps.calls.analysis.quotes import Quotes, compared
from apps.calls.models import Model
from apps.calls.transcript.words import readable

LONGEST_TEXT = 500


class WrittenPoint(Model):
    text: str
    quote: str


class WrittenAction(WrittenPoint):
    kind: Literal["promise", "request"]
    due: str | None = None


class WrittenAnswer(Model):
    """The answer of a model about a transcript, or a part of it."""

    summary: list[WrittenPoint]
    action_items: list[WrittenAction]


def verified_summary(points: Sequence[WrittenPoint], quotes: Quotes, method: str) -> Summary:
    """Leaves out and counts what the transcript does not confirm."""
    confirmed = [(point.text, quote) for point in points if (quote := _quote_of(point, quotes))]
    items = [
        SummaryPoint(method=method, quote=quote, text=readable(text)) for text, quote in confirmed
    ]
    return Summary(method=method, items=items, unverified=len(points) - len(items))


def verified_actions(
    actions: Sequence[WrittenAction], quotes: Quotes, method: str, speakers: Sequence[int]
) -> ActionItems:
    """Like `verified_summary`. Who is to act follows from who said the sentence."""
    confirmed = [(each, quote) for each in actions if (quote := _quote_of(each, quotes))]
    items = [
        ActionItem(
            method=method,
            quote=quote,
            text=readable(action.text),
            kind=action.kind,
            assignee=assignee_of(action.kind, quote.speaker, speakers),
            due=_due(action, quote),
        )
        for action, quote in confirmed
    ]
    return ActionItems(method=method, items=items, unverified=len(actions) - len(items))


def _quote_of(point: WrittenPoint, quotes: Quotes) -> Quote | None:
    is_usable = 0 < len(readable(point.text)) <= LONGEST_TEXT
    return quotes.find(point.quote) if is_usable else None


def _due(action: WrittenAction, quote: Quote) -> str | None:
    """The deadline, if the sentence contains it."""
    due = readable(action.due or "")
    wanted = compared(due)
    return due if wanted and f" {wanted}" in f" {compared(quote.text)}" else None
