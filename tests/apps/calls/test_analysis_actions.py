"""Promises, requests and deadlines, and sentences that look like them."""

import pytest

from apps.calls.analysis.actions import action_items_of
from apps.calls.analysis.deadlines import deadline_in
from apps.calls.analysis.english import folded
from tests.apps.calls.calls import sentence


def kinds(text: str) -> list[str]:
    return [item.kind for item in action_items_of([sentence(text)], [1, 2]).items]


@pytest.mark.parametrize(
    "text",
    [
        "I will call you tomorrow.",
        "I'll send it.",
        "I’LL SEND IT!",
        "We'll get back to you.",
        "Let me check the calendar.",
        "I'm going to refund the fee.",
        "We're also going to replace it.",
        "I will go ahead and book it.",
        "We'll do our best to take care of it.",
        "I'll let you know.",
        "I promise to call.",
        "I'll be sending the form.",
        "Someone from our team will call you.",
        "My husband will pick it up.",
        "It'll be ready by Friday.",
        "Your car will be done tomorrow.",
        "Don't worry, I'll fix that.",
        "We'll have the driver call you.",
        "Will do, I'll text you.",
        "I'll rebook you on the noon flight.",
        "Ms. Grant will post it on the page.",
        "You'll get a confirmation by Friday.",
    ],
)
def test_promises_are_found(text: str) -> None:
    assert kinds(text) == ["promise"]


@pytest.mark.parametrize(
    "text",
    [
        "Could you send me the form?",
        "Can you please call my wife?",
        "Please bring your key.",
        "Please don't sign it yet.",
        "You need to fill out the form.",
        "You'll have to bring it in; it takes an hour.",
        "You should check the oil.",
        "Don't forget to bring the key.",
        "Make sure you are at home.",
        "So just let me know.",
        "Give us a call.",
        "Send me the invoice, please.",
        "I need you to send that in writing.",
        "Would you mind sending me a copy?",
        "Could you leave the key with the neighbor?",
        "Don't call me at work, though, please.",
        "You would have to prove it.",
    ],
)
def test_requests_are_found(text: str) -> None:
    assert kinds(text) == ["request"]


def test_a_sentence_can_have_both() -> None:
    assert kinds("I'll send the form, please sign it.") == ["promise", "request"]


@pytest.mark.parametrize(
    "text",
    [
        "I'll be honest.",
        "I will say it was late.",
        "We'll see.",
        "Let me see.",
        "Let me think.",
        "I'll take it.",
        "Could you tell me your name?",
        "Could you spell that for me, please?",
        "Can you hear me?",
        "Could you verify the last four digits?",
        "Please hold.",
        "I'll put you on a brief hold.",
        "They said someone will call me.",
        "He told me he will send it.",
        "If you need to call, the number is there.",
        "When can you send it?",
        "How soon can you fix it?",
        "Do I need to bring anything?",
        "Do you need to check it?",
        "You don't need to bring it.",
        "You won't have to pay.",
        "I don't think I'll bring it.",
        "I won't send it.",
        "I'll talk to you later.",
        "It will be ready.",
        "Will it be ready by Friday?",
        "You should get the letter soon.",
        "I called you yesterday.",
        "You should have called.",
        "I'll pass.",
        "I'll miss you.",
        "We will have to think about it.",
        "Could you please verify the last four digits?",
        "The store will close at nine.",
        "You'll get used to it.",
        "Please, please.",
    ],
)
def test_other_sentences_are_no_action_items(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("I'll send it by Friday.", "by Friday"),
        ("I'll send it by 5 p.m. on Thursday, okay.", "by 5 p.m. on Thursday"),
        ("I'll call you tomorrow at 3.", "tomorrow at 3"),
        ("You get it within three business days, I promise.", "within three business days"),
        ("I'll do it in a couple of hours.", "in a couple of hours"),
        ("By the end of the day!", "By the end of the day"),
        ("Tomorrow, or before noon.", "before noon"),
        ("Next Tuesday, then.", "Next Tuesday"),
        ("On May 3rd at 8 a.m. or so.", "On May 3rd at 8 a.m."),
        ("Two days from now.", "Two days from now"),
        ("I'll drive by the house.", None),
        ("I'll send it in blue.", None),
    ],
)
def test_a_deadline_is_copied_from_the_sentence(text: str, due: str | None) -> None:
    assert deadline_in(folded(text.split())) == due


def test_the_speaker_keeps_a_promise_and_the_other_is_asked() -> None:
    said = [sentence("I'll call by Friday.", 1, 2, 2), sentence("Please call me.", 3, 4, 2)]
    promise, request = action_items_of(said, [1, 2]).items
    assert (promise.assignee, promise.due, promise.method) == (2, "by Friday", "rules")
    assert (request.assignee, request.due, request.quote.start) == (1, None, 3.0)
    assert promise.text == promise.quote.text == "I'll call by Friday."


def test_among_three_speakers_nobody_knows_who_is_asked() -> None:
    [item] = action_items_of([sentence("Please call me.")], [1, 2, 3]).items
    assert item.assignee is None
